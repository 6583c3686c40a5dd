import { LIMITS } from '../limits.ts';
import type { Guid } from '../wire/protocol.ts';

/** A matched remote reader. */
export interface MatchedReader {
  readonly guid: Guid;
  readonly reliable: boolean;
  readonly transientLocal: boolean;
  readonly userData: string;
  /** Sequence numbers on the wire minus the writer's own; 0 by default. */
  readonly numberOffset?: number;
}

/** A writer's state for one matched reader (8.4.7.5, ReaderProxy). */
export interface ReaderProxy {
  readonly reader: MatchedReader;
  /** Changes up to this number are not sent to it: it was matched later and is volatile. */
  readonly from: number;
  /** No data is sent before it has responded to a heartbeat. */
  awaitsAnswer: boolean;
  /** Number of ACKNACKs that only requested a heartbeat, each after one was sent. */
  heartbeatRequests: number;
  /** The next change to be sent for the first time. */
  next: number;
  /** The last change that was for it alone, or that was written before it was matched. */
  required: number;
  /** It has acknowledged all numbers up to this one; -1: no ACKNACK yet. */
  acknowledged: number;
  /** Numbers requested by its last ACKNACK. */
  requested: Set<number>;
  readonly requestedFragments: Map<number, readonly number[]>;
  heartbeatRequested: boolean;
  /** Monotonic seconds of the next heartbeat, while something is not acknowledged. */
  heartbeatAt: number;
  heartbeatPeriodSeconds: number;
  /** Monotonic seconds when a change was last sent to it for the first time; -Infinity: never. */
  sentAt: number;
  lastAckNackCount: number;
  /** Octets that may be resent, as of `resendAtSeconds`. */
  resendOctets: number;
  resendAtSeconds: number;
}

/** Time to the second heartbeat, short so that a lost sample is soon requested. */
export const FIRST_HEARTBEAT_SECONDS = 0.1;

/** The state for a reader that was just matched, when the writer's last change was `last`. */
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
    heartbeatRequests: 0,
    next: from + 1,
    required: last,
    acknowledged: reader.reliable ? -1 : last,
    requested: new Set(),
    requestedFragments: new Map(),
    heartbeatRequested: reader.reliable,
    heartbeatAt: nowSeconds,
    heartbeatPeriodSeconds: FIRST_HEARTBEAT_SECONDS,
    sentAt: Number.NEGATIVE_INFINITY,
    lastAckNackCount: -1,
    resendOctets: LIMITS.resendOctets,
    resendAtSeconds: nowSeconds,
  };
}
