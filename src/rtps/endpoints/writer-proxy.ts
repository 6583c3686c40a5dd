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

/** A reader's state for one matched writer (8.4.10.4, WriterProxy). */
export interface WriterProxy {
  readonly writer: MatchedWriter;
  readonly isReliable: boolean;
  /** The next number to deliver: all lower ones were delivered or skipped. */
  next: number;
  /** The highest number the writer is known to have sent. */
  last: number;
  /** An unconfirmed number far ahead, and the count of its heartbeat; null: none, or a plausible number has followed. */
  farAhead: { readonly number: number; readonly count: number } | null;
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

/** Time until the first heartbeat is requested for the second time. */
const FIRST_REQUEST_SECONDS = 0.1;

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
    last: 0,
    farAhead: null,
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

  /** Buffers a sample ahead of `next`, the next number to deliver; false: a limit is reached. */
  put(number: number, sample: Buffered, next: number): boolean {
    if (this.#samples.has(number)) return true;
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
