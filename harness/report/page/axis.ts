/** Ranges and labels of the axes: pure. */

export type Range = [low: number, high: number];

const RATE_BOTTOMS = [98, 95, 90, 80, 50, 0];

/** Of a rate in percent: near 100 where all of it is, so that a lost status can be seen. */
export function rateRange(min: number | null, max: number | null): Range {
  const bottom = RATE_BOTTOMS.find((candidate) => candidate <= (min ?? 100)) ?? 0;
  return [bottom, Math.max(100, max ?? 100) + (100 - bottom) * 0.12];
}

/** Of memory: a tenth of its height at least, since that is the limit, and noise must not look like a mountain range. */
export function memoryRange(min: number | null, max: number | null): Range {
  if (min === null || max === null) return [0, 100];
  const middle = (min + max) / 2;
  const span = Math.max(max - min, 0.1 * middle, 1);
  return [Math.max(0, middle - 0.65 * span), middle + 0.65 * span];
}

/** Of CPU in percent: from 0; up to the limit where the values come near it. */
export function cpuRange(max: number | null, limit: number): Range {
  const top = Math.max(0.5, (max ?? 0) * 1.25);
  return [0, top > 0.6 * limit ? Math.max(top, 1.15 * limit) : top];
}

const pad = (value: number): string => String(value).padStart(2, '0');
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Labels of times in seconds since the epoch, `step` seconds apart, in UTC: the day where one begins, else the time. */
export function timeLabel(at: number, step: number): string {
  const date = new Date(at * 1000);
  if (Number.isNaN(date.getTime())) return '';
  const isMidnight = at % 86_400 === 0;
  if (step >= 86_400 || isMidnight) return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  const time = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
  return step < 60 ? `${time}:${pad(date.getUTCSeconds())}` : time;
}

/** `2026-03-04 05:06:07 UTC`. */
export function moment(at: number): string {
  const date = new Date(at * 1000);
  return Number.isNaN(date.getTime()) ? '' : `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Part of the run that is shown, moved into the run and no shorter than a minute. */
export function clamped([from, to]: Range, [first, last]: Range): Range {
  const length = Math.min(Math.max(to - from, 60), last - first);
  const start = Math.min(Math.max(from, first), last - length);
  return [start, start + length];
}
