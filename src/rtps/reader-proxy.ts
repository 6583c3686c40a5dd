import { LIMITS } from './limits.ts';
import type { Guid } from './protocol.ts';

/** A remote reader, as matching found it. */
export interface MatchedReader {
  readonly guid: Guid;
  readonly reliable: boolean;
  readonly transientLocal: boolean;
  readonly userData: string;
  /** What its numbers are ahead of the writer's own on the wire; 0 by default. */
  readonly numberOffset?: number;
}

/** What the writer knows of one matched reader (8.4.7.5, ReaderProxy). */
export interface ReaderProxy {
  readonly reader: MatchedReader;
  /** Changes up to here are none of its business: it came later and wants no history. */
  readonly from: number;
  /** Before it is sent data it must have answered a heartbeat. */
  awaitsAnswer: boolean;
  /** Acknowledgements that only asked for a heartbeat, each after one was sent. */
  questions: number;
  /** The next change to be sent for the first time. */
  next: number;
  /** The last change that was for it alone, or was there before it. */
  owed: number;
  /** It has all up to here; -1: it has not said anything yet. */
  acknowledged: number;
  /** Asked for again, as of its last word. */
  requested: Set<number>;
  readonly requestedFragments: Map<number, readonly number[]>;
  heartbeatAsked: boolean;
  /** Monotonic seconds of the next heartbeat, while something is not acknowledged. */
  heartbeatAt: number;
  heartbeatPeriodSeconds: number;
  lastAckNackCount: number;
  /** Octets that may be sent again, and since when that is known. */
  resendOctets: number;
  resendAtSeconds: number;
}

/** The first ones come quickly, so that a loss is soon made good. */
export const FIRST_HEARTBEAT_SECONDS = 0.1;

/** What a writer whose last change was `last` knows of a reader that it has just found. */
export function newProxy(
  reader: MatchedReader,
  writer: { readonly transientLocal: boolean },
  last: number,
  nowSeconds: number,
): ReaderProxy {
  const wantsHistory = writer.transientLocal && reader.transientLocal;
  const from = wantsHistory ? 0 : last;
  return {
    reader,
    from,
    awaitsAnswer: reader.reliable && !wantsHistory,
    questions: 0,
    next: from + 1,
    owed: last,
    acknowledged: reader.reliable ? -1 : last,
    requested: new Set(),
    requestedFragments: new Map(),
    heartbeatAsked: reader.reliable,
    heartbeatAt: nowSeconds,
    heartbeatPeriodSeconds: FIRST_HEARTBEAT_SECONDS,
    lastAckNackCount: -1,
    resendOctets: LIMITS.resendOctets,
    resendAtSeconds: nowSeconds,
  };
}
