import { realpath } from 'node:fs';
import { namesIn, OccasionalReader } from './text-file.ts';

/** A temperature sensor found under /sys. `celsius`: its value at that time; null: see `problem`. */
export interface SensorCandidate {
  /** `name`; if several sensors have this name, `name@address`. Stable across boots, unlike the numbers in the path. */
  readonly id: string;
  /** A thermal zone's type, or `hwmon-name/label`. */
  readonly name: string;
  /** Position of its device on the bus, such as 0000:01:00.0 (PCI) or LNXTHERM:00 (ACPI); null: not known to the kernel. */
  readonly address: string | null;
  readonly path: string;
  readonly celsius: number | null;
  readonly problem: string | null;
  /** Units of the file in one degree, 1000 or 1; null: not known, because the sensor gave no value. */
  readonly unitsPerDegree: number | null;
}

export interface SensorChoice {
  readonly chosen: SensorCandidate | null;
  readonly reason: string;
  readonly rejected: readonly { readonly id: string; readonly path: string; readonly celsius: number | null; readonly reason: string }[];
  /** The sensors to read: `chosen`, and the other cores if each core has a sensor of its own. The temperature is the hottest of them. */
  readonly members: readonly SensorCandidate[];
}

/** Parses a value of sysfs, in the sensor's own unit. Throws for text that is not a number. */
export function parseValue(text: string): number {
  const trimmed = text.trim();
  if (!/^-?\d+$/.test(trimmed)) throw new Error(trimmed === '' ? 'empty' : `"${trimmed.slice(0, 20)}" is not a number`);
  return Number(trimmed);
}

/** No sensor in whole degrees gives a value beyond this one. */
export const MAX_WHOLE_DEGREES = 999;

/**
 * Whether a working sensor of a running computer can have this value. Drivers return -256 or -40 for a missing sensor, or overflow; 127 and
 * 127.5 are the largest value of an 8-bit sensor, which it gives if its diode is not connected.
 */
export function isPossibleCelsius(celsius: number): boolean {
  return celsius > -40 && celsius < 150 && celsius !== 127 && celsius !== 127.5;
}

/** Zones that are not sensors: PMIC-Die of a Jetson is always 100, INT3400 is a policy, and thermal-fan-est a weighted mean. */
const NOT_A_SENSOR = /^(PMIC-Die|INT3400|thermal-fan-est)/;

/** Plausible values of an unknown sensor: constants such as 0 and 127 mean "not connected" on many boards. */
function isPlausibleUnknown({ name, celsius }: SensorCandidate): boolean {
  return celsius !== null && celsius > 5 && celsius < 120 && !NOT_A_SENSOR.test(name);
}

/** Whether the value of a CPU sensor can be real. A chip that reads exactly 0 is not calibrated, or not connected. */
function isPlausibleKnown({ celsius }: SensorCandidate): boolean {
  return celsius !== null && celsius !== 0 && isPossibleCelsius(celsius);
}

function isZone({ path }: SensorCandidate): boolean {
  return path.includes('/class/thermal/');
}

interface Kind {
  /** Matched against a zone's type, the name of a hwmon whose input has no label, or `hwmon-name/label`. */
  readonly pattern: RegExp;
  readonly what: string;
  /** Each core has a sensor of its own: all are read. */
  readonly perCore?: true;
}

/**
 * Kinds of sensors of the CPU or SoC in order of preference, each with its hardware. The order depends on the kind only: what is hottest at
 * the start of the service may be a drive or a radio. Sources: the kernel's hwmon and thermal drivers and device trees.
 */
const KINDS: readonly Kind[] = [
  { pattern: /^cpu([-_]?(thermal|therm|temp))?([-_]zone)?$/i, what: 'the CPU zone of a Raspberry Pi, a Jetson or another board' },
  { pattern: /^[BM]CPU-therm$/, what: 'the CPU zone of a Jetson TX2' },
  { pattern: /^coretemp\/(Package|Physical) id \d+$/, what: 'the package sensor of an Intel CPU' },
  { pattern: /^x86_pkg_temp$/, what: 'the package zone of an Intel CPU' },
  {
    pattern: /^(coretemp|via_cputemp)\/Core \d+$/,
    what: 'the hottest core of an Intel or VIA CPU without a package sensor',
    perCore: true,
  },
  { pattern: /^(k10temp|zenpower\d*)\/Tdie$/, what: 'the die temperature of an AMD CPU' },
  { pattern: /^(k10temp|zenpower\d*)\/Tctl$/, what: 'the control temperature of an AMD CPU' },
  { pattern: /^(k8temp|k10temp|zenpower\d*)$/, what: 'the temperature of an AMD CPU before Zen' },
  { pattern: /^(TCPU|B0D4)/, what: 'the processor zone of an Intel platform' },
  { pattern: /^cpu(?!.*(vr|fan))[^/]*\d/i, what: 'the hottest of the zones of the CPU', perCore: true },
  { pattern: /^cpu(?!.*(vr|fan))[^/]*$/i, what: 'a zone of the CPU' },
  { pattern: /^(soc|package|pkg|tj)(?![a-z])/i, what: 'the zone of a SoC' },
  {
    pattern:
      /^(scpi_sensors\/(aml_thermal|soc.*|.*cpu.*)|aml_thermal|bcm2835_thermal|exynos-therm.*|imx_thermal_zone|mtk_?ts_?cpu|sunxi-therm.*|armada_thermal)$/i,
    what: 'the zone of a SoC',
  },
  { pattern: /^((mpu|main|ap|cluster|core-cluster|big|mid|little)[-_]?(core)?\d*)([-_]|$)/i, what: 'a zone of the cores of a SoC' },
  { pattern: /\/(PECI|.*TSI|SMBUSMASTER)/i, what: 'the digital sensor of the CPU, read by the board' },
  { pattern: /\/(?!.*(vr|fan|mos))(.*cpu|.*processor|TC\w\w$)/i, what: 'a sensor of the board at the CPU' },
  { pattern: /^(gpu|npu|vpu|center|ddr)\w*[-_]/i, what: 'another part of the SoC; there is no zone of its CPU' },
];

/** Devices whose temperature says little about the computer: they are chosen only if there is nothing else. */
const OTHER_DEVICE =
  /^(pch_|amdgpu|radeon|nouveau|nvidia|i915|xe\b|jc42|spd5118|nvme|drivetemp|iwlwifi|mt7\d|ath\d|rtw|rtl|r8169|brcm|igb|ixgbe|i40e|ice\b|mlx|bnxt|tg3|w1_|bat|bq\d|axp|max17|ucsi|.*(phy\d|wlan|wifi|batt|charg|dimm|usb))/i;

function subjectOf({ name }: SensorCandidate): string {
  return name.replace(/\/temp\d+$/, '');
}

/** Whether a configured sensor is this one: by its name, or by its name and address. */
export function isNamed({ id, name, address }: SensorCandidate, configured: string): boolean {
  return configured === id || configured === name || (address !== null && configured === `${name}@${address}`);
}

/**
 * Selects a sensor: the configured one, otherwise one of the first kind of which one has a value, otherwise the hottest plausible thermal
 * zone, otherwise the hottest plausible of hwmon, otherwise another device. All other candidates are listed with the reason for their
 * rejection. A configured sensor is never replaced by another one.
 */
export function chooseSensor(found: readonly SensorCandidate[], configured: string | null): SensorChoice {
  // The numbers of zones and hwmon change between boots, so that an order by name decides between equals.
  const candidates = found.toSorted((a, b) => Number(isZone(b)) - Number(isZone(a)) || a.id.localeCompare(b.id, 'en', { numeric: true }));
  const decide = (chosen: SensorCandidate | null, reason: string, others: string, members = chosen ? [chosen] : []): SensorChoice => ({
    chosen,
    reason,
    rejected: candidates
      .filter((candidate) => candidate !== chosen)
      .map((candidate) => ({
        id: candidate.id,
        path: candidate.path,
        celsius: candidate.celsius,
        reason: candidate.problem ?? (members.includes(candidate) ? 'read too: the hottest one counts' : others),
      })),
    members,
  });
  if (configured !== null) {
    const named = candidates.filter((candidate) => isNamed(candidate, configured));
    // Several sensors may have the same name, such as two zones "acpitz" of which one has no value.
    const match = named.find(({ problem }) => problem === null) ?? named[0];
    const several = named.length > 1 ? `; ${named.length} sensors have this name, and ${match?.id} names this one` : '';
    if (match) return decide(match, `configured as temperature.sensor${several}`, 'another one is configured');
    const known = candidates.map(({ id }) => id).join(', ') || 'none';
    return decide(
      null,
      `temperature.sensor is "${configured}", which this machine does not have; it has: ${known}`,
      'another one is configured',
    );
  }
  for (const { pattern, perCore, what } of KINDS) {
    const matches = candidates.filter((candidate) => pattern.test(subjectOf(candidate)) && isPlausibleKnown(candidate));
    const [first] = matches;
    if (!first) continue;
    // The kernel shows many a zone in hwmon again.
    const members = perCore ? matches.filter((candidate) => isZone(candidate) === isZone(first)) : [first];
    const chosen = hottestOf(members);
    return decide(chosen, what, `${chosen.id} is ${what}`, members);
  }
  const plausible = candidates.filter(isPlausibleUnknown);
  const own = plausible.filter(({ name }) => !OTHER_DEVICE.test(name));
  const zones = own.filter(isZone);
  const [first] = zones.length > 0 ? zones : own;
  if (first)
    return decide(
      hottestOf(zones.length > 0 ? zones : own),
      'no known CPU or SoC sensor; the hottest plausible one',
      'cooler, or not plausible',
    );
  if (plausible[0]) return decide(plausible[0], 'no sensor of the CPU, the SoC or the board; this is another device', 'another device');
  return decide(null, candidates.length === 0 ? 'no temperature sensor found' : 'no sensor gives a plausible value', 'not plausible');
}

/** `candidates` is not empty. Of two equally hot ones, the first. */
function hottestOf(candidates: readonly SensorCandidate[]): SensorCandidate {
  return candidates.reduce((best, candidate) => ((candidate.celsius ?? 0) > (best.celsius ?? 0) ? candidate : best));
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

/** A component of a path in /sys that is a position on a bus: 0000:01:00.0, 0:0:0:0, LNXTHERM:00, 9-0051, coretemp.0; not nvme0. */
const BUS_ADDRESS = /[:.]|^\d+-/;

/** The position of a device on its bus, otherwise its serial number; null if the kernel shows neither. `folder`: a zone or a hwmon. */
async function addressOf(reader: OccasionalReader, sysRoot: string, folder: string): Promise<string | null> {
  const real = (path: string): Promise<string> => new Promise((resolve) => realpath(path, (error, found) => resolve(error ? '' : found)));
  const device = await real(`${folder}/device`);
  const components = device.slice((await real(sysRoot)).length).split('/');
  const address = components.findLast((component) => BUS_ADDRESS.test(component));
  if (address || !device) return address ?? null;
  return (await textOf(reader, `${device}/address`)) ?? (await textOf(reader, `${device}/serial`));
}

/**
 * Units of a sensor's file in one degree. The kernel's interface is millidegrees, but some vendors' kernels (Allwinner) give whole degrees.
 * A small value is ambiguous: 65 is 65 °C or 0.065 °C. The limits of the sensor decide, which have its unit; without any, a positive value
 * is taken for whole degrees, since a sensor rarely stands between 0 and 0.15 °C.
 */
async function unitsPerDegree(reader: OccasionalReader, value: number, limits: readonly string[]): Promise<number> {
  if (Math.abs(value) >= 150) return 1000;
  let largest = 0;
  for (const path of limits) largest = Math.max(largest, Number(await textOf(reader, path)) || 0);
  if (largest === 0) return value > 0 ? 1 : 1000;
  return largest > MAX_WHOLE_DEGREES ? 1000 : 1;
}

/** Finds the sensors in thermal zones and hwmon. A hwmon input without a label of its own is named after its file (`temp1`). */
export async function findSensors(sysRoot: string, reader = new OccasionalReader()): Promise<SensorCandidate[]> {
  const found: { name: string; address: string | null; folder: string; path: string; limits: string[] }[] = [];
  for (const zone of await numbered(`${sysRoot}/class/thermal`, 'thermal_zone')) {
    const folder = `${sysRoot}/class/thermal/${zone}`;
    const name = (await textOf(reader, `${folder}/type`)) ?? zone;
    const limits = [0, 1, 2].map((trip) => `${folder}/trip_point_${trip}_temp`);
    found.push({ name, address: await addressOf(reader, sysRoot, folder), folder: zone, path: `${folder}/temp`, limits });
  }
  for (const hwmon of await numbered(`${sysRoot}/class/hwmon`, 'hwmon')) {
    const folder = `${sysRoot}/class/hwmon/${hwmon}`;
    const inputs = (await namesIn(folder))
      .map((name) => /^temp(\d+)_input$/.exec(name)?.[1])
      .filter((index) => index !== undefined)
      .sort((a, b) => Number(a) - Number(b));
    if (inputs.length === 0) continue;
    const name = (await textOf(reader, `${folder}/name`)) ?? hwmon;
    const address = await addressOf(reader, sysRoot, folder);
    const labels = new Set<string>();
    for (const index of inputs) {
      const text = await textOf(reader, `${folder}/temp${index}_label`);
      const label = text === null || labels.has(text) ? `temp${index}` : text;
      labels.add(label);
      const limits = ['crit', 'max'].map((limit) => `${folder}/temp${index}_${limit}`);
      found.push({ name: `${name}/${label}`, address, folder: hwmon, path: `${folder}/temp${index}_input`, limits });
    }
  }
  const candidates: SensorCandidate[] = [];
  let hanging = 0;
  for (const { name, address, folder, path, limits } of found) {
    // Without an address, only the number of the folder distinguishes two sensors of one name.
    const id = found.some((other) => other.name === name && other.path !== path) ? `${name}@${address ?? folder}` : name;
    const sensor = { id, name, address, path };
    if (hanging >= MAX_HANGING) {
      candidates.push({ ...sensor, celsius: null, problem: 'not read: two sensors before it do not respond', unitsPerDegree: null });
      continue;
    }
    try {
      const value = parseValue(await reader.read(path));
      const units = await unitsPerDegree(reader, value, limits);
      const celsius = value / units;
      const problem = isPossibleCelsius(celsius) ? null : `${celsius} °C is not possible`;
      candidates.push({ ...sensor, celsius, problem, unitsPerDegree: units });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ETIMEDOUT') hanging += 1;
      candidates.push({ ...sensor, celsius: null, problem: code ? `${code}: ${message}` : message, unitsPerDegree: null });
    }
  }
  return candidates;
}
