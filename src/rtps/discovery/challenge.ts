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

/** Random octets that were read ahead: each read of the kernel's takes longer than a datagram. */
let pool = Buffer.alloc(0);

/** Secret random octets. Read from the kernel, since loading node:crypto takes 3 MB of memory. */
export function randomOctets(count: number): Buffer {
  if (pool.length < count) {
    pool = Buffer.alloc(1024);
    const file = openSync('/dev/urandom', 'r');
    try {
      readSync(file, pool);
    } finally {
      closeSync(file);
    }
  }
  const octets = pool.subarray(0, count);
  pool = pool.subarray(count);
  return octets;
}

/** 1 to 65,535. */
function secretNumber(): number {
  return randomOctets(NUMBER_OCTETS).readUInt16BE() || 1;
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

  /**
   * `max`: upper bound of the numbers, regardless of what the participant acknowledges. `others`: challenges to participants with the same
   * GUID, which may be the same process, so the numbers must be above theirs.
   */
  constructor(writers: readonly NumberedWriter[], max: number, others: readonly Challenge[] = []) {
    this.#writers = writers;
    this.#max = max;
    for (const { entity, last } of writers) {
      const reached = Math.max(1, ...others.map((other) => other.firstOf(entity) + last));
      this.#firsts.set(entity, (reached <= max ? reached : 1) + secretNumber());
    }
  }

  /** The number of a writer's first change on the wire. */
  firstOf(writer: EntityId): number {
    return this.#firsts.get(writer) ?? 1;
  }

  /** Whether `base` acknowledges a heartbeat of this challenge, or changes that were sent after it. */
  isKnownBy({ entity, last }: NumberedWriter, base: number): boolean {
    const first = this.firstOf(entity);
    return base >= first && base <= first + last;
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

/** Timeout of a `Proof`, and wrong numbers that it permits: others may guess, or try to make it fail. */
const PROOF_MS = 500;
const PROOF_GUESSES = 2;

/**
 * The same for a participant that is proven already: its numbers are renewed, and the history of the discovery writers is sent to it
 * again. An acknowledgement of a new number shows that it receives datagrams now. Numbers that were never sent are guesses; the third one
 * fails the proof.
 */
export class Proof {
  /** Resolves to whether the participant has responded within PROOF_MS. */
  readonly result: Promise<boolean>;
  readonly #challenge: Challenge;
  readonly #open: Map<EntityId, NumberedWriter>;
  #guesses = 0;
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
    if (!this.#challenge.isKnownBy(open, base)) {
      this.#guesses += 1;
      if (this.#guesses > PROOF_GUESSES) this.#end(false);
      return;
    }
    this.#open.delete(writer);
    if (this.#open.size === 0) this.#end(true);
  }
}

/** Numbers of which one is chosen: few, since a reader may take a jump by more for a forgery. */
const READER_NUMBERS = 1024;
/** Four heartbeats are sent within this time, so that a lossy network does not refuse a genuine reader. */
const READER_PROOF_MS = 1000;

/**
 * The same for one reader of another writer: the next heartbeats to it have numbers that end before `expected`, a random number above those
 * it knows. A participant may be genuine, and the endpoint that is announced in its name forged.
 */
export class ReaderProof {
  /** Resolves to whether the reader has responded within READER_PROOF_MS. */
  readonly result: Promise<boolean>;
  readonly expected: number;
  readonly #known: number;
  readonly #end: (isProven: boolean) => void;
  #guesses = 0;

  /** `known`: the highest number that the reader may acknowledge from before. */
  constructor(known: number) {
    this.#known = known;
    this.expected = known + 1 + (randomOctets(2).readUInt16BE() % READER_NUMBERS);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), READER_PROOF_MS);
    this.result = promise;
    this.#end = (isProven) => {
      clearTimeout(timer);
      resolve(isProven);
    };
  }

  /** Handles an acknowledgement of all numbers below `base`. */
  acknowledge(base: number): void {
    if (base === this.expected) this.#end(true);
    else if (base > this.#known) {
      this.#guesses += 1;
      if (this.#guesses > PROOF_GUESSES) this.#end(false);
    }
  }
}

/** Whether a participant responds at its path. */
export type Presence = 'present' | 'silent';

/** When the heartbeats of a confirmation are sent, and its end, after its start. */
const CONFIRMATION_MS = [0, 200, 500, 1000, 1500, 2000];
/** A timer that is later than this means that this process was stopped, so that responses may not have been read yet. */
const LATE_MS = 200;
/** Wrong numbers after which nothing can be concluded, neither from a further response nor from none. */
const CONFIRMATION_GUESSES = 64;

export interface ConfirmationOptions {
  readonly peer: { readonly challenge: Challenge };
  readonly writers: readonly NumberedWriter[];
  /** Sends heartbeats with the numbers of the challenge to the path. */
  readonly send: () => void;
  readonly monotonicSeconds: () => number;
}

/**
 * Asks a proven participant whether it is still present, before something is believed that was sent in its name: only what receives at its
 * path knows the current numbers. Nothing is renewed, so that it may be asked at any time.
 */
export class Confirmation {
  readonly result: Promise<Presence>;
  readonly #options: ConfirmationOptions;
  readonly #open: Map<EntityId, NumberedWriter>;
  readonly #resolve: (presence: Presence) => void;
  #guesses = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: ConfirmationOptions) {
    this.#options = options;
    this.#open = new Map(options.writers.map((writer) => [writer.entity, writer]));
    const { promise, resolve } = Promise.withResolvers<Presence>();
    this.result = promise;
    this.#resolve = resolve;
    this.#step(0);
  }

  /** Handles an acknowledgement of all numbers of a discovery writer below `base`. True: the participant is present. */
  acknowledge(writer: EntityId, base: number): boolean {
    const open = this.#open.get(writer);
    // A request for the first heartbeat.
    if (!open || base <= 1) return false;
    if (!this.#options.peer.challenge.isKnownBy(open, base)) {
      this.#guesses += 1;
      if (this.#guesses > CONFIRMATION_GUESSES) this.end('present');
      return false;
    }
    this.#open.delete(writer);
    if (this.#open.size > 0) return false;
    this.end('present');
    return true;
  }

  end(presence: Presence): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#open.clear();
    this.#resolve(presence);
  }

  #step(index: number): void {
    const [at = 0, next] = CONFIRMATION_MS.slice(index);
    if (next === undefined) {
      this.end('silent');
      return;
    }
    this.#options.send();
    const { monotonicSeconds } = this.#options;
    const dueSeconds = monotonicSeconds() + (next - at) / 1000;
    this.#timer = setTimeout(() => this.#step(monotonicSeconds() - dueSeconds > LATE_MS / 1000 ? 0 : index + 1), next - at);
    this.#timer.unref();
  }
}
