const UNIT_SECONDS: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, min: 60, s: 1 };
const PART = /(\d+(?:\.\d+)?)\s*(d|h|min|m|s)/gy;

/** The shortest run from which anything can be told, and the longest that anybody means. */
export const SHORTEST_SECONDS = 10;
export const LONGEST_SECONDS = 366 * 86_400;

export const DURATION_ALLOWED = 'a length of time such as 168h, 10m, 90s or 1h30m, from 10s to 366d';

/** Seconds of `168h`, `10m`, `90s`, `7d`, `1h30m`; null: it is not one, or out of range. */
export function parseDuration(text: string): number | null {
  let seconds = 0;
  let at = 0;
  PART.lastIndex = 0;
  for (let match = PART.exec(text); match; match = PART.exec(text)) {
    seconds += Number(match[1]) * (UNIT_SECONDS[match[2] as string] as number);
    at = PART.lastIndex;
  }
  return at === text.length && seconds >= SHORTEST_SECONDS && seconds <= LONGEST_SECONDS ? seconds : null;
}
