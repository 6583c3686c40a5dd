import { namesIn, OccasionalReader } from './text-file.ts';

/** A temperature sensor found under /sys. `celsius`: its value at that time; null: see `problem`. */
export interface SensorCandidate {
  /** A thermal zone's type, or `hwmon-name/label`: stable across boots, unlike the numbers in the path. */
  readonly id: string;
  readonly path: string;
  readonly celsius: number | null;
  readonly problem: string | null;
}

export interface SensorChoice {
  readonly chosen: SensorCandidate | null;
  readonly reason: string;
  readonly rejected: readonly { readonly id: string; readonly path: string; readonly celsius: number | null; readonly reason: string }[];
}

/** Parses millidegrees of sysfs. Throws for text that is not a number. */
export function parseMillidegrees(text: string): number {
  const trimmed = text.trim();
  if (!/^-?\d+$/.test(trimmed)) throw new Error(trimmed === '' ? 'empty' : `"${trimmed.slice(0, 20)}" is not a number`);
  return Number(trimmed) / 1000;
}

/** Whether a working sensor of a running computer can have this value. Drivers return -256 or -40 for a missing sensor, or overflow. */
export function isPossibleCelsius(celsius: number): boolean {
  return celsius > -40 && celsius < 150;
}

/**
 * Plausible values of an unknown sensor. Constants such as 0 and 127 mean "not connected" on many boards, and PMIC-Die of a Jetson is
 * always 100.
 */
function isPlausibleUnknown({ id, celsius }: SensorCandidate): boolean {
  return celsius !== null && celsius > 5 && celsius < 120 && id !== 'PMIC-Die';
}

/**
 * Known sensors of the CPU or SoC in order of preference, each with its hardware. The zone is cpu-thermal on a Pi and a Jetson Orin,
 * CPU-therm on an older Jetson (BCPU-therm and MCPU-therm on the TX2), and cpu_thermal with older Pi kernels.
 */
const KNOWN: readonly { readonly pattern: RegExp; readonly what: string }[] = [
  { pattern: /^cpu[-_]thermal$/, what: 'the SoC zone of a Raspberry Pi or a Jetson Orin' },
  { pattern: /^[BM]?CPU-therm$/, what: 'the CPU zone of an older Jetson' },
  { pattern: /^coretemp\/Package id 0$/, what: 'the package sensor of an Intel CPU' },
  { pattern: /^k10temp\/Tctl$/, what: 'the control temperature of an AMD CPU' },
  { pattern: /^zenpower\/Tdie$/, what: 'the die temperature of an AMD CPU' },
  { pattern: /^x86_pkg_temp$/, what: 'the package zone of an Intel CPU' },
  { pattern: /^(soc|cpu)\d*[-_](thermal|thmzone|crit|max)/i, what: 'a SoC zone' },
];

/**
 * Selects a sensor: the configured one, otherwise the first known one with a value, otherwise the hottest plausible thermal zone, otherwise
 * the hottest plausible of all. All other candidates are listed with the reason for their rejection. A configured sensor is never replaced
 * by another one.
 */
export function chooseSensor(candidates: readonly SensorCandidate[], configured: string | null): SensorChoice {
  const decide = (chosen: SensorCandidate | null, reason: string, others: string): SensorChoice => ({
    chosen,
    reason,
    rejected: candidates
      .filter((candidate) => candidate !== chosen)
      .map(({ id, path, celsius, problem }) => ({ id, path, celsius, reason: problem ?? others })),
  });
  if (configured !== null) {
    const named = candidates.filter(({ id }) => id === configured);
    // Several sensors may have the same name, such as two zones "acpitz" of which one has no value.
    const match = named.find(({ problem }) => problem === null) ?? named[0];
    if (match) return decide(match, 'configured as temperature.sensor', 'another one is configured');
    const known = candidates.map(({ id }) => id).join(', ') || 'none';
    return decide(
      null,
      `temperature.sensor is "${configured}", which this machine does not have; it has: ${known}`,
      'another one is configured',
    );
  }
  for (const { pattern, what } of KNOWN) {
    const match = candidates.find(({ id, celsius }) => pattern.test(id) && celsius !== null && isPossibleCelsius(celsius));
    if (match) return decide(match, what, `${match.id} is ${what}`);
  }
  const plausible = candidates.filter(isPlausibleUnknown);
  const zones = plausible.filter(({ path }) => path.includes('/class/thermal/'));
  const hottest = (zones.length > 0 ? zones : plausible).reduce<SensorCandidate | null>(
    (best, candidate) => (best === null || (candidate.celsius ?? 0) > (best.celsius ?? 0) ? candidate : best),
    null,
  );
  if (hottest) return decide(hottest, 'no known CPU or SoC sensor; the hottest plausible one', 'cooler, or not plausible');
  return decide(null, candidates.length === 0 ? 'no temperature sensor found' : 'no sensor gives a plausible value', 'not plausible');
}

/** Each hanging read blocks a thread of the pool. After two, no further sensors are read. */
const MAX_HANGING = 2;

/** Entries of a /sys/class folder in the order of their numbers; none if the folder is missing. */
async function numbered(folder: string, prefix: string): Promise<string[]> {
  const names = await namesIn(folder);
  const number = (name: string): number => Number(name.slice(prefix.length));
  return names.filter((name) => name.startsWith(prefix) && Number.isInteger(number(name))).sort((a, b) => number(a) - number(b));
}

async function textOf(reader: OccasionalReader, path: string): Promise<string | null> {
  return reader.read(path).then(
    (text) => text.trim() || null,
    () => null,
  );
}

/** Finds the sensors in thermal zones and hwmon. A hwmon input without a label is named after its file (`temp1`). */
export async function findSensors(sysRoot: string, reader = new OccasionalReader()): Promise<SensorCandidate[]> {
  const found: { id: string; path: string }[] = [];
  for (const zone of await numbered(`${sysRoot}/class/thermal`, 'thermal_zone')) {
    const folder = `${sysRoot}/class/thermal/${zone}`;
    found.push({ id: (await textOf(reader, `${folder}/type`)) ?? zone, path: `${folder}/temp` });
  }
  for (const hwmon of await numbered(`${sysRoot}/class/hwmon`, 'hwmon')) {
    const folder = `${sysRoot}/class/hwmon/${hwmon}`;
    const inputs = (await namesIn(folder))
      .map((name) => /^temp(\d+)_input$/.exec(name)?.[1])
      .filter((index) => index !== undefined)
      .sort((a, b) => Number(a) - Number(b));
    const name = inputs.length > 0 ? ((await textOf(reader, `${folder}/name`)) ?? hwmon) : hwmon;
    for (const index of inputs) {
      const label = (await textOf(reader, `${folder}/temp${index}_label`)) ?? `temp${index}`;
      found.push({ id: `${name}/${label}`, path: `${folder}/temp${index}_input` });
    }
  }
  const candidates: SensorCandidate[] = [];
  let hanging = 0;
  for (const { id, path } of found) {
    if (hanging >= MAX_HANGING) {
      candidates.push({ id, path, celsius: null, problem: 'not read: two sensors before it do not respond' });
      continue;
    }
    try {
      const celsius = parseMillidegrees(await reader.read(path));
      const problem = isPossibleCelsius(celsius) ? null : `${celsius} °C is not possible`;
      candidates.push({ id, path, celsius, problem });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ETIMEDOUT') hanging += 1;
      candidates.push({ id, path, celsius: null, problem: code ? `${code}: ${message}` : message });
    }
  }
  return candidates;
}
