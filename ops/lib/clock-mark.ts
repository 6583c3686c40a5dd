import * as v from 'valibot';
import { readBootId } from '../../src/core/platform/boot-id.ts';
import { systemClocks } from '../../src/core/platform/clocks.ts';
import { CLOCK_JUMP_SECONDS, type ClockCorrection } from '../../src/core/time/clock-watch.ts';
import type { Clocks } from '../../src/core/time/time.ts';

export const clockMarkSchema = v.object({ boot_id: v.nullable(v.string()), boot_seconds: v.nullable(v.number()), wall_ms: v.number() });

/** The clocks at a moment, saved with times so that they can be corrected if the wall clock has stepped since, also by another process. */
export type ClockMark = Readonly<v.InferOutput<typeof clockMarkSchema>>;

/** Slewing moves the wall clock by at most this share of the time; twice what adjtimex(2) allows. */
const MAX_SLEW = 0.001;

export function markClocks(
  clocks: Pick<Clocks, 'bootSeconds' | 'wallMilliseconds'> = systemClocks(),
  bootId = readBootId('/proc'),
): ClockMark {
  return { boot_id: bootId, boot_seconds: clocks.bootSeconds(), wall_ms: clocks.wallMilliseconds() };
}

/** What corrects times saved with `mark`. Null: the clock did not step, or the machine was booted since, so that it is not known. */
export function correctionSince(mark: ClockMark | null, now: ClockMark): ClockCorrection | null {
  if (mark === null || mark.boot_id === null || mark.boot_id !== now.boot_id) return null;
  if (mark.boot_seconds === null || now.boot_seconds === null) return null;
  const passedMs = (now.boot_seconds - mark.boot_seconds) * 1000;
  const deltaMs = Math.round(now.wall_ms - mark.wall_ms - passedMs);
  if (Math.abs(deltaMs) < Math.max(CLOCK_JUMP_SECONDS * 1000, MAX_SLEW * passedMs)) return null;
  return { fromMs: mark.wall_ms - mark.boot_seconds * 1000, toMs: mark.wall_ms, deltaMs };
}
