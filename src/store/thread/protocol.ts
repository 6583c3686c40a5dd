import type { Alert } from '../../core/alerts/alert.ts';
import type { KnownNode } from '../../core/alerts/node-watch.ts';
import type {
  Aggregate,
  AggregateQuery,
  AlertPage,
  AlertQuery,
  HistoryPage,
  HistoryQuery,
  RecordCursor,
  RecordedPage,
  RecordedQuery,
} from '../../core/ports.ts';
import type { ShutdownQuery, ShutdownRecord } from '../../core/shutdown/shutdown.ts';
import type { ClockCorrection, ClockEvent } from '../../core/time/clock-watch.ts';
import type { Columns } from '../samples/chunk.ts';

/** Requests to the store's thread and their responses. Requests of one queue are served in order. */
export interface Operations {
  open: { request: OpenRequest; answer: OpenAnswer };
  append: { request: { segment: number; node: string; columns: Columns; isNewcomer: boolean } };
  commit: { request: { segment: number }; answer: Written };
  forget: { request: { segment: number } };
  /** Drops a newcomer. */
  drop: { request: { node: string } };
  /** Returns whether the change is new. */
  alert: { request: { alert: Alert; cursor: RecordCursor }; answer: boolean };
  rate: { request: { node: string; hertz: number; sinceMs: number } };
  clockEvent: { request: ClockEvent };
  correctAlerts: { request: ClockCorrection; answer: Alert[] };
  shutdown: { request: ShutdownRecord };
  history: { request: HistoryQuery; answer: HistoryPage };
  aggregate: { request: AggregateQuery; answer: Aggregate[] };
  alerts: { request: AlertQuery; answer: AlertPage };
  recorded: { request: RecordedQuery; answer: RecordedPage };
  clockEvents: { request: { limit: number }; answer: ClockEvent[] };
  shutdowns: { request: ShutdownQuery; answer: ShutdownRecord[] };
  /** Fills an empty file with a copy of the database and unlinks it. Other requests are served meanwhile. */
  snapshot: { request: { path: string } };
  cancelSnapshot: { request: null };
  close: { request: null };
}

export type Operation = keyof Operations;

// biome-ignore lint/suspicious/noConfusingVoidType: the handler of an operation without an answer returns the void of the method it calls.
export type Answer<O extends Operation> = Operations[O] extends { readonly answer: infer A } ? A : void;

export interface OpenRequest {
  readonly path: string;
  readonly maxBytes: number;
  readonly node: string;
  readonly hertz: number;
  /** Segments in the spool of a killed run; the database shows which of them were written. */
  readonly leftovers: readonly Leftover[];
}

export interface Leftover {
  readonly segment: number;
  /** Approximate size of its file. */
  readonly bytes: number;
  readonly samples: readonly { readonly node: string; readonly columns: Columns }[];
  /** With the sequence number of each. */
  readonly alerts: readonly { readonly sequence: number; readonly alert: Alert }[];
  readonly shutdowns: readonly ShutdownRecord[];
}

export interface OpenAnswer extends Written {
  /** Why the database cannot be written; null: it can. */
  readonly problem: string | null;
  readonly openAlerts: readonly Alert[];
  /** Metrics that had a value in the node's newest samples. */
  readonly readableMetrics: ReadonlySet<string>;
  /** Number of samples loaded from the spool. */
  readonly recovered: number;
  /** Every node with at least one sample. */
  readonly nodes: readonly string[];
  /** The remote ones of `nodes`. */
  readonly remoteNodes: readonly KnownNode[];
  /** The last segment written. */
  readonly lastSegment: number;
}

export interface Written {
  readonly sizeBytes: number;
  readonly oldestSampleMs: number | null;
  /** Changes of remote nodes' alerts that exceeded the daily write budget. */
  readonly alertsNotStored: number;
  /** Set when this commit opened the database: its open episodes that are new to this run. */
  readonly openAlerts?: readonly Alert[];
  /** Set with `openAlerts`: first and last receive times of the remote nodes. */
  readonly remoteNodes?: readonly KnownNode[];
  /** Set with `openAlerts`: the last segment written. */
  readonly lastSegment?: number;
}

export interface Request<O extends Operation = Operation> {
  readonly id: number;
  readonly operation: O;
  readonly body: Operations[O]['request'];
}

export type Reply =
  | { readonly id: number; readonly ok: true; readonly body: unknown }
  | { readonly id: number; readonly ok: false; readonly error: string; readonly name: string }
  /** A long operation is making progress. */
  | { readonly progress: true }
  | { readonly quarantined: { readonly path: string; readonly reason: string } };
