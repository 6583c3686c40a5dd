import type { Judgement, Quantity } from '../engine/judgement.ts';

/** Numbers as all four forms of a report write them. */

const MOST_DIGITS = 12;
/** Beyond it a difference is that of binary fractions. */
const NEARLY_DIGITS = 6;

function withDigits(value: number, digits: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: 0, maximumFractionDigits: digits, useGrouping: 'min2' });
}

/** Three digits that say something below 1, fewer decimals above. */
function usualDigits(value: number): number {
  const size = Math.abs(value);
  if (size >= 1 || size === 0) return 2;
  return Math.min(MOST_DIGITS, 2 - Math.floor(Math.log10(size)));
}

function withUnit(figure: string, unit: string): string {
  return unit === '' ? figure : `${figure} ${unit}`;
}

/** Such as `12,345`, `0.0123 %`, `not measured`. */
export function figure(value: number | null, unit: string): string {
  if (value === null || !Number.isFinite(value)) return 'not measured';
  let digits = usualDigits(value);
  // What is nearly a whole number must not read as one: 167.9999 h are not 168, nor is 99.998 % all of it.
  const most = Number.isInteger(value) ? digits : NEARLY_DIGITS;
  while (digits < most && Number.isInteger(Number(value.toFixed(digits)))) digits += 1;
  return withUnit(withDigits(value, digits), unit);
}

export function quantity({ unit, value }: Quantity): string {
  return figure(value, unit);
}

/** The limit as it has to be met: `< 10 %`. */
export function limit({ limit: { comparison, unit, value } }: Pick<Judgement, 'limit'>): string {
  return `${{ '<': '<', '<=': '≤', '>': '>', '>=': '≥' }[comparison]} ${figure(value, unit)}`;
}

/** The measured value, with as many digits as it takes that rounding moves it neither to the limit nor over it. */
export function measured({ limit: { unit, value: bound }, measured: { unit: own, value } }: Pick<Judgement, 'limit' | 'measured'>): string {
  if (value === null || own !== unit) return figure(value, own);
  let digits = usualDigits(value);
  const hides = (of: number): boolean => Math.sign(Number(value.toFixed(digits)) - of) !== Math.sign(value - of);
  while (digits < MOST_DIGITS && (hides(bound) || (unit === '%' && hides(100)))) digits += 1;
  return withUnit(withDigits(value, digits), unit);
}

const ON_THE_LIMIT = { '<': 'too much', '<=': 'allowed', '>': 'not enough', '>=': 'enough' };

/** How far on the right side of the limit: `0.9 % to spare`, `1.2 % beyond the limit`, `3 h short of the limit`, `on the limit: too much`. */
export function margin({ limit: { comparison, unit }, margin: by }: Pick<Judgement, 'limit' | 'margin'>): string {
  if (by === null) return 'not measured';
  if (by === 0) return `on the limit: ${ON_THE_LIMIT[comparison]}`;
  return by > 0 ? `${figure(by, unit)} to spare` : `${figure(-by, unit)} ${comparison.startsWith('<') ? 'beyond' : 'short of'} the limit`;
}

/** How long, never rounded up: `45 s`, `9 min 59 s`, `1 h 30 min`, `168 h`. */
export function duration(ofSeconds: number): string {
  const seconds = Math.floor(ofSeconds + 0.001);
  if (seconds < 60) return `${seconds} s`;
  const [big, bigName, small, smallName] =
    seconds < 3600
      ? [Math.floor(seconds / 60), 'min', seconds % 60, 's']
      : [Math.floor(seconds / 3600), 'h', Math.floor((seconds % 3600) / 60), 'min'];
  return small === 0 ? `${big} ${bigName}` : `${big} ${bigName} ${small} ${smallName}`;
}

/** Bytes in MB of 1,000,000. */
export function megabytes(bytes: number | null): string {
  return figure(bytes === null ? null : bytes / 1e6, 'MB');
}

/** `2026-03-04 05:06:07 UTC` of an ISO 8601 time. */
export function moment(iso: string): string {
  return iso.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/, '$1 $2 UTC');
}

/** Moment of a time on the run's axis. */
export function momentAt(begunEpochSeconds: number, at: number): string {
  const date = new Date((begunEpochSeconds + at) * 1000);
  return Number.isNaN(date.getTime()) ? 'not known' : moment(date.toISOString());
}

/** One, two and three: `one`, `one and two`, `one, two and three`. */
export function enumeration(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
