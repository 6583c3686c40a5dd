import type { Severity } from '../../src/core/alert.ts';

/**
 * The entries of record.ndjson, one JSON object a line. Every entry tells the clocks of the machine that watches, as they were when
 * it was written: `boot` and `mono` in seconds of CLOCK_BOOTTIME (goes on during a suspend) and CLOCK_MONOTONIC (does not), `wall` in
 * milliseconds since the epoch. Each line ends with `"n"`, its number from 0, and `"hash"` (chain.ts).
 */
export interface Clocked {
  readonly boot: number;
  readonly mono: number;
  readonly wall: number;
}

export const RECORD_FILE = 'record.ndjson';
export const RECORD_VERSION = 1;

export interface Machine {
  readonly hostname: string;
  readonly model: string;
  readonly os: string;
  readonly kernel: string;
  readonly architecture: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memory_bytes: number;
}

/** What is watched. */
export interface Target {
  /** `unit`: of systemd on this machine; `started`: by the harness itself, in a checkout; `url`: only what REST and the graph tell. */
  readonly kind: 'unit' | 'started' | 'url';
  readonly url: string;
  readonly unit: string | null;
  readonly node_name: string;
  readonly version: string;
  readonly configured_hertz: number;
  readonly service_transport: 'rclnodejs' | 'embedded' | 'off';
  /** `storage.path` of the service, where it can be read from here; null: it cannot. */
  readonly data_folder: string | null;
}

/** The watcher itself. */
export interface Watcher {
  readonly version: string;
  readonly transport: 'rclnodejs' | 'embedded' | 'off';
  /** Why this transport, for people. */
  readonly reason: string;
  readonly machine: Machine | null;
}

/** The first entry. */
export interface BeginEntry extends Clocked {
  readonly type: 'begin';
  readonly format: typeof RECORD_VERSION;
  /** Random; makes the chains of two runs different from the first entry on. */
  readonly run: string;
  readonly boot_id: string;
  /** How long is to be watched. */
  readonly planned_seconds: number;
  readonly target: Target;
  readonly watcher: Watcher;
}

/** The watcher is there again. Between the entry before and this one it was absent. */
export interface ResumeEntry extends Clocked {
  readonly type: 'resume';
  readonly boot_id: string;
  readonly target: Target;
  readonly watcher: Watcher;
}

/** Statuses of the watched node as they were received since the last `minute`, `begin` or `resume`, in the order of arrival. */
export interface Received {
  /** Time stamp of the first one, in ms since the epoch; null: none came. */
  readonly first: number | null;
  /** From each time stamp to the next, in ms; negative where they came out of order, 0 for the same again. One less than statuses. */
  readonly steps: readonly number[];
  /** The longest time from time stamp to arrival, in ms by this machine's clock. */
  readonly slowest_ms: number | null;
  /** The shortest; far from 0 where the clock of the machine that is watched goes otherwise. */
  readonly fastest_ms: number | null;
}

/** What /status, /proc and the control group told, at the last reading of the minute. Null: it could not be had. */
export interface ServiceReading {
  /** When the process started, as /status tells; distinguishes its runs. */
  readonly started: string;
  /** Counters of that run. */
  readonly samples: number;
  readonly missed: number;
  /** Health statuses handed to the ROS 2 graph; null: not on the graph, or a version that does not tell. */
  readonly published: number | null;
  readonly samples_lost: number;
  /** Of every reading since the last entry, oldest first: resident memory of the main process. */
  readonly resident_bytes: readonly number[];
  /** CPU time of the run so far: of its control group where it is known, else of the process. */
  readonly cpu_seconds: number;
  readonly cpu_from: 'group' | 'process' | 'status';
  readonly group: { readonly memory_bytes: number; readonly anon_bytes: number; readonly restarts: number | null } | null;
  readonly open_files: number | null;
  readonly open_alerts: Readonly<Record<Severity, number>>;
  readonly configured_hertz: number;
  readonly database_bytes: number;
}

/** Once a minute: a stretch in which the watcher was there from the entry before on, less what `stalled_seconds` says. */
export interface MinuteEntry extends Clocked {
  readonly type: 'minute';
  /** Null: there was no subscription. */
  readonly topic: Received | null;
  readonly events: Received | null;
  /** Time (CLOCK_MONOTONIC) in which the watcher itself did not get to run, in pieces of more than 2 s. */
  readonly stalled_seconds: number;
  /** Null: /status did not answer in this minute. */
  readonly service: ServiceReading | null;
  /** Of the machine, as the received statuses tell: means over the minute in percent and degrees; null: none, or unavailable. */
  readonly host: {
    readonly cpu: number | null;
    readonly memory: number | null;
    readonly disk: number | null;
    readonly celsius: number | null;
  };
  /** CPU seconds and resident bytes of the watcher itself. */
  readonly watcher: { readonly cpu_seconds: number; readonly resident_bytes: number };
}

export const CAUSES = [
  'first',
  'reboot',
  'watchdog',
  'signal',
  'core-dump',
  'oom-kill',
  'exit',
  'timeout',
  'stopped',
  'upgrade',
  'unknown',
] as const;
/** Why the run before ended. `first`: there was none; `stopped`: asked for, by systemctl for example; `upgrade`: with another version. */
export type Cause = (typeof CAUSES)[number];

/** A run of the service was seen for the first time. */
export interface ServiceEntry extends Clocked {
  readonly type: 'service';
  readonly started: string;
  readonly version: string;
  readonly pid: number | null;
  readonly invocation: string | null;
  readonly cause: Cause;
  /** For people, such as "SIGKILL" or "exit status 70"; empty: there is nothing to add. */
  readonly detail: string;
  /** The run before and this one were both seen, or runs in between are known only by NRestarts: how many were not seen. */
  readonly unseen: number;
}

/** The two ways on which statuses and alerts are received: ROS 2 topics, and the event stream of REST. */
export const CHANNELS = ['topic', 'events'] as const;
export type Channel = (typeof CHANNELS)[number];

/** A change of an alert of the watched node. */
export interface AlertEntry extends Clocked {
  readonly type: 'alert';
  readonly by: Channel;
  readonly alert_id: string;
  readonly severity: Severity;
  readonly metric: string;
  readonly timestamp: string;
  readonly resolved: boolean;
}

export interface OpenAlert {
  readonly alert_id: string;
  readonly severity: Severity;
  readonly metric: string;
}

/** What `/alerts?resolved=false` lists of the watched node: at the begin, whenever it differs from the last time, and at the end. */
export interface OpenEntry extends Clocked {
  readonly type: 'open';
  readonly open: readonly OpenAlert[];
}

/** As the watcher's clocks show it, beyond 1 s. */
export interface ClockEntry extends Clocked {
  readonly type: 'clock';
  readonly kind: 'step' | 'suspend';
  /** A step: positive when the clock was put forward. */
  readonly seconds: number;
}

export interface StampGap {
  /** Time stamps around it, in ms since the epoch. */
  readonly from: number;
  readonly to: number;
  readonly seconds: number;
}

/** A look at the stored samples (/health/history) or at the rows of metrics/, from one time stamp to another; looks follow each other. */
export interface CoverageEntry extends Clocked {
  readonly type: 'holding';
  readonly of: 'stored' | 'collected';
  readonly from: number;
  readonly to: number;
  /** Samples or rows in it. */
  readonly count: number;
  /** The last one before `to`, and the first; null: there was none. */
  readonly first: number | null;
  readonly last: number | null;
  readonly longest_seconds: number;
  /** Between neighbours that are more than 60 s (stored) or 150 s (collected) apart. */
  readonly gaps: readonly StampGap[];
}

/** Something a reader of the report should know: a subscription that was refused, a service that does not answer. */
export interface NoteEntry extends Clocked {
  readonly type: 'note';
  readonly text: string;
}

/** The line before was cut off when the watcher was killed; its bytes stay where they are. */
export interface TornEntry extends Clocked {
  readonly type: 'torn';
  readonly bytes: number;
  readonly sha256: string;
}

/** The last entry of a run that came to its end, or was ended. After `stopped` a run may be resumed. */
export interface EndEntry extends Clocked {
  readonly type: 'end';
  readonly reason: 'complete' | 'stopped';
}

export type RecordEntry =
  | BeginEntry
  | ResumeEntry
  | MinuteEntry
  | ServiceEntry
  | AlertEntry
  | OpenEntry
  | ClockEntry
  | CoverageEntry
  | NoteEntry
  | TornEntry
  | EndEntry;
