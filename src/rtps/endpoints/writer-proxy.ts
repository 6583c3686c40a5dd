import type { OctetBudget } from '../limits.ts';
import type { Guid } from '../wire/protocol.ts';
import { ReorderBuffer } from './reorder-buffer.ts';

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
  readonly waiting: ReorderBuffer;
  /** A heartbeat was received, or is not needed because the writer or the reader is best effort. */
  hasHeartbeat: boolean;
  ackNackDue: boolean;
  /** When to request the first heartbeat again. */
  askAt: number;
  askPeriodSeconds: number;
  /** Consecutive requests that begin with the same number, and when the first and the last of them were sent. */
  unanswered: number;
  unansweredFrom: number;
  unansweredSince: number;
  requestedAt: number;
  /** When to request the missing samples again. */
  requestAgainAt: number;
}

/** Time until the first heartbeat is requested for the second time. */
const FIRST_ASK_SECONDS = 0.1;

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
    waiting: new ReorderBuffer(budget),
    hasHeartbeat: !isReliable,
    ackNackDue: false,
    askAt: nowSeconds,
    askPeriodSeconds: FIRST_ASK_SECONDS,
    unanswered: 0,
    unansweredFrom: 0,
    unansweredSince: nowSeconds,
    requestedAt: Number.NEGATIVE_INFINITY,
    requestAgainAt: Number.POSITIVE_INFINITY,
  };
}
