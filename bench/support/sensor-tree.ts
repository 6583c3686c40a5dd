import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findSensors, isPossibleCelsius, parseMillidegrees } from '../../src/collect/sensors.ts';
import type { Cleanup } from '../../testkit/cleanup.ts';

export interface SysTree {
  readonly path: string;
  /** Where the temperature comes from, in a sentence. */
  readonly note: string;
}

/** A file of sysfs that every Linux has, and whose number (65536) can be read as millidegrees. */
const STAND_IN = '/sys/class/net/lo/mtu';

/** /sys, or on a machine without a temperature sensor a folder in memory with one thermal zone in it. */
export async function sysTree(cleanup: Cleanup): Promise<SysTree> {
  if ((await findSensors('/sys')).some(({ problem }) => problem === null))
    return { path: '/sys', note: "The temperature is this machine's own." };
  const celsius = parseMillidegrees(readFileSync(STAND_IN, 'utf8'));
  if (!isPossibleCelsius(celsius)) throw new Error(`${STAND_IN} is not as expected`);
  const path = cleanup.folderInMemory();
  const zone = join(path, 'class/thermal/thermal_zone0');
  mkdirSync(zone, { recursive: true });
  writeFileSync(join(zone, 'type'), 'cpu-thermal\n');
  symlinkSync(STAND_IN, join(zone, 'temp'));
  return {
    path,
    note: `This machine has no temperature sensor: ${STAND_IN}, a number in sysfs too, was read in its place, through a thermal zone laid out on tmpfs. What a sensor's driver itself needs is not in the figures.`,
  };
}
