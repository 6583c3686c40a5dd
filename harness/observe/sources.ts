import type { Alert } from '../../src/core/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Clocked, OpenAlert, ServiceEntry, ServiceReading } from '../record/entries.ts';

/** By which channel a status or an alert was received. */
export type Channel = 'topic' | 'events';

/** Receives what the sources of a run deliver. It is all of the observed node: statuses and alerts of other nodes are ignored. */
export interface SourceListener {
  onStatus(channel: Channel, status: HealthStatus): void;
  onAlert(channel: Channel, alert: Alert): void;
  /** Information for readers of the report, such as an interrupted stream; the same text at most once a minute. */
  onNote(text: string): void;
}

/** A source that delivers without being asked: the subscription on the ROS 2 graph, the event stream. */
export interface Source {
  /** A service that does not respond yet is no failure. Rejects when the source can never work. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A run of the service, as it was first seen. */
export type SeenRun = Omit<ServiceEntry, 'type' | keyof Clocked>;

/** A source that is polled (every 15 s). */
export interface ServiceSource {
  /**
   * The present reading, and the run of the service if it is another than the last time. Null: the service does not respond.
   * `resident_bytes` has one element.
   */
  read(): Promise<{ readonly reading: ServiceReading; readonly run: SeenRun | null } | null>;
  /** What `/alerts?resolved=false` lists of the observed node; null: no response. */
  open(): Promise<readonly OpenAlert[] | null>;
}
