import { quantile as quantileOf } from '../../src/core/statistics/quantile.ts';

/** Same as in core, but throws for an empty list, because a benchmark that measured nothing must fail. */
export function quantile(values: ArrayLike<number>, share: number): number {
  if (values.length === 0) throw new Error('no values were measured');
  return quantileOf(values, share);
}

export function median(values: ArrayLike<number>): number {
  return quantile(values, 0.5);
}

export function worst(values: ArrayLike<number>): number {
  return quantile(values, 1);
}

export function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
