import type { Clocked } from '../../harness/record/entries.ts';
import { type Fault, type Interval, ofKind } from './faults.ts';

/** 2026-03-04T05:06:07Z: the week includes the change to daylight saving time in North America (8 March). */
export const BEGIN_MS = Date.UTC(2026, 2, 4, 5, 6, 7);
const UPTIME_AT_BEGIN = 5000;
const SLEPT_AT_BEGIN = 1000;

/** The clocks of a synthetic machine as functions of the time axis of the run. */
export class WeekClocks {
  readonly suspends: readonly Interval[];
  readonly offs: readonly Interval[];
  readonly steps: readonly { readonly at: number; readonly seconds: number }[];
  readonly #beginMs: number;

  constructor(faults: readonly Fault[], beginMs: number) {
    this.suspends = ofKind(faults, 'suspend').map(({ at, seconds }) => ({ from: at, to: at + seconds }));
    this.offs = ofKind(faults, 'reboot').map(({ at, seconds }) => ({ from: at, to: at + seconds }));
    this.steps = ofKind(faults, 'step');
    this.#beginMs = beginMs;
  }

  wall(at: number): number {
    const stepped = this.steps.reduce((sum, step) => (step.at <= at ? sum + step.seconds : sum), 0);
    return Math.round(this.#beginMs + (at + stepped) * 1000);
  }

  /** Number of the boot, from 0. */
  boot(at: number): number {
    return this.offs.filter(({ to }) => to <= at).length;
  }

  clocks(at: number): Clocked {
    const booted = this.offs.findLast(({ to }) => to <= at)?.to ?? null;
    const boot = booted === null ? UPTIME_AT_BEGIN + at : at - booted;
    const since = booted ?? 0;
    const slept = this.suspends.reduce((sum, { from, to }) => (from >= since ? sum + Math.max(0, Math.min(at, to) - from) : sum), 0);
    const mono = boot - slept - (booted === null ? SLEPT_AT_BEGIN : 0);
    return { boot: toMilliseconds(boot), mono: toMilliseconds(mono), wall: this.wall(at) };
  }

  /** Seconds awake up to `at`, over all boots. */
  awake(at: number): number {
    return at - [...this.suspends, ...this.offs].reduce((sum, { from, to }) => sum + Math.max(0, Math.min(at, to) - from), 0);
  }
}

function toMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
