import { parse } from 'node-cron';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';

/** Even the 29th of February comes again within eight years. */
const HORIZON_DAYS = 3660;

/**
 * The scheduled times of a cron expression on the local clock: milliseconds as if that clock showed UTC, so that every day has 24 hours,
 * and daylight saving is a step of the clock. node-cron parses the expression. It lists only times after now, at 0.1 ms each: it could not
 * count those that were missed, and would take a minute for the minutes of a year.
 */
export class CronTimes {
  /** The hour or the minute begins with *: the job runs at each moment at which the local clock shows a matching time. */
  readonly followsClock: boolean;
  readonly #minutesOfDay: readonly number[];
  readonly #matchesDay: (day: number) => boolean;

  /** `expression` has passed cronProblem. */
  constructor(expression: string) {
    const { dayOfMonth, dayOfWeek, hour, minute, month } = parse(expression);
    this.followsClock = expression
      .trim()
      .split(/ +/, 2)
      .some((field) => field.startsWith('*'));
    const sorted = hour.flatMap((h) => minute.map((m) => (h * 60 + m) * MINUTE_MS)).sort((a, b) => a - b);
    this.#minutesOfDay = [...new Set(sorted)];
    this.#matchesDay = (day) => {
      const date = new Date(day);
      return month.includes(date.getUTCMonth() + 1) && dayOfMonth.includes(date.getUTCDate()) && dayOfWeek.includes(date.getUTCDay());
    };
  }

  /** How many times there are after one local time up to another, that included, and the last of them. */
  between(after: number, to: number): { readonly count: number; readonly last: number | null } {
    let count = 0;
    let last: number | null = null;
    for (let day = startOfDay(after); day <= to; day += DAY_MS) {
      if (!this.#matchesDay(day)) continue;
      const isWhole = day > after && day + DAY_MS <= to;
      const times = isWhole ? this.#minutesOfDay : this.#minutesOfDay.filter((minute) => day + minute > after && day + minute <= to);
      count += times.length;
      if (times.length > 0) last = day + (times.at(-1) as number);
    }
    return { count, last };
  }

  /** The first time after a local time; null: there is none within ten years. */
  next(after: number): number | null {
    const first = startOfDay(after);
    for (let day = first; day < first + HORIZON_DAYS * DAY_MS; day += DAY_MS) {
      const minute = this.#matchesDay(day) ? this.#minutesOfDay.find((minute) => day + minute > after) : undefined;
      if (minute !== undefined) return day + minute;
    }
    return null;
  }
}

function startOfDay(local: number): number {
  return Math.floor(local / DAY_MS) * DAY_MS;
}
