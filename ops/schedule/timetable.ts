import { parse } from 'node-cron';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { type Day, dayAt, type Stretch, stretchesAround, type Zone } from './zone.ts';

/** After so long without a day that fits there is none: even the 29th of February comes again within eight years. */
const HORIZON_DAYS = 3660;
const DAYS_KEPT = 4;
/** Of longer times the days in the middle are not worked out, which for a schedule of minutes would take a while: changes of clocks do not count there. */
const EXACT_DAYS = 60;

/**
 * The times of a schedule in a zone. node-cron reads the expression. When its times are is worked out here, because node-cron's own
 * timing passes over a daily time that the change to summer time leaves out, and pauses for the hour that comes twice in autumn.
 *
 * - Where the hour or the minute begins with *, local clocks are followed as they run: each moment at which they show a fitting time.
 * - Else each fitting time of a day counts once: the first of two, and where it is left out, the moment at which clocks are put forward.
 */
export class Timetable {
  readonly #zone: Zone;
  readonly #minutesOfDay: readonly number[];
  readonly #days: ReadonlySet<number>;
  readonly #months: ReadonlySet<number>;
  readonly #weekdays: ReadonlySet<number>;
  readonly #followsClock: boolean;
  /** The days asked for last: nearly always those that are asked for next. */
  readonly #known = new Map<Day, readonly number[]>();

  /** `expression` has passed cronProblem. */
  constructor(expression: string, zone: Zone) {
    const { dayOfMonth, dayOfWeek, hour, minute, month } = parse(expression);
    this.#zone = zone;
    this.#minutesOfDay = hour.flatMap((h) => minute.map((m) => h * 60 + m)).sort((a, b) => a - b);
    this.#days = new Set(dayOfMonth as number[]);
    this.#months = new Set(month);
    this.#weekdays = new Set(dayOfWeek as number[]);
    this.#followsClock = expression
      .trim()
      .split(/ +/, 2)
      .some((field) => field.startsWith('*'));
  }

  /** Whether times of a day count once each, whatever clocks do. */
  get isFixed(): boolean {
    return !this.#followsClock;
  }

  /** The first time after a moment; null: there is none within ten years. */
  next(afterMs: number): number | null {
    // Of the day before the last times may still lie ahead: clocks can be put back over midnight.
    const first = dayAt(this.#zone, afterMs) - DAY_MS;
    for (let day = first; day < first + HORIZON_DAYS * DAY_MS; day += DAY_MS) {
      const due = this.#fits(day) ? this.#duesOn(day).find((ms) => ms > afterMs) : undefined;
      if (due !== undefined) return due;
    }
    return null;
  }

  /** How many times there are after one moment up to another, that included, and the last of them. */
  within(afterMs: number, toMs: number): { readonly count: number; readonly lastMs: number | null } {
    let count = 0;
    let lastMs: number | null = null;
    if (toMs <= afterMs) return { count, lastMs };
    const first = dayAt(this.#zone, afterMs) - DAY_MS;
    const last = dayAt(this.#zone, toMs) + DAY_MS;
    for (let day = first; day <= last; day += DAY_MS) {
      if (!this.#fits(day)) continue;
      if (day > first + 2 * DAY_MS && day < last - EXACT_DAYS * DAY_MS) {
        count += this.#minutesOfDay.length;
        continue;
      }
      for (const ms of this.#duesOn(day)) {
        // Where a zone leaves out a whole day, its times fall together with the next one's.
        if (ms <= Math.max(afterMs, lastMs ?? afterMs) || ms > toMs) continue;
        count += 1;
        lastMs = ms;
      }
    }
    return { count, lastMs: lastMs ?? (count > 0 ? this.#lastBefore(toMs) : null) };
  }

  /** The last time up to a moment, where there is one within ten years. */
  #lastBefore(toMs: number): number | null {
    const first = dayAt(this.#zone, toMs) + DAY_MS;
    for (let day = first; day > first - HORIZON_DAYS * DAY_MS; day -= DAY_MS) {
      const due = this.#fits(day) ? this.#duesOn(day).findLast((ms) => ms <= toMs) : undefined;
      if (due !== undefined) return due;
    }
    return null;
  }

  #fits(day: Day): boolean {
    const date = new Date(day);
    return this.#months.has(date.getUTCMonth() + 1) && this.#days.has(date.getUTCDate()) && this.#weekdays.has(date.getUTCDay());
  }

  #duesOn(day: Day): readonly number[] {
    const known = this.#known.get(day);
    if (known) return known;
    const dues = this.#workOut(day);
    if (this.#known.size >= DAYS_KEPT) this.#known.clear();
    this.#known.set(day, dues);
    return dues;
  }

  #workOut(day: Day): readonly number[] {
    const stretches = stretchesAround(this.#zone, day);
    const dues = new Set<number>();
    for (const minute of this.#minutesOfDay) {
      const local = day + minute * MINUTE_MS;
      const moments = stretches.map((stretch) => momentIn(stretch, local)).filter((ms) => ms !== null);
      if (this.#followsClock) for (const ms of moments) dues.add(ms);
      // The change lies between two stretches: where it left the time out, it takes the time's place.
      else dues.add(moments[0] ?? (stretches[1] as Stretch).fromMs);
    }
    return [...dues].sort((a, b) => a - b);
  }
}

/** When clocks show a local time within a stretch; null: not in this one. */
function momentIn({ fromMs, offsetMs, toMs }: Stretch, local: number): number | null {
  const ms = local - offsetMs;
  return ms >= fromMs && ms < toMs ? ms : null;
}
