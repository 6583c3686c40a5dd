import type { OctetBudget } from './limits.ts';
import type { Guid } from './protocol.ts';
import { WaitingRoom } from './waiting-room.ts';

/** A remote writer, as matching found it. */
export interface MatchedWriter {
  readonly guid: Guid;
  readonly reliable: boolean;
  readonly transientLocal: boolean;
  readonly vendor: number;
  readonly userData: string;
}

/** What the reader knows of one matched writer (8.4.10.4, WriterProxy). */
export interface WriterProxy {
  readonly writer: MatchedWriter;
  readonly isReliable: boolean;
  /** All below was delivered, or will never come. */
  next: number;
  /** The highest number the writer is known to have. */
  last: number;
  /** A number far ahead that it named once, and the count of that heartbeat; null: none, or it has spoken of nearer ones since. */
  farAhead: { readonly number: number; readonly count: number } | null;
  readonly waiting: WaitingRoom;
  heard: boolean;
  ackNackDue: boolean;
  /** While the writer has not said anything: when to ask it again. */
  askAt: number;
  askPeriodSeconds: number;
  /** Requests in a row that began with the same number, and when the first and the last of them were made. */
  unanswered: number;
  unansweredFrom: number;
  unansweredSince: number;
  askedAt: number;
  /** When to ask once more for what is missing, should nothing come. */
  askAgainAt: number;
}

/** A writer that is silent is asked so soon for the second time. */
const FIRST_ASK_SECONDS = 0.1;

/** What a reader knows of a writer that it has just found. */
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
    waiting: new WaitingRoom(budget),
    heard: !isReliable,
    ackNackDue: false,
    askAt: nowSeconds,
    askPeriodSeconds: FIRST_ASK_SECONDS,
    unanswered: 0,
    unansweredFrom: 0,
    unansweredSince: nowSeconds,
    askedAt: Number.NEGATIVE_INFINITY,
    askAgainAt: Number.POSITIVE_INFINITY,
  };
}
