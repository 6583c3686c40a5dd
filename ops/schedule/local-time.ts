import { parse } from 'node-cron';
import { DAY_MS, isoUtc, MINUTE_MS } from '../../src/core/time/time.ts';

/** The local time of a time zone; null selects the machine's zone. */
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

  /** The first moment after `afterMs` at which the local time equals `local`; if daylight saving skips that time, a moment nearby. */
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

/** Long enough for the 29th of February, which recurs within eight years. */
const HORIZON_DAYS = 3660;

/**
 * The scheduled times of a cron expression in local time: milliseconds as if the local clock showed UTC, so that every day has 24 hours and
 * daylight saving is a step of the clock. node-cron parses the expression. It lists only times after now, at 0.1 ms each, so it could not
 * count missed times and would take a minute for the minutes of a year.
 */
export class CronTimes {
  /** True if the hour or the minute starts with *: the job then runs at each moment at which the local clock shows a matching time. */
  readonly followsClock: boolean;
  readonly #minutesOfDay: readonly number[];
  readonly #matchesDay: (day: number) => boolean;
  /** The result of the last search, which stays valid until that time is reached, for every heartbeat and every write of the state. */
  #found = { after: 0, next: 0 };

  /** `expression` has been validated by cronProblem. */
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

  /** The number of scheduled times after one local time up to and including another, and the last of them. */
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

  /** The first scheduled time after a local time, or null if there is none within ten years. */
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
