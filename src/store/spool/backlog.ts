/** A segment that is not yet in the database; its records are in the spool. */
export interface WaitingSegment {
  readonly segment: number;
  readonly bytes: number;
  readonly samples: number;
  /** Those of `samples` that the spool did not accept: they are lost with the thread. */
  readonly unspooled?: number;
}

/** Segments waiting to be written, oldest first. Over the size limit the oldest samples are dropped. */
export class Backlog {
  readonly #maxBytes: number;
  #waiting: WaitingSegment[] = [];
  #lost = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** The newest waiting segment; null: none. */
  get last(): number | null {
    return this.#waiting.at(-1)?.segment ?? null;
  }

  get samples(): number {
    return this.#waiting.reduce((sum, { samples }) => sum + samples, 0);
  }

  get lost(): number {
    return this.#lost;
  }

  push(segment: WaitingSegment): void {
    this.#waiting.push(segment);
  }

  /** Continues with what the spool has, after a thread has ended. */
  replace(waiting: readonly WaitingSegment[]): void {
    for (const { unspooled = 0 } of this.#waiting) this.#lost += unspooled;
    this.#waiting = [...waiting];
  }

  /** Removes the segments up to and including this one; `remove` deletes the spool file of each. */
  written(upToSegment: number, remove: (segment: number) => void): void {
    for (const { segment } of this.#waiting) if (segment <= upToSegment) remove(segment);
    this.#waiting = this.#waiting.filter(({ segment }) => segment > upToSegment);
  }

  /**
   * Drops the samples of the oldest segments until the size limit is met; alerts and shutdown requests are never dropped. `dropSamples`
   * removes them from a spool file and returns its remaining size in bytes. Returns the segments that lost their samples.
   */
  dropOldestSamples(dropSamples: (segment: number) => number): number[] {
    const trimmed: number[] = [];
    const newest = this.last;
    let bytes = this.#waiting.reduce((sum, segment) => sum + segment.bytes, 0);
    this.#waiting = this.#waiting.flatMap((waiting) => {
      const { segment, samples } = waiting;
      // The file of a segment without records is removed once a commit has written the segments up to it.
      if (bytes <= this.#maxBytes || segment === newest || samples === 0) return [waiting];
      const left = dropSamples(segment);
      bytes -= waiting.bytes - left;
      this.#lost += samples;
      trimmed.push(segment);
      return left > 0 ? [{ segment, samples: 0, bytes: left }] : [];
    });
    return trimmed;
  }
}
