import { roundToMilliseconds } from '../../../src/core/time/time.ts';
import type { BeginEntry, Clocked, ResumeEntry } from '../entries.ts';

/** A suspend, or a step of the wall clock, derived from the clocks of two neighbouring entries. */
export interface ClockEvent {
  readonly kind: 'suspend' | 'step';
  /** For a step, positive if the clock was set forward. */
  readonly seconds: number;
  /** On the run's axis: the start of the suspend, or the time of the step, as precisely as the entries show it. */
  readonly at: number;
  /** The wall-clock time right after the event lies between these, in ms. */
  readonly earliest: number;
  readonly latest: number;
}

interface Positioned extends Clocked {
  readonly axis: number;
}

/** A smaller difference is drift. */
const JUMP_SECONDS = 1;
/** A wall clock may be slewed or drift by this fraction without a step. */
const DRIFT = 0.0005;
/** A clock entry is written at most this long after the event. */
const DETECTION_MS = 5000;

/**
 * The run's own axis, with 0 at its start. It follows the boot-time clock, which neither steps nor stops, and the wall clock across a
 * reboot, but advances at least by the time since boot, because a computer without a battery-backed clock starts in the past.
 */
export class TimeAxis {
  readonly events: ClockEvent[] = [];
  /** For the current boot: axis − boot-time clock. */
  #offset = 0;
  #bootId: string | null = null;
  #last: Positioned | null = null;

  /** Number of the boot in which the last entry was written, from 0. */
  boot = 0;

  begin(entry: BeginEntry): number {
    this.#offset = -entry.boot;
    this.#bootId = entry.boot_id;
    return this.place(entry, false);
  }

  /** Returns whether the machine was booted since the previous entry. */
  resume(entry: ResumeEntry): boolean {
    const last = this.#last;
    const rebooted = entry.boot_id !== this.#bootId;
    if (rebooted && last !== null) this.boot++;
    if (last !== null && !sharesClock(this.#bootId, entry.boot_id)) {
      const seconds = Math.max(entry.boot, (entry.wall - last.wall) / 1000);
      this.#offset = last.axis + seconds - entry.boot;
      this.#last = null;
    }
    this.#bootId = entry.boot_id;
    this.place(entry, false);
    return rebooted;
  }

  at(clocks: Clocked): number {
    return roundToMilliseconds(clocks.boot + this.#offset);
  }

  /**
   * The position of an entry on the axis. A difference between its clocks and those of the previous entry becomes an event; `detected`: it
   * is a clock entry, written right after such an event. Entries with earlier clocks than the previous one create no event.
   */
  place(entry: Clocked, detected: boolean): number {
    const { boot, mono, wall } = entry;
    const now = { boot, mono, wall, axis: this.at(entry) };
    if (this.#last !== null) {
      if (boot <= this.#last.boot) return now.axis;
      this.#compare(this.#last, now, detected);
    }
    this.#last = now;
    return now.axis;
  }

  /** Wall clock − axis, in seconds, at the last entry. */
  wallOffset(): number {
    return this.#last === null ? 0 : this.#last.wall / 1000 - this.#last.axis;
  }

  #compare(last: Positioned, { axis, boot, mono, wall }: Positioned, detected: boolean): void {
    const add = (kind: ClockEvent['kind'], seconds: number, at: number): void => {
      const earliest = detected ? wall - DETECTION_MS : last.wall + seconds * 1000;
      this.events.push({ kind, seconds, at, earliest, latest: wall });
    };
    const elapsed = boot - last.boot;
    const slept = roundToMilliseconds(elapsed - (mono - last.mono));
    if (slept >= JUMP_SECONDS) add('suspend', slept, Math.max(last.axis, axis - slept));
    const stepped = roundToMilliseconds((wall - last.wall) / 1000 - elapsed);
    if (Math.abs(stepped) >= Math.max(JUMP_SECONDS, elapsed * DRIFT)) add('step', stepped, axis);
  }
}

/**
 * Whether the boot-time clock continued from one boot to the next, as for a container that was restarted on a running kernel. Ids are those
 * of src/core/platform/boot-id.ts, which start with the kernel's own.
 */
export function sharesClock(before: string | null, now: string): boolean {
  const kernel = (id: string): string => (id.includes('/') ? (id.split('/')[0] as string) : '');
  return before !== null && (before === now || (kernel(now) !== '' && kernel(before) === kernel(now)));
}

/** The time from one `minute`, `begin` or `resume` to the next `minute`. */
export interface Interval {
  /** On the run's axis. */
  readonly from: number;
  readonly to: number;
  /** Seconds of CLOCK_MONOTONIC, without `stalledSeconds`. */
  readonly awakeSeconds: number;
  /** Seconds of CLOCK_MONOTONIC. */
  readonly monotonicSeconds: number;
  /** Time in which the observer itself was not scheduled. */
  readonly stalledSeconds: number;
  /** True for the first interval of an observed span, after `begin` or `resume`. */
  readonly fresh: boolean;
  readonly hertz: number;
  /** Wall clock − axis in seconds, at the end and, if the clock was set, before that, newest first. */
  readonly wallOffsets: readonly number[];
}
