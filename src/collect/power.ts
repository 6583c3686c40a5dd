import { namesIn, readTextOnce } from './text-file.ts';

/** What the kernel tells of a machine held back by its power supply or its heat; null where it does not tell. */
export interface PowerState {
  /** Raspberry Pi: the supply is or was below 4.63 V (hwmon `rpi_volt`, in0_lcrit_alarm). */
  readonly undervoltage: boolean | null;
  /** Intel: times that a core or the package was slowed for its heat since boot (thermal_throttle counters). */
  readonly throttle_events: number | null;
}

const DEADLINE_SECONDS = 0.5;

async function numberIn(path: string): Promise<number | null> {
  try {
    const text = (await readTextOnce(path, DEADLINE_SECONDS)).trim();
    return /^\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null; // Not there, or not readable: the kernel does not tell.
  }
}

async function undervoltage(sysRoot: string): Promise<boolean | null> {
  const folder = `${sysRoot}/class/hwmon`;
  for (const hwmon of await namesIn(folder)) {
    const name = await readTextOnce(`${folder}/${hwmon}/name`, DEADLINE_SECONDS).catch(() => '');
    if (name.trim() !== 'rpi_volt') continue;
    const alarm = await numberIn(`${folder}/${hwmon}/in0_lcrit_alarm`);
    return alarm === null ? null : alarm > 0;
  }
  return null;
}

async function throttleEvents(sysRoot: string): Promise<number | null> {
  const folder = `${sysRoot}/devices/system/cpu`;
  const cpus = (await namesIn(folder)).filter((name) => /^cpu\d+$/.test(name));
  let events: number | null = null;
  for (const cpu of cpus) {
    const count = await numberIn(`${folder}/${cpu}/thermal_throttle/core_throttle_count`);
    if (count !== null) events = (events ?? 0) + count;
  }
  const packages = await numberIn(`${folder}/cpu0/thermal_throttle/package_throttle_count`);
  return packages === null ? events : (events ?? 0) + packages;
}

/** Reads both now. Asked rarely (by /status and /metrics), so nothing is kept open. Never rejects. */
export async function readPowerState(sysRoot: string): Promise<PowerState> {
  return { undervoltage: await undervoltage(sysRoot), throttle_events: await throttleEvents(sysRoot) };
}
