import type { Judgement, Quantity } from '../engine/judgement.ts';

/** Formats of numbers, durations and times for all parts of a report, including the charts. */

const MAX_DIGITS = 12;
/** Differences beyond this many digits are artefacts of binary fractions. */
const NEARLY_INTEGER_DIGITS = 6;

function withDigits(value: number, digits: number, unit: string): string {
  const text = value.toLocaleString('en-US', { minimumFractionDigits: 0, maximumFractionDigits: digits, useGrouping: 'min2' });
  return unit === '' ? text : `${text} ${unit}`;
}

/** Three significant digits below 1, two decimals above. */
function usualDigits(value: number): number {
  const size = Math.abs(value);
  if (size >= 1 || size === 0) return 2;
  return Math.min(MAX_DIGITS, 2 - Math.floor(Math.log10(size)));
}

/** Such as `12,345`, `0.0123 %`, `not measured`. */
export function figure(value: number | null, unit: string): string {
  if (value === null || !Number.isFinite(value)) return 'not measured';
  let digits = usualDigits(value);
  // A value near an integer must not be shown as that integer: 167.9999 h is not 168, and 99.998 % is not 100 %.
  const max = Number.isInteger(value) ? digits : NEARLY_INTEGER_DIGITS;
  while (digits < max && Number.isInteger(Number(value.toFixed(digits)))) digits += 1;
  return withDigits(value, digits, unit);
}

export function quantity({ unit, value }: Quantity): string {
  return figure(value, unit);
}

/** Formats a cell of a table; null if unknown. */
export function cell(value: string | number | null): string {
  return typeof value === 'string' ? value : value === null ? '–' : figure(value, '');
}

/** The limit with its comparison: `< 10 %`. */
export function limit({ limit: { comparison, unit, value } }: Pick<Judgement, 'limit'>): string {
  return `${{ '<': '<', '<=': '≤', '>': '>', '>=': '≥' }[comparison]} ${figure(value, unit)}`;
}

/** The measured value, with enough digits that rounding moves it neither onto the limit, nor across it, nor to 100 %. */
export function measured({ limit: { unit, value: bound }, measured: { unit: own, value } }: Pick<Judgement, 'limit' | 'measured'>): string {
  if (value === null || own !== unit) return figure(value, own);
  let digits = usualDigits(value);
  const hides = (of: number): boolean => Math.sign(Number(value.toFixed(digits)) - of) !== Math.sign(value - of);
  while (digits < MAX_DIGITS && (hides(bound) || (unit === '%' && hides(100)))) digits += 1;
  return withDigits(value, digits, unit);
}

const ON_THE_LIMIT = { '<': 'too much', '<=': 'allowed', '>': 'not enough', '>=': 'enough' };

/** `0.9 % to spare`, `1.2 % beyond the limit`, `3 h short of the limit`, `on the limit: too much`. */
export function margin({ limit: { comparison, unit }, margin: by }: Pick<Judgement, 'limit' | 'margin'>): string {
  if (by === null) return 'not measured';
  if (by === 0) return `on the limit: ${ON_THE_LIMIT[comparison]}`;
  return by > 0 ? `${figure(by, unit)} to spare` : `${figure(-by, unit)} ${comparison.startsWith('<') ? 'beyond' : 'short of'} the limit`;
}

/** Formats bytes in MB of 1,000,000 bytes. */
export function megabytes(bytes: number | null): string {
  return figure(bytes === null ? null : bytes / 1e6, 'MB');
}

/** Formats an ISO 8601 time as `2026-03-04 05:06:07 UTC`. */
export function moment(iso: string): string {
  return iso.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/, '$1 $2 UTC');
}

/** The same format for seconds since the epoch. */
export function momentAt(epochSeconds: number): string {
  const date = new Date(epochSeconds * 1000);
  return Number.isNaN(date.getTime()) ? 'unknown' : moment(date.toISOString());
}

/** `one`, `one and two`, `one, two and three`. */
export function enumeration(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
