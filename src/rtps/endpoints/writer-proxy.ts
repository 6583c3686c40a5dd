import { copyOf, LIMITS, type OctetBudget } from '../limits.ts';
import type { Source } from '../net/network.ts';
import type { DataSubmessage } from '../wire/message-reader.ts';
import type { Guid } from '../wire/protocol.ts';
import { Reassembly } from './reassembly.ts';

/** A matched remote writer. */
export interface MatchedWriter {
  readonly guid: Guid;
  readonly reliable: boolean;
  readonly transientLocal: boolean;
  readonly vendor: number;
  readonly userData: string;
}

/**
 * A reader's state for one matched writer (8.4.10.4, WriterProxy). Any host that can forge the writer's address can send any number, so
 * nothing that a message claims is final: a number counts as received only when its sample was delivered.
 */
export interface WriterProxy {
  readonly writer: MatchedWriter;
  readonly isReliable: boolean;
  /** The next number to deliver. All lower ones were delivered or, above `delivered`, declared irrelevant or no longer available. */
  next: number;
  /** The highest delivered number. */
  delivered: number;
  deliveredTimestampMs: number | null;
  /** The last delivery that left out numbers: from the one delivered before. */
  jump: Jump;
  /** The highest number that the writer has sent, according to its last heartbeat. */
  last: number;
  readonly settled: SettledNumber;
  /** Since when only implausibly high numbers were received: monotonic seconds; Infinity: the last one was plausible. */
  farAheadSince: number;
  /** When a number below the settled one was first received: monotonic seconds; Infinity: never. */
  behindSince: number;
  /** The last number was implausible, so the writer is asked to resend a sample, which shows what its numbers are. */
  isInDoubt: boolean;
  /** Not null while several senders seem to use the writer's GUID. */
  contest: Contest | null;
  readonly buffer: ReorderBuffer;
  /** A heartbeat was received, or is not needed because the writer or the reader is best effort. */
  hasHeartbeat: boolean;
  ackNackDue: boolean;
  /** When to request the first heartbeat again. */
  requestAt: number;
  requestPeriodSeconds: number;
  /** Consecutive requests that begin with the same number, and when the first and the last of them were sent. */
  unanswered: number;
  unansweredFrom: number;
  unansweredSince: number;
  requestedAt: number;
  /** When to request the missing samples again. */
  requestAgainAt: number;
}

interface Jump {
  readonly from: number;
  readonly to: number;
}

const NO_JUMP: Jump = { from: 0, to: 1 };

/** Time until the first heartbeat is requested for the second time. */
export const FIRST_REQUEST_SECONDS = 0.1;

/** The state for a writer that was just matched. */
export function newProxy(
  writer: MatchedWriter,
  { reliable, budget }: { readonly reliable: boolean; readonly budget: OctetBudget },
  nowSeconds: number,
): WriterProxy {
  const isReliable = writer.reliable && reliable;
  return {
    writer,
    isReliable,
    next: 1,
    delivered: 0,
    deliveredTimestampMs: null,
    jump: NO_JUMP,
    last: 0,
    settled: new SettledNumber(),
    farAheadSince: Number.POSITIVE_INFINITY,
    behindSince: Number.POSITIVE_INFINITY,
    isInDoubt: false,
    contest: null,
    buffer: new ReorderBuffer(budget),
    hasHeartbeat: !isReliable,
    ackNackDue: false,
    requestAt: nowSeconds,
    requestPeriodSeconds: FIRST_REQUEST_SECONDS,
    unanswered: 0,
    unansweredFrom: 0,
    unansweredSince: nowSeconds,
    requestedAt: Number.NEGATIVE_INFINITY,
    requestAgainAt: Number.POSITIVE_INFINITY,
  };
}

/** Longer than datagrams overtake one another, shorter than the period of a health status. */
export const SETTLING_SECONDS = 0.5;

/**
 * The number that was reached at least SETTLING_SECONDS ago. Messages that were overtaken name numbers above it, so a lower one
 * contradicts what was delivered.
 */
export class SettledNumber {
  #older = 0;
  #newer = 0;
  #newerAt = Number.NEGATIVE_INFINITY;
  #reachedAt = Number.NEGATIVE_INFINITY;

  /** `reached` is replaced by a new number now. */
  replace(reached: number, nowSeconds: number): void {
    if (nowSeconds - this.#newerAt >= SETTLING_SECONDS) {
      this.#older = this.#newer;
      this.#newer = reached;
      this.#newerAt = nowSeconds;
    }
    this.#reachedAt = nowSeconds;
  }

  at(reached: number, nowSeconds: number): number {
    return nowSeconds - this.#reachedAt >= SETTLING_SECONDS ? reached : this.#older;
  }
}

/** Samples remembered of a contested writer, more than the depth of the topics that are read here. */
const REMEMBERED = 64;
/** At most this many of the last samples are requested from a contested writer. */
const REQUESTED = 32;
/** A contest ends after this long without contradictory numbers. */
const CONTEST_SECONDS = 30;

/**
 * A writer whose messages contradict each other: several senders use its GUID, and nothing shows which of them is genuine. Until it
 * ends, samples are delivered on arrival, and only a repetition of number and content counts as a duplicate: a forged message can add a
 * sample, but suppress none.
 */
export class Contest {
  readonly #numbers: number[] = [];
  readonly #hashes: number[] = [];
  readonly #jump: Jump;
  readonly #delivered: number;
  #at = 0;
  #first = 1;
  #last = 0;
  #untilSeconds: number;

  /** `before`: what was delivered before it began. */
  constructor(before: { readonly jump: Jump; readonly delivered: number }, nowSeconds: number) {
    this.#jump = before.jump;
    this.#delivered = before.delivered;
    this.#untilSeconds = nowSeconds + CONTEST_SECONDS;
  }

  /** Remembers a sample; null: its number is irrelevant. False: it is remembered already. */
  add(number: number, payload: Buffer | null): boolean {
    const hash = hashOf(payload);
    for (let i = 0; i < this.#numbers.length; i += 1) if (this.#numbers[i] === number && this.#hashes[i] === hash) return false;
    this.#numbers[this.#at] = number;
    this.#hashes[this.#at] = hash;
    this.#at = (this.#at + 1) % REMEMBERED;
    return true;
  }

  /** Handles the numbers of a heartbeat, or of a best-effort sample. True: the contest has ended. */
  announce(first: number, last: number, nowSeconds: number): boolean {
    if (last < this.#last || last - this.#last > LIMITS.numbersAhead) this.#untilSeconds = nowSeconds + CONTEST_SECONDS;
    this.#first = first;
    this.#last = last;
    return nowSeconds >= this.#untilSeconds;
  }

  /** The last announced numbers without a sample. */
  missing(): number[] {
    const missing: number[] = [];
    for (let number = Math.max(this.#first, this.#last - REQUESTED + 1); number <= this.#last; number += 1)
      if (!this.#numbers.includes(number) && !this.#wasDelivered(number)) missing.push(number);
    return missing;
  }

  /** Whether a sample of the announced numbers was delivered before: higher numbers than the announced ones were forged. */
  #wasDelivered(number: number): boolean {
    if (number <= this.#jump.from) return this.#jump.from <= this.#last;
    return this.#delivered <= this.#last && number >= this.#jump.to && number <= this.#delivered;
  }
}

/** FNV-1a, 32 bits. */
function hashOf(octets: Buffer | null): number {
  let hash = 0x811c9dc5;
  if (octets) for (const octet of octets) hash = Math.imul(hash ^ octet, 0x01000193);
  return hash;
}

/** A sample that waits for an earlier one; null: a number that the writer has declared irrelevant. */
type Buffered = { readonly data: DataSubmessage; readonly source: Source } | null;

/**
 * The reorder buffer of one remote writer: samples received out of order, irrelevant numbers, and incomplete samples. All of it counts
 * towards the participant's budget; an earlier sample evicts later ones, which are requested again.
 */
export class ReorderBuffer {
  readonly #budget: OctetBudget;
  readonly #samples = new Map<number, Buffered>();
  /** The incomplete samples. */
  readonly parts: Reassembly;

  constructor(budget: OctetBudget) {
    this.#budget = budget;
    this.parts = new Reassembly({
      take: (octets, number) => this.#take(octets, number),
      giveBack: (octets) => budget.giveBack(octets),
    });
  }

  has(number: number): boolean {
    return this.#samples.has(number);
  }

  /**
   * Buffers a sample other than `next`, the next number to deliver; false: a limit is reached. It replaces an earlier one of its number,
   * which may have been forged.
   */
  put(number: number, sample: Buffered, next: number): boolean {
    if (this.#samples.has(number)) {
      if (sample === null) return true;
      this.remove(number);
    }
    if (number - next > LIMITS.bufferedSamples || this.#samples.size >= LIMITS.bufferedSamples) return false;
    if (!this.#take(octetsOf(sample), number)) return false;
    this.#samples.set(number, sample && withoutDatagram(sample));
    this.parts.drop(number);
    return true;
  }

  /** Removes and returns the entry of this number; undefined: none. */
  remove(number: number): Buffered | undefined {
    this.parts.drop(number);
    const sample = this.#samples.get(number);
    if (sample === undefined) return undefined;
    this.#samples.delete(number);
    this.#budget.giveBack(octetsOf(sample));
    return sample;
  }

  /** Buffered numbers below `end`, ascending. */
  below(end: number): number[] {
    return [...this.#samples.keys()].filter((number) => number < end).sort((a, b) => a - b);
  }

  clear(): void {
    this.parts.clear();
    for (const number of this.#samples.keys()) this.remove(number);
  }

  #take(octets: number, forNumber: number): boolean {
    while (!this.#budget.take(octets)) {
      const latest = Math.max(this.parts.latest, ...this.#samples.keys());
      if (latest <= forNumber) return false;
      this.remove(latest);
    }
    return true;
  }
}

function octetsOf(sample: Buffered): number {
  return LIMITS.bufferOverheadOctets + (sample?.data.payload?.length ?? 0);
}

/** Copies the sample, so that the datagram's memory is not retained. */
function withoutDatagram({ data, source }: NonNullable<Buffered>): Buffered {
  return { source, data: { ...data, payload: data.payload && copyOf(data.payload), inlineQos: data.inlineQos?.detached() ?? null } };
}
