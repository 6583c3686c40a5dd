import type { Alert, Severity, Status } from './alerts/alert.ts';
import type { HealthStatus } from './health-status.ts';
import type { Metric, Reading } from './metrics.ts';
import type { ShutdownProgress } from './shutdown/shutdown.ts';
import type { Snapshot } from './snapshot.ts';
import type { ClockEvent } from './time/clock-watch.ts';

/** Severities of log lines, with the names of sd-daemon(3) and syslog. */
export type LogLevel = 'error' | 'warning' | 'notice' | 'info' | 'debug';

/** One line per event; `fields` become key=value. Never pass a secret. */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** Publishes changes: REST event streams and ROS 2 transports. */
export interface Publisher {
  /** `line` is the health status as JSON, serialized once for all receivers; `cursor`: where the store recorded it, null if it did not. */
  publishHealth(status: HealthStatus, line: string, cursor: RecordCursor | null): void;
  publishAlert(alert: Alert, cursor: RecordCursor | null): void;
  publishShutdown(progress: ShutdownProgress): void;
}

/** Half-open range of wall-clock milliseconds. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

export type Order = 'asc' | 'desc';

/** The mean, the lowest or the highest reading of a step. */
export const STEP_VALUES = ['mean', 'min', 'max'] as const;
export type StepValue = (typeof STEP_VALUES)[number];

export interface HistoryQuery extends TimeRange {
  readonly node: string;
  /** Null: raw samples; else steps of this many milliseconds, aligned to the epoch. */
  readonly stepMs: number | null;
  /** The value that represents a step; the mean by default. */
  readonly value?: StepValue;
  readonly order: Order;
  readonly limit: number;
  /** Number of raw samples in the range's first millisecond (in descending order: its last) that were on earlier pages. */
  readonly skip?: number;
}

/** Health statuses as columns: cheap to transfer between threads and to render in pieces. NaN: unavailable. */
export interface HistoryPage {
  readonly count: number;
  readonly timestampMs: Float64Array;
  /** In the order of METRICS. */
  readonly metrics: readonly Float64Array[];
  /** Index into STATUSES. */
  readonly status: Uint8Array;
  /** Whether more rows follow beyond `limit`. */
  readonly more: boolean;
}

export interface MetricAggregate {
  readonly min: Reading;
  readonly max: Reading;
  readonly mean: Reading;
  readonly stddev: Reading;
  readonly p50: Reading;
  readonly p95: Reading;
  readonly p99: Reading;
  readonly last: Reading;
}

export interface Aggregate {
  readonly from: string;
  readonly to: string;
  readonly samples_received: number;
  readonly samples_expected: number;
  readonly longest_gap_seconds: number;
  readonly status_seconds: Readonly<Record<Status, number>>;
  readonly metrics: Readonly<Record<Metric, MetricAggregate>>;
}

export interface AggregateQuery extends TimeRange {
  readonly node: string;
  readonly by: 'minute' | 'hour' | 'day' | null;
}

/** A cursor in the list of alerts, which is sorted newest first by the time of the last change and then by id. */
export interface AlertCursor {
  readonly timestampMs: number;
  readonly key: string;
}

export interface AlertQuery {
  /** Only this alert, regardless of `range`. */
  readonly id?: string;
  readonly node: string | null;
  readonly severity: Severity | null;
  readonly metric: string | null;
  readonly resolved: boolean | null;
  /** Null: every open alert, and those that were open at any time in the last 24 hours before `nowMs`. */
  readonly range: TimeRange | null;
  /** Every change of each episode instead of the last one. */
  readonly changes: boolean;
  readonly limit: number;
  readonly after: AlertCursor | null;
  readonly nowMs: number;
}

export interface AlertPage {
  readonly alerts: readonly Alert[];
  readonly next: AlertCursor | null;
}

export interface StorageState {
  readonly path: string;
  /** `degraded`: writing fails and is retried; `samples_lost` counts the samples dropped since. */
  readonly state: 'starting' | 'ok' | 'degraded';
  readonly error: string | null;
  readonly since: string | null;
  readonly size_bytes: number;
  readonly max_bytes: number;
  readonly oldest_sample: string | null;
  readonly samples_pending: number;
  readonly samples_lost: number;
  readonly last_write: string | null;
  /** Damaged databases, and those of other programs, that were quarantined at or since the start. */
  readonly quarantined: readonly string[];
}

/**
 * A cursor in the order of recording, independent of any clock: the segment, which increases every minute and with every restart, and the
 * sequence number within it, from 1; 0 is before its first record.
 */
export interface RecordCursor {
  readonly segment: number;
  readonly sequence: number;
}

export function compareCursors(a: RecordCursor, b: RecordCursor): number {
  return a.segment - b.segment || a.sequence - b.sequence;
}

/**
 * Cursors of the last health status and the last alert change. They advance independently, since each record becomes durable and is
 * published separately.
 */
export interface Position {
  readonly health: RecordCursor;
  readonly alert: RecordCursor;
}

/** A recorded change of an alert. */
export interface RecordedAlert {
  /** False: the change was recorded before, or its episode is resolved. */
  readonly isNew: boolean;
  /** As `recordHealth` returns it. */
  readonly cursor: RecordCursor | null;
}

/** A null cursor excludes that kind. */
export interface RecordedQuery {
  readonly healthAfter: RecordCursor | null;
  readonly alertAfter: RecordCursor | null;
  /** Null: of every node. */
  readonly node: string | null;
  readonly limit: number;
}

/** A health status or a change of an alert as it was recorded. */
export interface RecordedEvent {
  readonly kind: 'health' | 'alert';
  readonly node: string;
  readonly cursor: RecordCursor;
  /** The JSON document as published. */
  readonly json: string;
}

export interface RecordedPage {
  /** In order of recording. */
  readonly events: readonly RecordedEvent[];
  /** Whether more follow beyond `limit`. */
  readonly more: boolean;
}

/** Queries of the store. Every result includes the samples and changes recorded up to the call. */
export interface HistoryReader {
  history(query: HistoryQuery): Promise<HistoryPage>;
  aggregate(query: AggregateQuery): Promise<Aggregate[]>;
  alerts(query: AlertQuery): Promise<AlertPage>;
  clockEvents(limit: number): Promise<ClockEvent[]>;
  /** Records after a cursor. */
  recorded(query: RecordedQuery): Promise<RecordedPage>;
  /** A copy of the database with everything recorded up to the call. Rejects with SnapshotRefused, or when `signal` is aborted. */
  snapshot(signal: AbortSignal): Promise<Snapshot>;
  /** The segment being recorded; no record so far is in a later one. Null: not started. */
  segment(): number | null;
  state(): StorageState;
}

/** Kernel limits of a connection. */
export interface SocketBounds {
  /** Buffer sizes to set; the kernel doubles them for its own overhead. */
  readonly sendBytes: number;
  readonly receiveBytes: number;
  /** A connection is reset when sent data stays unread for this long, also after it was closed. */
  readonly unreadSeconds: number;
}
