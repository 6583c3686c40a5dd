import { METRICS, type Readings } from './types.ts';

/** A point of history: a sample, or the mean of a step of `samples` samples. */
export interface Point {
  readonly timestampMs: number;
  readonly readings: Readings;
  readonly samples: number;
}

/** As a chart wants it: times in seconds, and a column of values for each metric; null is a gap. */
export interface Columns {
  readonly seconds: number[];
  readonly metrics: (number | null)[][];
}

interface Bucket {
  readonly startMs: number;
  samples: number;
  /** In the order of METRICS. */
  readonly sums: number[];
  readonly counts: number[];
}

/**
 * The shown window of samples as a ring of buckets, each holding the mean of its samples: memory depends on the window and not
 * on how often is measured. Times are the machine's wall clock.
 */
export class Series {
  readonly windowMs: number;
  readonly bucketMs: number;
  readonly #ring: (Bucket | undefined)[];
  /** Index of the oldest bucket. */
  #first = 0;
  #length = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(windowMs: number, bucketMs: number) {
    this.windowMs = windowMs;
    this.bucketMs = bucketMs;
    // One at each end lies in the window only in part.
    this.#ring = new Array<Bucket | undefined>(Math.ceil(windowMs / bucketMs) + 2);
  }

  get length(): number {
    return this.#length;
  }

  /** Adds a sample. One that is older than the last says that the machine's clock was set back: what came after it is dropped. */
  add(timestampMs: number, readings: Readings): void {
    if (timestampMs === this.#lastMs) return;
    const startMs = this.#start(timestampMs);
    if (timestampMs < this.#lastMs) while (this.#length > 0 && this.#at(this.#length - 1).startMs > startMs) this.#length -= 1;
    this.#lastMs = timestampMs;
    this.#collect({ timestampMs, readings, samples: 1 });
    this.#forgetOld();
  }

  /** Takes over what the API has of this window, in order of time; buckets that came live since then stay. */
  fill(points: readonly Point[]): void {
    const live = this.#buckets();
    this.#length = 0;
    for (const point of points) {
      const last = this.#length > 0 ? this.#at(this.#length - 1) : null;
      if (last === null || this.#start(point.timestampMs) >= last.startMs) this.#collect(point);
    }
    for (const bucket of live) this.#join(bucket);
    this.#forgetOld();
  }

  /**
   * What to draw. A gap comes where a metric was unavailable, and where two neighbours are further apart than `gapMs`.
   */
  columns(gapMs: number): Columns {
    const columns: Columns = { seconds: [], metrics: METRICS.map(() => []) };
    let beforeMs = Number.POSITIVE_INFINITY;
    for (const { startMs, sums, counts } of this.#buckets()) {
      if (startMs - beforeMs > gapMs) {
        columns.seconds.push((beforeMs + this.bucketMs) / 1000);
        for (const column of columns.metrics) column.push(null);
      }
      columns.seconds.push(startMs / 1000);
      columns.metrics.forEach((column, m) => {
        const count = counts[m] ?? 0;
        column.push(count > 0 ? (sums[m] ?? 0) / count : null);
      });
      beforeMs = startMs;
    }
    return columns;
  }

  #start(timestampMs: number): number {
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

  #collect({ timestampMs, readings, samples }: Point): void {
    const startMs = this.#start(timestampMs);
    let bucket = this.#length > 0 ? this.#at(this.#length - 1) : null;
    if (bucket?.startMs !== startMs) {
      bucket = { startMs, samples: 0, sums: METRICS.map(() => 0), counts: METRICS.map(() => 0) };
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

  /** Appends a live bucket to the history; where both have one, that with more samples knows more. */
  #join(bucket: Bucket): void {
    const last = this.#length > 0 ? this.#at(this.#length - 1) : null;
    if (last === null || bucket.startMs > last.startMs) this.#push(bucket);
    else if (bucket.startMs === last.startMs && bucket.samples > last.samples) {
      this.#ring[(this.#first + this.#length - 1) % this.#ring.length] = bucket;
    }
  }

  #forgetOld(): void {
    if (this.#length === 0) return;
    const oldestMs = this.#at(this.#length - 1).startMs - this.windowMs - this.bucketMs;
    while (this.#length > 0 && this.#at(0).startMs < oldestMs) {
      this.#ring[this.#first] = undefined;
      this.#first = (this.#first + 1) % this.#ring.length;
      this.#length -= 1;
    }
  }
}
