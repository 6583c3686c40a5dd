import * as fs from 'node:fs';
import { hrtime } from 'node:process';
import type { Clocks } from '../time/time.ts';

/** The machine's clocks. Boot time is read from /proc/uptime, which includes suspends and has a resolution of 0.01 s. */
export function systemClocks(): Clocks {
  const buffer = Buffer.alloc(64);
  let descriptor: number | null = null;
  return {
    monotonicSeconds: () => Number(hrtime.bigint()) / 1e9,
    wallMilliseconds: () => Date.now(),
    bootSeconds: () => {
      try {
        descriptor ??= fs.openSync('/proc/uptime', 'r');
        const seconds = Number.parseFloat(buffer.toString('latin1', 0, fs.readSync(descriptor, buffer, 0, 64, 0)));
        return Number.isFinite(seconds) ? seconds : null;
      } catch {
        return null; // Without /proc/uptime, suspends are not detected.
      }
    },
  };
}
