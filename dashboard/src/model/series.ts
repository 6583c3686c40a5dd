import { METRICS, type Readings } from '../types.ts';

/** A point of history: one sample, or the mean of `samples` samples. */
export interface Point {
  readonly timestampMs: number;
  readonly readings: Readings;
  readonly samples: number;
}

/** Chart data: times in seconds and one column of values per metric, in the order of METRICS; null is a gap. */
export interface Columns {
  readonly seconds: number[];
  readonly metrics: (number | null)[][];
  /** Lowest and highest values at the same times; the value itself where they are unknown. */
  readonly lows: (number | null)[][];
  readonly highs: (number | null)[][];
  /** Changes with every change of the data; no two series have the same. */
  readonly version: number;
}

/** The lowest and the highest values of a step. */
export interface BandStep {
  readonly startMs: number;
  readonly lows: Readings;
  readonly highs: Readings;
}

interface Bucket {
  readonly startMs: number;
  samples: number;
  /** In the order of METRICS. */
  readonly sums: number[];
  readonly counts: number[];
  readonly lows: (number | null)[];
  readonly highs: (number | null)[];
}

/**
 * The samples of the shown window as a ring of buckets, each holding the mean of its samples. Memory use depends on the window,
 * not on the sampling rate. Times are the shown node's wall clock.
 */
export class Series {
  readonly windowMs: number;
  readonly bucketMs: number;
  readonly #ring: (Bucket | undefined)[];
  /** Index of the oldest bucket. */
  #first = 0;
  #length = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  static #changes = 0;
  #version = ++Series.#changes;

  constructor(windowMs: number, bucketMs: number) {
    this.windowMs = windowMs;
    this.bucketMs = bucketMs;
    // The window may overlap the first and the last bucket only partly.
    this.#ring = new Array<Bucket | undefined>(Math.ceil(windowMs / bucketMs) + 2);
  }

  get length(): number {
    return this.#length;
  }

  /** Adds a sample. A sample older than the last means that the clock was set back; buckets with later times are dropped. */
  add(timestampMs: number, readings: Readings): void {
    if (timestampMs === this.#lastMs) return;
    this.#version = ++Series.#changes;
    const startMs = this.#bucketStart(timestampMs);
    if (timestampMs < this.#lastMs) while (this.#length > 0 && this.#at(this.#length - 1).startMs > startMs) this.#length -= 1;
    this.#lastMs = timestampMs;
    this.#addPoint({ timestampMs, readings, samples: 1 });
    const { lows, highs } = this.#at(this.#length - 1);
    for (const [m, metric] of METRICS.entries()) {
      lows[m] = lower(lows[m] ?? null, readings[metric]);
      highs[m] = higher(highs[m] ?? null, readings[metric]);
    }
    this.#dropOld();
  }

  /** Replaces the buckets with the API's history, oldest first; newer buckets from the event stream are kept. */
  fill(points: readonly Point[]): void {
    this.#version = ++Series.#changes;
    const live = this.#buckets();
    this.#length = 0;
    for (const point of points) {
      const last = this.#length > 0 ? this.#at(this.#length - 1) : null;
      if (last === null || this.#bucketStart(point.timestampMs) >= last.startMs) this.#addPoint(point);
    }
    for (const bucket of live) this.#mergeLive(bucket);
    this.#dropOld();
  }

  /** Adds the lowest and highest values of steps of `stepMs`, oldest first, to the buckets in them. */
  fillBand(steps: readonly BandStep[], stepMs: number): void {
    this.#version = ++Series.#changes;
    let next = 0;
    for (const bucket of this.#buckets()) {
      while (next < steps.length && (steps[next] as BandStep).startMs + stepMs <= bucket.startMs) next += 1;
      const step = steps[next];
      if (!step || bucket.startMs < step.startMs) continue;
      for (const [m, metric] of METRICS.entries()) {
        bucket.lows[m] = lower(bucket.lows[m] ?? null, step.lows[metric]);
        bucket.highs[m] = higher(bucket.highs[m] ?? null, step.highs[metric]);
      }
    }
  }

  /** Returns the data to draw. Unavailable values and neighbours further apart than `gapMs` make a gap. */
  columns(gapMs: number): Columns {
    const empty = (): (number | null)[][] => METRICS.map(() => []);
    const columns: Columns = { seconds: [], metrics: empty(), lows: empty(), highs: empty(), version: this.#version };
    let beforeMs = Number.POSITIVE_INFINITY;
    for (const { startMs, sums, counts, lows, highs } of this.#buckets()) {
      if (startMs - beforeMs > gapMs) {
        columns.seconds.push((beforeMs + this.bucketMs) / 1000);
        for (const table of [columns.metrics, columns.lows, columns.highs]) for (const column of table) column.push(null);
      }
      columns.seconds.push(startMs / 1000);
      columns.metrics.forEach((column, m) => {
        const count = counts[m] ?? 0;
        const mean = count > 0 ? (sums[m] ?? 0) / count : null;
        column.push(mean);
        columns.lows[m]?.push(mean === null ? null : (lows[m] ?? mean));
        columns.highs[m]?.push(mean === null ? null : (highs[m] ?? mean));
      });
      beforeMs = startMs;
    }
    return columns;
  }

  #bucketStart(timestampMs: number): number {
    return Math.floor(timestampMs / this.bucketMs) * this.bucketMs;
  }

  #at(index: number): Bucket {
    return this.#ring[(this.#first + index) % this.#ring.length] as Bucket;
  }

  #buckets(): Bucket[] {
    return Array.from({ length: this.#length }, (_, i) => this.#at(i));
  }

  #push(bucket: Bucket): void {
    if (this.#length === this.#ring.length) {
      this.#first = (this.#first + 1) % this.#ring.length;
      this.#length -= 1;
    }
    this.#ring[(this.#first + this.#length) % this.#ring.length] = bucket;
    this.#length += 1;
  }

  #addPoint({ timestampMs, readings, samples }: Point): void {
    const startMs = this.#bucketStart(timestampMs);
    let bucket = this.#length > 0 ? this.#at(this.#length - 1) : null;
    if (bucket?.startMs !== startMs) {
      bucket = { startMs, samples: 0, sums: METRICS.map(() => 0), counts: METRICS.map(() => 0), lows: [], highs: [] };
      this.#push(bucket);
    }
    bucket.samples += samples;
    for (const [m, metric] of METRICS.entries()) {
      const reading = readings[metric];
      if (reading === null) continue;
      bucket.sums[m] = (bucket.sums[m] ?? 0) + reading * samples;
      bucket.counts[m] = (bucket.counts[m] ?? 0) + samples;
    }
  }

  /** Appends a live bucket to the history. If both have a bucket for this time, the one with more samples is kept. */
  #mergeLive(bucket: Bucket): void {
    const last = this.#length > 0 ? this.#at(this.#length - 1) : null;
    if (last === null || bucket.startMs > last.startMs) this.#push(bucket);
    else if (bucket.startMs === last.startMs && bucket.samples > last.samples) {
      this.#ring[(this.#first + this.#length - 1) % this.#ring.length] = bucket;
    }
  }

  #dropOld(): void {
    if (this.#length === 0) return;
    const oldestMs = this.#at(this.#length - 1).startMs - this.windowMs - this.bucketMs;
    while (this.#length > 0 && this.#at(0).startMs < oldestMs) {
      this.#ring[this.#first] = undefined;
      this.#first = (this.#first + 1) % this.#ring.length;
      this.#length -= 1;
    }
  }
}

function lower(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

function higher(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
