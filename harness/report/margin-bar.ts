import type { Judgement } from '../engine/judgement.ts';

/** Where things stand on a bar from 0 to 100. */
export interface MarginBar {
  /** From the left end to the measured value. */
  readonly measured: number;
  readonly limit: number;
  /** Which side of the limit is the right one. */
  readonly goodSide: 'left' | 'right';
}

/**
 * The bar of a criterion: the limit stands at three quarters where less is better; where more is better the bar ends a little beyond the
 * limit, and begins at 0, or near the limit where that is close to 100 %, since 98 and 99.9 % would look the same. A value outside of it
 * stands at its end. Null: not measured.
 */
export function marginBar({ limit, measured: { unit, value } }: Pick<Judgement, 'limit' | 'measured'>): MarginBar | null {
  if (value === null || !Number.isFinite(value) || unit !== limit.unit) return null;
  const isLess = limit.comparison.startsWith('<');
  const [from, to] = isLess ? [0, limit.value === 0 ? 1 : limit.value / 0.75] : goodAbove(limit.value, limit.unit);
  const place = (of: number): number => Math.round(Math.min(100, Math.max(0, ((of - from) / (to - from)) * 100)) * 100) / 100;
  return { measured: place(value), limit: place(limit.value), goodSide: isLess ? 'left' : 'right' };
}

function goodAbove(limit: number, unit: string): [from: number, to: number] {
  if (unit === '%' && limit >= 90 && limit < 100) return [100 - 4 * (100 - limit), 100];
  return [0, limit === 0 ? 1 : limit * 1.1];
}
