import { closeSync, openSync, readSync } from 'node:fs';
import type { EntityId } from '../wire/protocol.ts';

/** A discovery writer, which every participant reads and acknowledges. */
export interface NumberedWriter {
  readonly entity: EntityId;
  /** Sequence number of its last change. */
  readonly last: number;
}

/**
 * Fast DDS spends 0.1 µs per number below the first heartbeat, so the numbers must be small. Two writers of 16 bits each give four
 * billion combinations.
 */
const NUMBER_OCTETS = 2;
/** Wrong acknowledgements remembered: a repeated one is not another guess. */
const MAX_REMEMBERED = 64;

/** A secret random number, 1 to 65,535. Read from the kernel, since loading node:crypto takes 3 MB of memory. */
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
 * The proof that a participant receives datagrams at its address. Towards each participant the discovery writers number their changes
 * from secret random numbers. A reader acknowledges all numbers below the first heartbeat it reads, so one that acknowledges exactly
 * up to these numbers has received the heartbeats.
 */
export class Challenge {
  readonly #writers: readonly NumberedWriter[];
  readonly #max: number;
  readonly #firsts = new Map<EntityId, number>();
  readonly #acknowledged = new Set<EntityId>();
  readonly #wrong = new Set<number>();

  /** `max`: upper bound of the numbers, regardless of what the participant acknowledges. */
  constructor(writers: readonly NumberedWriter[], max: number) {
    this.#writers = writers;
    this.#max = max;
    for (const { entity } of writers) this.#firsts.set(entity, 1 + secretNumber());
  }

  /** The number of a writer's first change on the wire. */
  firstOf(writer: EntityId): number {
    return this.#firsts.get(writer) ?? 1;
  }

  /**
   * Handles an acknowledgement of all numbers below `base`. True: all writers are acknowledged correctly, so the participant is proven. A
   * wrong `base` renews all numbers, so that both must be guessed together; a response to former numbers does not.
   */
  acknowledge(writer: EntityId, base: number): boolean {
    // A request for the first heartbeat.
    if (base <= 1) return false;
    if (base !== this.#firsts.get(writer)) {
      if (!this.#wrong.has(base)) this.renew(writer, base);
      return false;
    }
    this.#acknowledged.add(writer);
    return this.#acknowledged.size === this.#firsts.size;
  }

  /**
   * Chooses new numbers, above the former ones and above the acknowledged `base`: the participant may have state of this writer from
   * before, and ignores lower numbers.
   */
  renew(writer?: EntityId, base = 0): void {
    this.#acknowledged.clear();
    if (this.#wrong.size > MAX_REMEMBERED) this.#wrong.clear();
    this.#wrong.add(base);
    for (const { entity, last } of this.#writers) {
      this.#wrong.add(this.firstOf(entity));
      const reached = Math.max(this.firstOf(entity) + last, entity === writer && base <= this.#max ? base : 0);
      this.#firsts.set(entity, (reached <= this.#max ? reached : 1) + secretNumber());
    }
  }
}

/** Timeout of a `Proof`. */
const PROOF_MS = 500;

/**
 * The same for a participant that is proven already: its numbers are renewed, and the history of the discovery writers is sent to it
 * again. An acknowledgement of a new number shows that it receives datagrams now. A number that was never sent is a guess and fails
 * the proof.
 */
export class Proof {
  /** Resolves to whether the participant has responded within PROOF_MS. */
  readonly result: Promise<boolean>;
  readonly #challenge: Challenge;
  readonly #open: Map<EntityId, NumberedWriter>;
  /** Numbers sent before, whose acknowledgements may still arrive. */
  readonly #before: ReadonlyMap<EntityId, readonly [first: number, last: number]>;
  readonly #end: (isProven: boolean) => void;

  constructor(challenge: Challenge, writers: readonly NumberedWriter[]) {
    this.#challenge = challenge;
    this.#open = new Map(writers.map((writer) => [writer.entity, writer]));
    this.#before = new Map(
      writers.map(({ entity, last }) => [entity, [challenge.firstOf(entity), challenge.firstOf(entity) + last] as const]),
    );
    challenge.renew();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), PROOF_MS);
    this.result = promise;
    this.#end = (isProven) => {
      clearTimeout(timer);
      resolve(isProven);
    };
  }

  /** Handles an acknowledgement of all numbers of a discovery writer below `base`. */
  acknowledge(writer: EntityId, base: number): void {
    const open = this.#open.get(writer);
    const [beforeFirst, beforeLast] = this.#before.get(writer) ?? [0, 0];
    // A request for the first heartbeat, or a late acknowledgement of former numbers.
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
