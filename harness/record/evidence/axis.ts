import { sharesClock } from '../boots.ts';
import type { BeginEntry, Clocked, ResumeEntry } from '../entries.ts';

/** Time slept through, or a step of the wall clock, as the clocks of two neighbouring entries show it. */
export interface ClockEvent {
  readonly kind: 'suspend' | 'step';
  /** A step is signed: positive when the clock was put forward. */
  readonly seconds: number;
  /** On the run's axis: when it fell asleep, or when the clock was set, as far as can be told. */
  readonly at: number;
  /** The time of the wall clock right after it lies between these, in ms. */
  readonly earliest: number;
  readonly latest: number;
}

interface Placed extends Clocked {
  readonly axis: number;
}

/** What differs by less is drift. */
const JUMP_SECONDS = 1;
/** A wall clock may be slewed or drift by this share without having been stepped. */
const DRIFT = 0.0005;
/** A clock entry is written at most this long after what it tells. */
const DETECTION_MS = 5000;

/**
 * The run's own axis: 0 is its begin; it goes with the boot-time clock, which neither steps nor stops, and over a reboot by the wall
 * clock, though by no less than the time since the boot (a computer without a battery begins in the past).
 */
export class Axis {
  readonly events: ClockEvent[] = [];
  /** Of the present boot: axis − boot-time clock. */
  #offset = 0;
  #bootId: string | null = null;
  #last: Placed | null = null;

  /** The boot that the last entry was written in; counts from 0. */
  boot = 0;

  begin(entry: BeginEntry): number {
    this.#offset = -entry.boot;
    this.#bootId = entry.boot_id;
    this.#last = { ...clocksOf(entry), axis: 0 };
    return 0;
  }

  /** Whether the machine was booted since the entry before. */
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
   * Where an entry lies on the axis. What its clocks tell beside those of the entry before becomes an event; `detected`: it is a
   * clock entry, written right after such an event. Entries with earlier clocks than the one before tell nothing of that kind.
   */
  place(entry: Clocked, detected: boolean): number {
    const axis = this.at(entry);
    const last = this.#last;
    if (last === null) {
      this.#last = { ...clocksOf(entry), axis };
      return axis;
    }
    if (entry.boot <= last.boot) return axis;
    this.#compare(last, entry, axis, detected);
    this.#last = { ...clocksOf(entry), axis };
    return axis;
  }

  /** Wall clock − axis, in seconds, by the last entry. */
  wallOffset(): number {
    return this.#last === null ? 0 : this.#last.wall / 1000 - this.#last.axis;
  }

  #compare(last: Placed, entry: Clocked, axis: number, detected: boolean): void {
    const elapsed = entry.boot - last.boot;
    const slept = inMilliseconds(elapsed - (entry.mono - last.mono));
    if (slept >= JUMP_SECONDS) {
      const earliest = detected ? entry.wall - DETECTION_MS : last.wall + slept * 1000;
      this.events.push({ kind: 'suspend', seconds: slept, at: Math.max(last.axis, axis - slept), earliest, latest: entry.wall });
    }
    const stepped = inMilliseconds((entry.wall - last.wall) / 1000 - elapsed);
    if (Math.abs(stepped) >= Math.max(JUMP_SECONDS, elapsed * DRIFT)) {
      const earliest = detected ? entry.wall - DETECTION_MS : last.wall + stepped * 1000;
      this.events.push({ kind: 'step', seconds: stepped, at: axis, earliest, latest: entry.wall });
    }
  }
}

function clocksOf({ boot, mono, wall }: Clocked): Clocked {
  return { boot, mono, wall };
}

/** Clocks are told in milliseconds; what is between them is the rounding of sums. */
function inMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
