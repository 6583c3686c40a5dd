import { parse } from 'node-cron';
import { DAY_MS, isoUtc, MINUTE_MS } from '../../src/core/time/time.ts';

/** What local clocks of a time zone show; null: the machine's zone. */
export class LocalClock {
  readonly #format: Intl.DateTimeFormat;

  constructor(timezone: string | null) {
    this.#format = new Intl.DateTimeFormat('en-US', { ...(timezone === null ? {} : { timeZone: timezone }), timeZoneName: 'longOffset' });
  }

  /** Local time minus UTC at a moment, in milliseconds. */
  offsetMs(atMs: number): number {
    const [, sign, ...parts] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(this.#format.format(atMs)) ?? [];
    const [hours = 0, minutes = 0, seconds = 0] = parts.map((part) => Number(part ?? 0));
    return (sign === '-' ? -1000 : 1000) * (hours * 3600 + minutes * 60 + seconds);
  }

  /** The first moment after `afterMs` at which local clocks show a time; where daylight saving skips that time, one nearby. */
  momentOf(local: number, afterMs: number): number {
    const moments = [local - DAY_MS, local + DAY_MS].map((day) => local - this.offsetMs(day)).sort((a, b) => a - b);
    return moments.find((ms) => ms > afterMs && ms + this.offsetMs(ms) === local) ?? (moments[1] as number);
  }

  /** `2026-06-10 12:05` */
  text(iso: string): string {
    const ms = Date.parse(iso);
    return isoUtc(ms + this.offsetMs(ms))
      .slice(0, 16)
      .replace('T', ' ');
  }
}

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
  /** The next time found last: it stays the answer until it has come, for every heartbeat and every write of the state. */
  #found = { after: 0, next: 0 };

  /** `expression` has passed cronProblem. */
  constructor(expression: string) {
    const { dayOfMonth, dayOfWeek, hour, minute, month } = parse(expression);
    this.followsClock = /^ *(?:\*|[^ ]+ +\*)/.test(expression);
    const minutes = hour.flatMap((h) => minute.map((m) => (h * 60 + m) * MINUTE_MS));
    this.#minutesOfDay = [...new Set(minutes)].sort((a, b) => a - b);
    this.#matchesDay = (day) => {
      const date = new Date(day);
      return month.includes(date.getUTCMonth() + 1) && dayOfMonth.includes(date.getUTCDate()) && dayOfWeek.includes(date.getUTCDay());
    };
  }

  /** How many times there are after one local time up to another, that included, and the last of them. */
  between(after: number, to: number): { readonly count: number; readonly last: number | null } {
    let count = 0;
    let last: number | null = null;
    if ((this.next(after) ?? Number.POSITIVE_INFINITY) > to) return { count, last };
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
    if (this.#found.after <= after && after < this.#found.next) return this.#found.next;
    const first = startOfDay(after);
    for (let day = first; day < first + HORIZON_DAYS * DAY_MS; day += DAY_MS) {
      const minute = this.#matchesDay(day) ? this.#minutesOfDay.find((minute) => day + minute > after) : undefined;
      if (minute === undefined) continue;
      this.#found = { after, next: day + minute };
      return day + minute;
    }
    return null;
  }
}

function startOfDay(local: number): number {
  return Math.floor(local / DAY_MS) * DAY_MS;
}
