import type { Alert } from '../core/alert.ts';
import type { ClockEvent } from '../core/clock-watch.ts';
import type { HeardNode } from '../core/node-watch.ts';
import type {
  Aggregate,
  AggregateQuery,
  AlertPage,
  AlertQuery,
  HistoryPage,
  HistoryQuery,
  Mark,
  RecordedPage,
  RecordedQuery,
} from '../core/ports.ts';
import type { ShutdownQuery } from '../core/shutdown-ports.ts';
import type { ShutdownRecord } from '../core/shutdown-record.ts';
import type { Columns } from './chunk.ts';

/** What the writer thread is asked, and what it answers. One thread, one queue: requests are served in order. */
export interface Operations {
  open: { request: OpenRequest; answer: OpenAnswer };
  append: { request: { segment: number; node: string; columns: Columns; isNewcomer: boolean }; answer: null };
  commit: { request: { segment: number }; answer: Written };
  forget: { request: { segment: number }; answer: null };
  /** Forgets a newcomer. */
  drop: { request: { node: string }; answer: null };
  /** Answers whether it was news. */
  alert: { request: { alert: Alert; mark: Mark }; answer: boolean };
  rate: { request: { node: string; hertz: number; sinceMs: number }; answer: null };
  clockEvent: { request: ClockEvent; answer: null };
  shutdown: { request: ShutdownRecord; answer: null };
  history: { request: HistoryQuery; answer: HistoryPage };
  aggregate: { request: AggregateQuery; answer: Aggregate[] };
  alerts: { request: AlertQuery; answer: AlertPage };
  recorded: { request: RecordedQuery; answer: RecordedPage };
  clockEvents: { request: { limit: number }; answer: ClockEvent[] };
  shutdowns: { request: ShutdownQuery; answer: ShutdownRecord[] };
  /** Fills an empty file with a copy of the database and takes its name away. Meanwhile other requests are served. */
  snapshot: { request: { path: string }; answer: null };
  cancelSnapshot: { request: null; answer: null };
  close: { request: null; answer: null };
}

export type Operation = keyof Operations;

export interface OpenRequest {
  readonly path: string;
  readonly maxBytes: number;
  readonly node: string;
  readonly hertz: number;
  /** Segments found in the tail of a run that was killed: whether they were written is seen in the database. */
  readonly leftovers: readonly Leftover[];
}

export interface Leftover {
  readonly segment: number;
  /** Length of its file, about. */
  readonly bytes: number;
  readonly samples: readonly { readonly node: string; readonly columns: Columns }[];
  /** With the number of each line. */
  readonly alerts: readonly { readonly order: number; readonly alert: Alert }[];
  readonly shutdowns: readonly ShutdownRecord[];
}

export interface OpenAnswer extends Written {
  /** Why the database cannot be written for now; null when it can. */
  readonly problem: string | null;
  readonly openAlerts: readonly Alert[];
  /** Metrics that had a value in the node's newest samples. */
  readonly readableMetrics: readonly string[];
  /** Samples brought in from the tail. */
  readonly recovered: number;
  /** Every node that ever had a sample. */
  readonly nodes: readonly string[];
  /** Of these the ones whose samples came from elsewhere. */
  readonly heard: readonly HeardNode[];
  /** The last segment of all that is written. */
  readonly lastSegment: number;
}

export interface Written {
  readonly sizeBytes: number;
  readonly oldestSampleMs: number | null;
  /** Changes of other nodes' alerts that came when no more of them could be written that day. */
  readonly alertsNotStored: number;
  /** Set when the database was opened only now: what it says is open and this run has not heard of. */
  readonly openAlerts?: readonly Alert[];
  /** With them: when it says that other nodes were last heard. */
  readonly heard?: readonly HeardNode[];
  /** With them: the last segment of all that is written. */
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
  /** Work that takes long is getting on. */
  | { readonly alive: true }
  | { readonly setAside: { readonly path: string; readonly reason: string } };
