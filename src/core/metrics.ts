/** The four metrics, with their names in the REST API, in ROS messages and in alerts. Percent, or degrees Celsius. */
export const METRICS = ['cpu_percent', 'memory_percent', 'disk_percent', 'temperature'] as const;

export type Metric = (typeof METRICS)[number];

/** A measured value; null: unavailable, never 0. */
export type Reading = number | null;

export type Readings = Readonly<Record<Metric, Reading>>;

/**
 * Rounds to hundredths where a value is measured, so that the value evaluated, published, stored and served is the same number and can be
 * stored exactly in few bytes.
 */
export function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
