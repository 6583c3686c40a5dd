const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
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

/** `12:03` */
export function clock(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

function isSameDay(a: Date, b: Date): boolean {
  return a.getDate() === b.getDate() && a.getMonth() === b.getMonth() && a.getFullYear() === b.getFullYear();
}

function day(date: Date, now: Date): string {
  const text = `${date.getDate()} ${MONTHS[date.getMonth()]}`;
  return date.getFullYear() === now.getFullYear() ? text : `${text} ${date.getFullYear()}`;
}

/** The two largest units: `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  const parts = [
    [Math.floor(s / 86_400), 'd'],
    [Math.floor(s / 3600) % 24, 'h'],
    [Math.floor(s / 60) % 60, 'min'],
    [s % 60, 's'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return '0 s';
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** Always one decimal place, so that the layout does not shift. */
export function decimal(value: number): string {
  const text = value.toFixed(1);
  return text === '-0.0' ? '0.0' : text;
}

/** A threshold with at most two decimal places and no trailing zeros. */
export function limit(value: number, unit: string): string {
  return `${Number(value.toFixed(2))} ${unit}`.trim();
}

/** A publish rate: two significant digits below 0.1 Hz, two decimal places below 100 Hz, none above. */
export function hertz(value: number): string {
  return `${value < 0.1 ? Number(value.toPrecision(2)) : value < 100 ? value.toFixed(2) : value.toFixed(0)} Hz`;
}

export function bytes(count: number): string {
  if (count < 1e6) return `${(count / 1e3).toFixed(0)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
