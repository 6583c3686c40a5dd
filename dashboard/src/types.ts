// The parts of the REST API that the page reads; /openapi.json describes all of it. Null means unavailable.

import type { Severity, Status } from '../../src/core/alerts/alert.ts';

export type { Severity, Status };

/** The four metrics, in the order in which the page shows them. */
export const METRICS = ['cpu_percent', 'memory_percent', 'disk_percent', 'temperature'] as const;
export type Metric = (typeof METRICS)[number];
export type Reading = number | null;
export type Readings = Readonly<Record<Metric, Reading>>;

export interface HealthStatus extends Readings {
  readonly status: Status;
  readonly node_name: string;
  readonly timestamp: string;
}

export interface Alert {
  /** `<node_name>/<metric>/<unique id>`; the same from raise to resolve. */
  readonly alert_id: string;
  readonly severity: Severity;
  readonly metric: string;
  readonly value: number;
  readonly threshold: number;
  /** Time of this change of the alert. */
  readonly timestamp: string;
  readonly resolved: boolean;
}

export interface List<T> {
  readonly data: readonly T[];
  readonly count: number;
}

export interface NodeState {
  readonly node_name: string;
  readonly local: boolean;
  readonly status: Status;
  readonly timestamp: string | null;
  readonly age_seconds: number | null;
  readonly period_seconds: number | null;
  /** By how much its clock is ahead of the machine's; null: not noticeably. */
  readonly clock_ahead_seconds: number | null;
  /** The machines that publish under its name, while there are several. */
  readonly conflict_addresses: readonly string[];
  /** When the node left the graph in an orderly way; null: it has not left, or is back. */
  readonly left: string | null;
}

/** The part of /status that the page shows. */
export interface StatusDocument {
  readonly version: string;
  /** Whether the service is that of the package; false: that of a checkout. */
  readonly installed: boolean;
  readonly started: string;
  readonly uptime_seconds: number;
  readonly clock_events: readonly { readonly kind: 'step' | 'suspend'; readonly timestamp: string; readonly delta_seconds: number }[];
  /** Of the local node. */
  readonly thresholds: Readonly<Record<Metric, { readonly warning: number; readonly critical: number } | null>>;
  readonly host: { readonly hostname: string; readonly model: string } | null;
  readonly nodes: readonly NodeState[];
  readonly open_alerts: Readonly<Record<Severity, number>>;
  readonly publish: { readonly configured_hertz: number; readonly measured_hertz: number | null; readonly missed: number };
  readonly collectors: readonly { readonly metric: string; readonly problem: string | null }[];
  readonly temperature_sensor: { readonly sensor: string | null; readonly reason: string } | null;
  readonly power: { readonly undervoltage: boolean | null; readonly throttle_events: number | null };
  readonly storage: {
    readonly state: 'starting' | 'ok' | 'degraded';
    readonly error: string | null;
    readonly since: string | null;
    readonly size_bytes: number;
    readonly max_bytes: number;
    readonly oldest_sample: string | null;
    readonly last_write: string | null;
    readonly samples_lost: number;
    /** Damaged databases that were moved to these files. */
    readonly quarantined: readonly string[];
  };
  readonly ros: {
    readonly transport: 'rclnodejs' | 'embedded' | 'off';
    /** Why this transport was selected, or why there is none. */
    readonly reason: string;
    readonly problem: string | null;
    readonly domain_id: number | null;
    /** Other participants on the graph. */
    readonly peers: number | null;
    readonly subscribers: number | null;
    readonly published: { readonly health_status: number; readonly alerts: number } | null;
    /** Whether this machine receives data from remote nodes. `observers`: the nodes that do. */
    readonly observing: boolean;
    readonly observers: readonly string[];
  };
  readonly process: { readonly resident_memory_bytes: number; readonly cpu_seconds: number };
  readonly config: { readonly problem: string | null; readonly restart_needed: readonly string[] };
  readonly ops: OpsState;
  readonly shutdown: ShutdownState;
}

/** State of the job scheduler. */
export interface OpsState {
  readonly scheduler: { readonly state: 'running' | 'stopped' | 'never'; readonly beat: string | null };
  readonly jobs: readonly Job[];
}

export interface Job {
  readonly name: string;
  /** A cron expression, or `off`. */
  readonly schedule: string;
  readonly next: string | null;
  readonly running_since: string | null;
  /** The last completed run. */
  readonly last: { readonly started: string; readonly status: Status; readonly lines: readonly string[] } | null;
  readonly missed: number;
  readonly overlaps: number;
}

/** The last safe shutdown, from /status or from an event `shutdown`; fields are null if there was none. */
export interface ShutdownState {
  readonly state: 'none' | 'in_progress' | 'completed' | 'aborted' | 'interrupted';
  readonly action: string;
  readonly reason: string | null;
  readonly requested_by: string | null;
  readonly seconds_left: number | null;
  readonly message: string | null;
  readonly ended: string | null;
}

export interface ShutdownProgress extends ShutdownState {
  readonly timestamp: string;
}

/** A report of the reliability harness, or of generate_7day_report. */
export interface Report {
  readonly name: string;
  readonly verdict: 'PASS' | 'FAIL' | 'INCOMPLETE';
  readonly statement: string;
  readonly node_name: string;
  readonly begun: string;
  readonly ended: string;
  /** Whether the harness observed the service; otherwise the report was computed from collected data. */
  readonly observed: boolean;
}

export interface ReliabilityReports extends List<Report> {
  readonly running: {
    readonly begun: string;
    readonly planned_seconds: number | null;
    /** When the record of the run was last written. */
    readonly recorded: string | null;
  } | null;
}
