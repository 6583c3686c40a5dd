/** The value below which `share` of the values lie (nearest rank). Throws when there is none. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort();
  const value = sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
  if (value === undefined) throw new Error('no values were measured');
  return value;
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
