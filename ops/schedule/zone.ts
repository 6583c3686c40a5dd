/** A day of the calendar, as its midnight in milliseconds of UTC: days are counted, zones come in where days become moments. */
export type Day = number;

const DAY_MS = 86_400_000;

/** A time zone; null stands for the machine's. */
export interface Zone {
  /** What local clocks show minus UTC at a moment, in milliseconds. */
  offsetMs(atMs: number): number;
}

export function zoneOf(name: string | null): Zone {
  if (name === null) return { offsetMs: (atMs) => -new Date(atMs).getTimezoneOffset() * 60_000 };
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return {
    offsetMs: (atMs) => {
      const wholeMs = Math.floor(atMs / 1000) * 1000;
      const parts: Record<string, number> = {};
      for (const { type, value } of format.formatToParts(wholeMs)) parts[type] = Number(value);
      const { day, hour, minute, month, second, year } = parts as Record<'day' | 'hour' | 'minute' | 'month' | 'second' | 'year', number>;
      return Date.UTC(year, month - 1, day, hour, minute, second) - wholeMs;
    },
  };
}

/** The day that local calendars show at a moment. */
export function dayAt(zone: Zone, atMs: number): Day {
  return Math.floor((atMs + zone.offsetMs(atMs)) / DAY_MS) * DAY_MS;
}

/** Time between two changes of the local clock, which shows UTC plus `offsetMs` in it: half open. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  readonly offsetMs: number;
}

/** Further than this no zone is from UTC; nor does any turn its clocks twice within so long. */
const MARGIN_MS = 15 * 3_600_000;

/** The stretches of uniform local time, one or two, around a day: they hold each of its moments, and some before and after. */
export function stretchesAround(zone: Zone, day: Day): readonly Stretch[] {
  const fromMs = day - MARGIN_MS;
  const toMs = day + DAY_MS + MARGIN_MS;
  const before = zone.offsetMs(fromMs);
  const after = zone.offsetMs(toMs);
  if (before === after) return [{ fromMs, toMs, offsetMs: before }];
  let [low, high] = [fromMs, toMs];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone.offsetMs(middle) === before) low = middle;
    else high = middle;
  }
  return [
    { fromMs, toMs: high, offsetMs: before },
    { fromMs: high, toMs, offsetMs: after },
  ];
}
