import { readFileSync } from 'node:fs';
import type { HostShares } from './findings.ts';

/** Sums of the first line of /proc/stat (proc_stat(5)) over all processors, in clock ticks since the boot. */
export interface HostTime {
  readonly total: number;
  readonly idle: number;
  /** Taken by the host of a virtual machine for others; 0 on a real one. */
  readonly steal: number;
}

/** Null: it cannot be read, or is none. */
export function readHostTime(file = '/proc/stat'): HostTime | null {
  let text: string;
  try {
    text = readFileSync(file, 'latin1');
  } catch {
    return null;
  }
  // user nice system idle iowait irq softirq steal; guest and guest_nice are in user and nice already.
  const ticks = /^cpu +((?:\d+ ){7}\d+)/.exec(text)?.[1]?.split(' ').map(Number);
  if (ticks === undefined) return null;
  const [, , , idle = 0, iowait = 0, , , steal = 0] = ticks;
  return { total: ticks.reduce((sum, one) => sum + one, 0), idle: idle + iowait, steal };
}

/** Of the processors' time between two readings, in percent; null: one is missing, or no tick has passed. */
export function sharesOf(before: HostTime | null, after: HostTime | null): HostShares | null {
  if (before === null || after === null || after.total <= before.total) return null;
  const percent = (part: number): number => (100 * Math.max(0, part)) / (after.total - before.total);
  return { idlePercent: percent(after.idle - before.idle), stealPercent: percent(after.steal - before.steal) };
}
