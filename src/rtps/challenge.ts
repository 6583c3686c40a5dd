import { closeSync, openSync, readSync } from 'node:fs';
import type { EntityId } from './protocol.ts';

/** One of discovery's writers, which every participant reads and acknowledges. */
export interface NumberedWriter {
  readonly entity: EntityId;
  /** The number of its last change. */
  readonly last: number;
}

/**
 * Fast DDS takes a tenth of a microsecond for each number that a first heartbeat passes over, so they have to be small; two writers'
 * together are four billion.
 */
const NUMBER_OCTETS = 2;
/** Acknowledgements that were wrong are remembered: when they come again they are no further guesses. */
const MOST_REMEMBERED = 64;

/** 1 to 65,535, not to be guessed. From the kernel: node:crypto would cost the service 3 MB. */
function secretNumber(): number {
  const octets = Buffer.alloc(NUMBER_OCTETS);
  const file = openSync('/dev/urandom', 'r');
  try {
    readSync(file, octets);
  } finally {
    closeSync(file);
  }
  return octets.readUInt16BE() || 1;
}

/**
 * What proves that a participant receives what is sent to its address: towards it discovery's writers number their changes from numbers on
 * that are not to be guessed. A reader acknowledges all below the first heartbeat that it reads, so one that acknowledges up to just these
 * numbers has read it.
 */
export class Challenge {
  readonly #writers: readonly NumberedWriter[];
  readonly #most: number;
  readonly #firsts = new Map<EntityId, number>();
  readonly #answered = new Set<EntityId>();
  readonly #wrong = new Set<number>();

  /** `most`: a number beyond it is not reached, however far ahead the participant says to be. */
  constructor(writers: readonly NumberedWriter[], most: number) {
    this.#writers = writers;
    this.#most = most;
    for (const { entity } of writers) this.#firsts.set(entity, 1 + secretNumber());
  }

  /** The number that a writer's first change has on the wire. */
  firstOf(writer: EntityId): number {
    return this.#firsts.get(writer) ?? 1;
  }

  /**
   * A reader at the participant's address acknowledges all below `base`. True: the last one that was missing, and the participant is
   * proven. A wrong one makes all numbers others, so that they have to be guessed at once; but not one that answers former numbers.
   */
  answer(writer: EntityId, base: number): boolean {
    // It asks for the first heartbeat.
    if (base <= 1) return false;
    if (base !== this.#firsts.get(writer)) {
      if (!this.#wrong.has(base)) this.renew(writer, base);
      return false;
    }
    this.#answered.add(writer);
    return this.#answered.size === this.#firsts.size;
  }

  /** Other numbers, above those before, and above where the participant says to be: it may know the writer from before. */
  renew(writer?: EntityId, base = 0): void {
    this.#answered.clear();
    if (this.#wrong.size > MOST_REMEMBERED) this.#wrong.clear();
    this.#wrong.add(base);
    for (const { entity, last } of this.#writers) {
      this.#wrong.add(this.firstOf(entity));
      const reached = Math.max(this.firstOf(entity) + last, entity === writer && base <= this.#most ? base : 0);
      this.#firsts.set(entity, (reached <= this.#most ? reached : 1) + secretNumber());
    }
  }
}

/** How long a participant may take to show once more that it receives what is sent to it. */
const PROOF_MS = 500;

/**
 * The same of a participant that is proven already: its numbers are made others, and what discovery's writers have is sent to it again under
 * these. Whoever acknowledges up to one of them has received it, and not earlier than now. A number that was never sent is a guess, and ends it.
 */
export class Proof {
  /** Whether it was proven, soon. */
  readonly result: Promise<boolean>;
  readonly #challenge: Challenge;
  readonly #open: Map<EntityId, NumberedWriter>;
  /** Up to here numbers may be acknowledged that were sent before. */
  readonly #before: ReadonlyMap<EntityId, readonly [first: number, last: number]>;
  #end: (isProven: boolean) => void = () => undefined;

  constructor(challenge: Challenge, writers: readonly NumberedWriter[]) {
    this.#challenge = challenge;
    this.#open = new Map(writers.map((writer) => [writer.entity, writer]));
    this.#before = new Map(
      writers.map(({ entity, last }) => [entity, [challenge.firstOf(entity), challenge.firstOf(entity) + last] as const]),
    );
    challenge.renew();
    this.result = new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), PROOF_MS);
      this.#end = (isProven) => {
        clearTimeout(timer);
        resolve(isProven);
      };
    });
  }

  /** The participant acknowledges all of a discovery writer below `base`. */
  answer(writer: EntityId, base: number): void {
    const open = this.#open.get(writer);
    const [beforeFirst, beforeLast] = this.#before.get(writer) ?? [0, 0];
    // It asks for the first heartbeat, or what it has received before is acknowledged late.
    if (!open || base <= 1 || (base >= beforeFirst && base <= beforeLast)) return;
    const first = this.#challenge.firstOf(writer);
    if (base < first || base > first + open.last) {
      this.#end(false);
      return;
    }
    this.#open.delete(writer);
    if (this.#open.size === 0) this.#end(true);
  }
}
