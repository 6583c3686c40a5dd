import type { BeginEntry, Clocked, ResumeEntry } from '../entries.ts';

/** A suspend, or a step of the wall clock, derived from the clocks of two neighbouring entries. */
export interface ClockEvent {
  readonly kind: 'suspend' | 'step';
  /** A step is signed: positive when the clock was put forward. */
  readonly seconds: number;
  /** On the run's axis: the begin of the suspend, or the time of the step, as precisely as the entries show it. */
  readonly at: number;
  /** The wall-clock time right after it lies between these, in ms. */
  readonly earliest: number;
  readonly latest: number;
}

interface Positioned extends Clocked {
  readonly axis: number;
}

/** A smaller difference is drift. */
const JUMP_SECONDS = 1;
/** A wall clock may be slewed or drift by this share without having been stepped. */
const DRIFT = 0.0005;
/** A clock entry is written at most this long after the event. */
const DETECTION_MS = 5000;

/**
 * The run's own axis: 0 is its begin; it goes with the boot-time clock, which neither steps nor stops, and over a reboot by the wall
 * clock, though by no less than the time since the boot (a computer without a battery begins in the past).
 */
export class TimeAxis {
  readonly events: ClockEvent[] = [];
  /** Of the present boot: axis − boot-time clock. */
  #offset = 0;
  #bootId: string | null = null;
  #last: Positioned | null = null;

  /** Number of the boot that the last entry was written in, from 0. */
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
    return inMilliseconds(clocks.boot + this.#offset);
  }

  /**
   * Where an entry lies on the axis. A difference of its clocks to those of the previous entry becomes an event; `detected`: it is a
   * clock entry, written right after such an event. Entries with earlier clocks than the previous one make no event.
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

  /** Wall clock − axis, in seconds, by the last entry. */
  wallOffset(): number {
    return this.#last === null ? 0 : this.#last.wall / 1000 - this.#last.axis;
  }

  #compare(last: Positioned, { axis, boot, mono, wall }: Positioned, detected: boolean): void {
    const add = (kind: ClockEvent['kind'], seconds: number, at: number): void => {
      const earliest = detected ? wall - DETECTION_MS : last.wall + seconds * 1000;
      this.events.push({ kind, seconds, at, earliest, latest: wall });
    };
    const elapsed = boot - last.boot;
    const slept = inMilliseconds(elapsed - (mono - last.mono));
    if (slept >= JUMP_SECONDS) add('suspend', slept, Math.max(last.axis, axis - slept));
    const stepped = inMilliseconds((wall - last.wall) / 1000 - elapsed);
    if (Math.abs(stepped) >= Math.max(JUMP_SECONDS, elapsed * DRIFT)) add('step', stepped, axis);
  }
}

/** Clocks have milliseconds; finer digits are the rounding of sums. */
function inMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}

/**
 * Whether the boot-time clock went on from one boot to the next: a container that was started again, under a kernel that runs on. Ids are
 * those of src/core/platform/boot-id.ts, which begin with the kernel's own.
 */
export function sharesClock(before: string | null, now: string): boolean {
  const kernel = (id: string): string => (id.includes('/') ? (id.split('/')[0] as string) : '');
  return before !== null && (before === now || (kernel(now) !== '' && kernel(before) === kernel(now)));
}

/** From one `minute`, `begin` or `resume` to the next `minute`. */
export interface Interval {
  /** On the run's axis. */
  readonly from: number;
  readonly to: number;
  /** By CLOCK_MONOTONIC, without `stalledSeconds`. */
  readonly awakeSeconds: number;
  /** By CLOCK_MONOTONIC. */
  readonly monotonicSeconds: number;
  /** Time in which the observer itself did not get to run. */
  readonly stalledSeconds: number;
  /** The first of an observed span: after `begin` or `resume`. */
  readonly fresh: boolean;
  readonly hertz: number;
  /** Wall clock − axis in seconds, at the end and, where the clock was set, before that, newest first. */
  readonly wallOffsets: readonly number[];
}
