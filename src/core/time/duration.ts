import { roundToMilliseconds } from './time.ts';

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const;

type DurationUnit = (typeof UNITS)[number][0];

const SYMBOLS: Readonly<Record<DurationUnit, string>> = { d: 'd', h: 'h', min: 'min', s: 's' };

/**
 * `3 d 4 h`, `2 h 5 min`, `1 min 30 s`, `45 s`: the two largest units at most, never rounded up, so that 59.9 s are not yet a minute.
 * Digits below a millisecond are ignored, because they are artefacts of binary fractions. With `largestUnit` `h`, a week is `168 h`.
 * `symbols` are the units in another language.
 */
export function formatDuration(seconds: number, largestUnit: 'd' | 'h' = 'd', symbols = SYMBOLS): string {
  const units = largestUnit === 'd' ? UNITS : UNITS.slice(1);
  let rest = roundToMilliseconds(seconds);
  const first = units.findIndex(([, length]) => rest >= length);
  if (first < 0) return `0 ${symbols.s}`;
  const parts: string[] = [];
  for (const [unit, length] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count} ${symbols[unit]}`);
  }
  return parts.join(' ');
}
