import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findSensors, isPossibleCelsius, parseValue } from '../../src/collect/sensors.ts';
import type { Cleanup } from '../../testkit/cleanup.ts';

export interface SysTree {
  readonly path: string;
  /** A sentence for the report: the source of the temperature. */
  readonly note: string;
}

/** A file that exists in sysfs on every Linux; its number (65536) is a valid value in millidegrees. */
const STAND_IN = '/sys/class/net/lo/mtu';

/** Returns /sys or, on a machine without a temperature sensor, a folder in memory with one thermal zone. */
export async function sysTree(cleanup: Cleanup): Promise<SysTree> {
  if ((await findSensors('/sys')).some(({ problem }) => problem === null))
    return { path: '/sys', note: "The temperature is this machine's own." };
  const celsius = parseValue(readFileSync(STAND_IN, 'utf8')) / 1000;
  if (!isPossibleCelsius(celsius)) throw new Error(`${STAND_IN} is not a plausible temperature`);
  const path = cleanup.folderInMemory();
  const zone = join(path, 'class/thermal/thermal_zone0');
  mkdirSync(zone, { recursive: true });
  writeFileSync(join(zone, 'type'), 'cpu-thermal\n');
  symlinkSync(STAND_IN, join(zone, 'temp'));
  return {
    path,
    note: `This machine has no temperature sensor: ${STAND_IN}, also a number in sysfs, was read instead, through a thermal zone on tmpfs. The cost of a sensor driver is not included.`,
  };
}
