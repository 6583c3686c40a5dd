import { nullAfterTimeout } from '../core/platform/timeout.ts';
import type { Log } from '../core/ports.ts';
import { namesIn, OccasionalReader, TextFile } from './text-file.ts';

/** Power supply and throttling of the machine; null if the kernel does not report it. */
export interface PowerState {
  /** Raspberry Pi: the supply is below 4.63 V. */
  readonly undervoltage: boolean | null;
  /** Times that the supply fell below 4.63 V since the service started. */
  readonly undervoltage_events: number | null;
  /** Monotonic time at which the supply was last below 4.63 V; null: not since the service started. */
  readonly lastUndervoltageSeconds: number | null;
  /** Thermal throttling: on Intel, of the cores and packages since boot; on a Raspberry Pi, since the service started. */
  readonly throttle_events: number | null;
}

/** At higher publish frequencies too, one sample a second is enough: the kernel holds the alarm of a brown-out for two seconds. */
const SAMPLE_SECONDS = 0.9;
/** The throttle counters of the kernel lose nothing meanwhile. */
const COUNTERS_EVERY = 5;
/** Drivers may be loaded and processors switched on later. */
const SEARCH_SECONDS = 60;
/** After a failed read. */
const SEARCH_SOON_SECONDS = 10;
const ANSWER_SECONDS = 0.5;
const LOG_SECONDS = 60;

/** Bits of get_throttled (Raspberry Pi firmware): below 4.63 V now, and at some time since boot; throttled or at the soft limit now. */
const LOW_NOW = 0x1;
const LOW_SINCE_BOOT = 0x10000;
const THROTTLED_NOW = 0xc;

/** A file that is read repeatedly. A read that hangs is not repeated. */
class PolledFile {
  readonly file: TextFile;
  readonly #onText: (text: string | null) => void;
  #isBusy = false;

  constructor(path: string, onText: (text: string | null) => void) {
    this.file = new TextFile(path, 64);
    this.#onText = onText;
  }

  poll(done?: () => void): void {
    if (this.#isBusy) {
      done?.();
      return;
    }
    this.#isBusy = true;
    this.file.read((error, text) => {
      this.#isBusy = false;
      this.#onText(error ? null : text.trim());
      done?.();
    });
  }
}

/**
 * Samples power supply and throttling with the metrics. Brown-outs last a second or two, so they are counted here and not on
 * request. A throttle count never falls: that of a processor which goes offline is kept.
 */
export class PowerSource {
  readonly #sysRoot: string;
  readonly #nowSeconds: () => number;
  readonly #log: Log;
  readonly #reader = new OccasionalReader();
  #supply: readonly PolledFile[] = [];
  #counters: readonly PolledFile[] = [];
  /** Whether the driver rpi_volt is loaded; otherwise the bits of the firmware show the state of the supply. */
  #hasAlarm = false;
  /** Whether the state of the supply is known now. */
  #isKnown = false;
  /** The last known state of the supply; null: never known. */
  #wasLow: boolean | null = null;
  #bits = 0;
  #lowEvents = 0;
  #lowSeconds: number | null = null;
  #loggedSeconds = Number.NEGATIVE_INFINITY;
  /** Largest count of each core, each package and the firmware. */
  readonly #throttled = new Map<string, number>();
  /** Name of the core of each processor, once it is known: an offline processor is no longer among the siblings of the others. */
  readonly #cores = new Map<number, string>();
  #samples = 0;
  #sampledSeconds = Number.NEGATIVE_INFINITY;
  #searchedSeconds = Number.NEGATIVE_INFINITY;

  constructor(sysRoot: string, nowSeconds: () => number, log: Log) {
    this.#sysRoot = sysRoot;
    this.#nowSeconds = nowSeconds;
    this.#log = log;
  }

  state(): PowerState {
    const counts = [...this.#throttled.values()];
    return {
      undervoltage: this.#isKnown ? this.#wasLow : null,
      undervoltage_events: this.#wasLow === null ? null : this.#lowEvents,
      lastUndervoltageSeconds: this.#lowSeconds,
      throttle_events: counts.length === 0 ? null : counts.reduce((sum, count) => sum + count, 0),
    };
  }

  /** Begins to read what is due; called with each sample of the metrics. */
  sample(): void {
    const now = this.#nowSeconds();
    if (now - this.#sampledSeconds < SAMPLE_SECONDS) return;
    this.#sampledSeconds = now;
    this.#samples += 1;
    for (const file of this.#supply) file.poll();
    if (this.#samples % COUNTERS_EVERY === 0) for (const file of this.#counters) file.poll();
    if (now - this.#searchedSeconds >= SEARCH_SECONDS) void this.search();
  }

  /** Searches for the files and reads each once. Never rejects. */
  async search(): Promise<void> {
    this.#searchedSeconds = this.#nowSeconds();
    const [supply, counters] = [await this.#findSupply(), await this.#findCounters()];
    const adopt = (before: readonly PolledFile[], found: ReadonlyMap<string, (text: string | null) => void>): PolledFile[] => {
      for (const { file } of before) if (!found.has(file.path)) file.close();
      return [...found].map(([path, onText]) => before.find(({ file }) => file.path === path) ?? new PolledFile(path, onText));
    };
    this.#supply = adopt(this.#supply, supply);
    this.#counters = adopt(this.#counters, counters);
    const files = [...this.#supply, ...this.#counters];
    const answers = Promise.all(files.map((file) => new Promise<void>((resolve) => file.poll(resolve))));
    await nullAfterTimeout(ANSWER_SECONDS, answers);
  }

  close(): void {
    for (const { file } of [...this.#supply, ...this.#counters]) file.close();
  }

  async #findSupply(): Promise<Map<string, (text: string | null) => void>> {
    const found = new Map<string, (text: string | null) => void>();
    const hwmons = `${this.#sysRoot}/class/hwmon`;
    for (const hwmon of await namesIn(hwmons)) {
      const name = await this.#textOf(`${hwmons}/${hwmon}/name`);
      if (name === 'rpi_volt') found.set(`${hwmons}/${hwmon}/in0_lcrit_alarm`, this.#onAlarm);
    }
    const platform = `${this.#sysRoot}/devices/platform`;
    for (const soc of (await namesIn(platform)).filter((name) => name.startsWith('soc')))
      for (const device of (await namesIn(`${platform}/${soc}`)).filter((name) => name.endsWith('firmware')))
        if ((await this.#textOf(`${platform}/${soc}/${device}/get_throttled`)) !== null)
          found.set(`${platform}/${soc}/${device}/get_throttled`, this.#onBits);
    this.#hasAlarm = [...found.values()].includes(this.#onAlarm);
    if (found.size === 0) this.#isKnown = false;
    return found;
  }

  /** One counter of each core and each package: that of its first processor which is online. Siblings show the same events. */
  async #findCounters(): Promise<Map<string, (text: string | null) => void>> {
    const folder = `${this.#sysRoot}/devices/system/cpu`;
    const found = new Map<string, (text: string | null) => void>();
    const seen = new Set<string>();
    const add = (name: string, path: string): void => {
      if (seen.has(name)) return;
      seen.add(name);
      found.set(path, (text) => {
        if (text !== null && /^\d+$/.test(text)) this.#throttled.set(name, Math.max(Number(text), this.#throttled.get(name) ?? 0));
        else this.#searchSoon(); // Perhaps a sibling is online.
      });
    };
    const cpus = (await namesIn(folder)).flatMap((name) => /^cpu(\d+)$/.exec(name)?.[1] ?? []).map(Number);
    for (const cpu of cpus.sort((a, b) => a - b)) {
      const counters = await namesIn(`${folder}/cpu${cpu}/thermal_throttle`);
      if (counters.length === 0) continue;
      const topology = `${folder}/cpu${cpu}/topology`;
      const list = (await this.#textOf(`${topology}/core_cpus_list`)) ?? (await this.#textOf(`${topology}/thread_siblings_list`));
      const siblings = [cpu, ...cpusOf(list ?? '')];
      const core = siblings.map((sibling) => this.#cores.get(sibling)).find((name) => name !== undefined) ?? `core of cpu${cpu}`;
      for (const sibling of siblings) this.#cores.set(sibling, core);
      const ofPackage = (await this.#textOf(`${topology}/physical_package_id`)) ?? '0';
      const path = (what: string): string => `${folder}/cpu${cpu}/thermal_throttle/${what}_throttle_count`;
      if (counters.includes('core_throttle_count')) add(core, path('core'));
      if (counters.includes('package_throttle_count')) add(`package ${ofPackage}`, path('package'));
    }
    return found;
  }

  async #textOf(path: string): Promise<string | null> {
    return this.#reader.read(path).then(
      (text) => text.trim(),
      () => null,
    );
  }

  readonly #onAlarm = (text: string | null): void => {
    // Another driver may have got the hwmon number in the path.
    if (text === null) this.#searchSoon();
    const isNumber = text !== null && /^\d+$/.test(text);
    this.#judgeSupply(isNumber ? Number(text) > 0 : null);
  };

  readonly #onBits = (text: string | null): void => {
    if (text === null || !/^(0x)?[\da-f]+$/i.test(text)) {
      if (!this.#hasAlarm) this.#judgeSupply(null);
      return;
    }
    const bits = Number.parseInt(text, 16);
    const isNew = (mask: number): boolean => (bits & mask) !== 0 && (this.#bits & mask) === 0;
    const throttled = this.#throttled.get('firmware') ?? 0;
    this.#throttled.set('firmware', throttled + Number(isNew(THROTTLED_NOW)));
    const hasBeenLow = isNew(LOW_SINCE_BOOT);
    this.#bits = bits;
    if (!this.#hasAlarm) this.#judgeSupply((bits & LOW_NOW) !== 0, hasBeenLow);
  };

  /** `hasBeenLow`: it was, since the previous sample. */
  #judgeSupply(isLow: boolean | null, hasBeenLow = false): void {
    this.#isKnown = isLow !== null;
    if (isLow === null) return;
    const now = this.#nowSeconds();
    if ((isLow || hasBeenLow) && this.#wasLow !== true) {
      this.#lowEvents += 1;
      if (now - this.#loggedSeconds >= LOG_SECONDS) {
        this.#loggedSeconds = now;
        this.#log('warning', 'undervoltage detected', { events: this.#lowEvents });
      }
    }
    if (isLow || hasBeenLow) this.#lowSeconds = now;
    this.#wasLow = isLow;
  }

  #searchSoon(): void {
    this.#searchedSeconds = Math.min(this.#searchedSeconds, this.#nowSeconds() - SEARCH_SECONDS + SEARCH_SOON_SECONDS);
  }
}

/** Processor numbers of a list such as `0,4` or `0-1`. */
function cpusOf(list: string): number[] {
  return [...list.matchAll(/(\d+)(?:-(\d+))?/g)].flatMap(([, first, last = first]) =>
    Array.from({ length: Math.max(0, Number(last) - Number(first) + 1) }, (_, index) => Number(first) + index),
  );
}

/** Reads both once. Never rejects. */
export async function readPowerState(sysRoot: string): Promise<PowerState> {
  const source = new PowerSource(
    sysRoot,
    () => performance.now() / 1000,
    () => {
      // A single reading is not an event.
    },
  );
  await source.search();
  source.close();
  return source.state();
}
