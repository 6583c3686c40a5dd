import type { Arrived } from '../../../src/ros/subscription.ts';

/** What a message tells beyond itself. */
export interface Heard {
  /** Messages of this publisher that were written before this one, after the one before, and never came. */
  readonly missing: number;
  /** Another publisher spoke since this one did: two of them speak in the same name. */
  readonly interrupted: boolean;
}

interface Speaker {
  readonly publisher: string;
  last: number;
}

/**
 * Follows the sequence numbers of whoever publishes in the name of the watched node. A restart of the service is a new publisher, and the
 * old one is never heard again.
 */
export class Speakers {
  #current: Speaker | null = null;
  #former: Speaker | null = null;

  hear({ publisher, sequenceNumber }: Arrived): Heard {
    if (publisher === null || sequenceNumber === null) return { missing: 0, interrupted: false };
    if (this.#current?.publisher === publisher) {
      const missing = Math.max(0, sequenceNumber - this.#current.last - 1);
      // Joining anew brings the last ones once more.
      this.#current.last = Math.max(this.#current.last, sequenceNumber);
      return { missing, interrupted: false };
    }
    const interrupted = this.#former?.publisher === publisher;
    const speaker = interrupted && this.#former ? this.#former : { publisher, last: sequenceNumber };
    speaker.last = Math.max(speaker.last, sequenceNumber);
    this.#former = this.#current;
    this.#current = speaker;
    return { missing: 0, interrupted };
  }
}
