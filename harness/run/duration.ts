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

/** `168 h`, `3 h 12 min`, `10 min`, `1 min 30 s`, `45 s`: two units at most, cut off rather than rounded up. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = whole % 60;
  if (hours > 0) return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`;
  if (minutes > 0) return rest === 0 ? `${minutes} min` : `${minutes} min ${rest} s`;
  return `${rest} s`;
}
