import { formatDuration } from '../../src/core/time/duration.ts';
import { messages } from './messages/messages.ts';

const two = (n: number): string => String(n).padStart(2, '0');

/** `12:03:05` in the browser's time zone, preceded by the date if it differs from that of `nowMs`. */
export function timeOfDay(ms: number, nowMs: number): string {
  const date = new Date(ms);
  const time = `${clock(date)}:${two(date.getSeconds())}`;
  return isSameDay(date, new Date(nowMs)) ? time : `${day(date, new Date(nowMs))}, ${time}`;
}

/** `12:03`, preceded by the date if it differs from that of `nowMs`. */
export function minuteOfDay(ms: number, nowMs: number): string {
  const date = new Date(ms);
  const now = new Date(nowMs);
  return isSameDay(date, now) ? clock(date) : `${day(date, now)}, ${clock(date)}`;
}

/** `4 Mar, 12:03:05`: always with the date. */
export function dateTime(ms: number, nowMs: number): string {
  const date = new Date(ms);
  return `${day(date, new Date(nowMs))}, ${clock(date)}:${two(date.getSeconds())}`;
}

/** `12:03` */
export function clock(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

function isSameDay(a: Date, b: Date): boolean {
  return a.getDate() === b.getDate() && a.getMonth() === b.getMonth() && a.getFullYear() === b.getFullYear();
}

function day(date: Date, now: Date): string {
  const year = date.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' as const };
  return new Intl.DateTimeFormat(messages.tag, { day: 'numeric', month: 'short', ...year }).format(date);
}

/** Rounded to seconds, the two largest units: `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function duration(seconds: number): string {
  const { day, hour, minute, second } = messages.units;
  return formatDuration(Math.max(0, Math.round(seconds)), 'd', { d: day, h: hour, min: minute, s: second });
}

/** By language and digits: creating a formatter takes longer than using it. */
const formatters = new Map<string, Intl.NumberFormat>();

/** A number in the form of the language. */
export function formatted(value: number, least: number, most: number): string {
  const key = `${messages.tag} ${least} ${most}`;
  const formatter =
    formatters.get(key) ??
    new Intl.NumberFormat(messages.tag, { minimumFractionDigits: least, maximumFractionDigits: most, useGrouping: false });
  formatters.set(key, formatter);
  return formatter.format(Number(value.toFixed(most)) || 0); // -0 would be shown with its sign.
}

/** Always one decimal place, so that the layout does not shift. */
export function decimal(value: number): string {
  return formatted(value, 1, 1);
}

/** A threshold with at most two decimal places and no trailing zeros. */
export function limit(value: number, unit: string): string {
  return `${formatted(value, 0, 2)} ${unit}`.trim();
}

/** A publish rate: two significant digits below 0.1 Hz, two decimal places below 100 Hz, none above. */
export function hertz(value: number): string {
  const digits = value < 0.1 ? Math.max(0, 1 - Math.floor(Math.log10(value || 1))) : value < 100 ? 2 : 0;
  return `${formatted(value, value < 0.1 ? 0 : digits, digits)} Hz`;
}

export function bytes(count: number): string {
  if (count < 1e6) return `${formatted(count / 1e3, 0, 0)} kB`;
  const digits = count < 1e7 || count >= 1e9 ? 1 : 0;
  return count < 1e9 ? `${formatted(count / 1e6, digits, digits)} MB` : `${formatted(count / 1e9, 1, 1)} GB`;
}
