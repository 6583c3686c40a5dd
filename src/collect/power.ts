import { namesIn, OccasionalReader } from './text-file.ts';

/** Power supply and throttling state of the machine; null if the kernel does not report it. */
export interface PowerState {
  /** Raspberry Pi: the supply is or was below 4.63 V (hwmon `rpi_volt`, in0_lcrit_alarm). */
  readonly undervoltage: boolean | null;
  /** Intel: thermal throttling events of the cores and the package since boot (thermal_throttle counters). */
  readonly throttle_events: number | null;
}

async function numberIn(reader: OccasionalReader, path: string): Promise<number | null> {
  try {
    const text = (await reader.read(path)).trim();
    return /^\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null; // The file is missing or not readable.
  }
}

async function undervoltage(reader: OccasionalReader, sysRoot: string): Promise<boolean | null> {
  const folder = `${sysRoot}/class/hwmon`;
  for (const hwmon of await namesIn(folder)) {
    const name = await reader.read(`${folder}/${hwmon}/name`).catch(() => '');
    if (name.trim() !== 'rpi_volt') continue;
    const alarm = await numberIn(reader, `${folder}/${hwmon}/in0_lcrit_alarm`);
    return alarm === null ? null : alarm > 0;
  }
  return null;
}

async function throttleEvents(reader: OccasionalReader, sysRoot: string): Promise<number | null> {
  const folder = `${sysRoot}/devices/system/cpu`;
  const cpus = (await namesIn(folder)).filter((name) => /^cpu\d+$/.test(name));
  let events: number | null = null;
  for (const cpu of cpus) {
    const count = await numberIn(reader, `${folder}/${cpu}/thermal_throttle/core_throttle_count`);
    if (count !== null) events = (events ?? 0) + count;
  }
  const packages = await numberIn(reader, `${folder}/cpu0/thermal_throttle/package_throttle_count`);
  return packages === null ? events : (events ?? 0) + packages;
}

/** Time for which a reading is reused. */
const FRESH_SECONDS = 5;

/**
 * Reads power supply and throttling on demand (for /status and /metrics), at most every few seconds and never twice at once, so that a
 * hanging driver blocks only one thread.
 */
export class PowerSource {
  readonly #sysRoot: string;
  readonly #nowSeconds: () => number;
  readonly #reader = new OccasionalReader();
  #last: PowerState = { undervoltage: null, throttle_events: null };
  #readSeconds = Number.NEGATIVE_INFINITY;
  #reading: Promise<PowerState> | null = null;

  constructor(sysRoot: string, nowSeconds: () => number) {
    this.#sysRoot = sysRoot;
    this.#nowSeconds = nowSeconds;
  }

  /** The state, at most a few seconds old. Never rejects. */
  async read(): Promise<PowerState> {
    if (this.#nowSeconds() - this.#readSeconds < FRESH_SECONDS) return this.#last;
    this.#reading ??= readPowerState(this.#sysRoot, this.#reader).finally(() => {
      this.#reading = null;
    });
    this.#last = await this.#reading;
    this.#readSeconds = this.#nowSeconds();
    return this.#last;
  }
}

/** Reads both now. Never rejects. */
export async function readPowerState(sysRoot: string, reader = new OccasionalReader()): Promise<PowerState> {
  return { undervoltage: await undervoltage(reader, sysRoot), throttle_events: await throttleEvents(reader, sysRoot) };
}
