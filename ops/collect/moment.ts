import { readFileSync } from 'node:fs';
import { hrtime } from 'node:process';
import { readBootId } from '../../src/system/boot-id.ts';

/** One moment on every clock of this machine, so that steps, sleep and reboots show when moments are compared. */
export interface Moment {
  /** Wall clock, milliseconds since the epoch. */
  readonly ms: number;
  /** Tells one boot from another; null where procfs does not. */
  readonly bootId: string | null;
  /** Since boot, sleep included; null where procfs does not tell. */
  readonly bootSeconds: number | null;
  /** On a clock that stands still while the machine sleeps. */
  readonly monotonicSeconds: number;
}

const hundredths = (seconds: number): number => Math.round(seconds * 100) / 100;

export function momentNow(nowMs: () => number): Moment {
  return {
    ms: nowMs(),
    bootId: readBootId('/proc'),
    bootSeconds: readBootSeconds(),
    monotonicSeconds: hundredths(Number(hrtime.bigint()) / 1e9),
  };
}

function readBootSeconds(): number | null {
  try {
    const seconds = Number.parseFloat(readFileSync('/proc/uptime', 'latin1'));
    return Number.isFinite(seconds) ? seconds : null;
  } catch {
    return null;
  }
}
