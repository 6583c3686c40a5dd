/** The four metrics, by the names they have in the REST API, in ROS messages and in alerts. Percent, or degrees Celsius. */
export const METRICS = ['cpu_percent', 'memory_percent', 'disk_percent', 'temperature'] as const;

export type Metric = (typeof METRICS)[number];

/** A measured value, or null: unavailable. Never 0 for "could not be read". */
export type Reading = number | null;

export type Readings = Readonly<Record<Metric, Reading>>;

/**
 * Rounds to hundredths, once, where a value is measured: what is judged, published, stored and served is then the same
 * number, and storage can keep it exactly in few bytes.
 */
export function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
