import type { Alert } from '../../src/core/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Clocked, CoverageEntry, OpenAlert, ServiceEntry, ServiceReading } from '../record/entries.ts';

/** By which way something of the service was heard. */
export type Way = 'topic' | 'events';

/** What the sources of a run tell, as it happens. Only of the watched node: others on the graph are left aside. */
export interface WatchListener {
  onStatus(by: Way, status: HealthStatus): void;
  onAlert(by: Way, alert: Alert): void;
  /** Something a reader of the report should know, such as a stream that broke off; each text at most once a minute. */
  onNote(text: string): void;
}

/** A source that tells by itself: the subscription on the graph, the event stream. Nothing happens before `start`. */
export interface Source {
  /** Resolves once it is asked for; that the service does not answer yet is no failure. Rejects when it can never work. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface GraphSource extends Source {
  readonly transport: 'rclnodejs' | 'embedded';
  /** Why this transport. */
  readonly reason: string;
}

export interface EventsSource extends Source {
  /** To go on from after a resume; null: none was seen. */
  readonly lastEventId: string | null;
}

/** A run of the service, as it was first seen. */
export type SeenRun = Omit<ServiceEntry, 'type' | keyof Clocked>;

/** Asked from time to time (every 15 s). */
export interface ServiceSource {
  /**
   * The reading of now, and the run where it is another than the last time. Null: the service does not answer; `run` is then null too.
   * `resident_bytes` has one element.
   */
  read(): Promise<{ readonly reading: ServiceReading; readonly run: SeenRun | null } | null>;
  /** What `/alerts?resolved=false` lists of the watched node; null: no answer. */
  open(): Promise<readonly OpenAlert[] | null>;
}

/** Looks at what the service and operations have stored between two time stamps (ms since the epoch); null: it cannot be looked at now. */
export type HoldingSource = (fromMs: number, toMs: number) => Promise<Omit<CoverageEntry, 'type' | 'boot' | 'mono' | 'wall'> | null>;
