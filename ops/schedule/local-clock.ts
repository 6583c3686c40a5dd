import { DAY_MS, isoUtc } from '../../src/core/time.ts';

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
