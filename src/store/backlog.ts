/** A segment that is not in the database yet, as its file in the tail tells. */
export interface WaitingSegment {
  readonly segment: number;
  readonly bytes: number;
  readonly samples: number;
}

/** The segments that wait to be written, oldest first. Beyond what may wait the oldest samples are given up. */
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

  /** The newest; null: none waits. */
  get last(): number | null {
    return this.#waiting.at(-1)?.segment ?? null;
  }

  /** Samples that wait. */
  get samples(): number {
    return this.#waiting.reduce((sum, { samples }) => sum + samples, 0);
  }

  /** Samples that had to be given up. */
  get lost(): number {
    return this.#lost;
  }

  push(segment: WaitingSegment): void {
    this.#waiting.push(segment);
  }

  /** Only these wait. */
  replace(waiting: readonly WaitingSegment[]): void {
    this.#waiting = [...waiting];
  }

  /** Those up to and with this segment are written; `remove` clears away what is left of each. */
  written(upToSegment: number, remove: (segment: number) => void): void {
    for (const { segment } of this.#waiting) if (segment <= upToSegment) remove(segment);
    this.#waiting = this.#waiting.filter(({ segment }) => segment > upToSegment);
  }

  /**
   * Gives up the samples of the oldest segments while too much waits; alerts and requests of a shutdown are never. `keepRare` cuts
   * a segment down to those and tells the bytes that are left of it. Returns the segments that were cut.
   */
  giveUpOldest(keepRare: (segment: number) => number): number[] {
    const cut: number[] = [];
    let bytes = this.#waiting.reduce((sum, segment) => sum + segment.bytes, 0);
    for (const [i, { segment, samples, bytes: before }] of this.#waiting.entries()) {
      if (bytes <= this.#maxBytes || i === this.#waiting.length - 1) break;
      if (samples === 0) continue;
      const kept = keepRare(segment);
      this.#waiting[i] = { segment, samples: 0, bytes: kept };
      bytes -= before - kept;
      this.#lost += samples;
      cut.push(segment);
    }
    this.#waiting = this.#waiting.filter(({ samples, bytes: kept }) => samples > 0 || kept > 0);
    return cut;
  }
}
