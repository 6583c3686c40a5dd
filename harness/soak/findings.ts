import type { Machine } from '../../testkit/machine/machine-info.ts';

/** One way by which statuses of the run's window were counted. */
export interface Counted {
  readonly way: 'topic' | 'events' | 'stored' | 'peer';
  /** For people. */
  readonly title: string;
  /** Null: it could not be counted; `instead` says why. */
  readonly count: number | null;
  /** Of them those with the time stamp of the one before: two slots within a millisecond, after a late wake-up. */
  readonly sameStamp: number | null;
  readonly instead: string;
}

/** Readings of the service's process and of its database, one a second. */
export interface Readings {
  /** Seconds since the process was started. */
  readonly at: number[];
  /** VmRSS. */
  readonly residentBytes: number[];
  /** Entries of /proc/PID/fd, and of them the sockets. */
  readonly files: number[];
  readonly sockets: number[];
  /** Of edge-health.db, and with its log and index beside it. */
  readonly databaseBytes: number[];
  readonly databaseFolderBytes: number[];
}

/** Shares of the time of the machine's processors, in percent. */
export interface HostShares {
  readonly idlePercent: number;
  /** Taken by the host of a virtual machine for others: nothing in the machine runs meanwhile. */
  readonly stealPercent: number;
}

/** Between two answers of /status, some seconds apart. */
export interface Stretch {
  /** Since the first answer. */
  readonly fromSeconds: number;
  readonly seconds: number;
  /** Slots, as the service counts. */
  readonly missed: number;
  readonly host: HostShares | null;
}

export interface SamplingFindings {
  readonly expected: number;
  readonly taken: number;
  /** As the service counts. */
  readonly missed: number;
  readonly host: HostShares | null;
  readonly stretches: readonly Stretch[];
}

export interface AlertFindings {
  /** Times that the soak let the temperature rise until it was CRITICAL and fall again. */
  readonly turns: number;
  /** Of them those that did not show on the event stream in time, in words. */
  readonly unanswered: readonly string[];
  /** Episodes of the run by way, with their changes in order ("WARNING", "CRITICAL", "WARNING resolved"); null: not by this way. */
  readonly byWay: Readonly<Record<'topic' | 'events' | 'rest' | 'peer', Readonly<Record<string, readonly string[]>> | null>>;
}

export interface PathLatency {
  readonly path: string;
  readonly asked: number;
  readonly failed: number;
  /** Milliseconds from asking to the last byte. */
  readonly medianMs: number | null;
  readonly p99Ms: number | null;
  readonly mostMs: number | null;
}

/** What a soak found: all that its judgement is made of. */
export interface Findings {
  readonly began: string;
  readonly machine: Machine;
  readonly kernel: string;
  readonly version: string;
  readonly samples: number;
  readonly hertz: number;
  readonly transport: 'embedded' | 'rclnodejs' | 'off';
  /** Why, as the service says. */
  readonly transportReason: string;
  /** How the topic was listened to; null: it was not. */
  readonly watcher: string | null;
  readonly place: string;
  /** Length of the window that was counted. */
  readonly seconds: number;
  /** Why it is shorter than it should be; null: it is not. */
  readonly cutShort: string | null;
  /** The service ended by itself; null: it did not. */
  readonly died: string | null;
  readonly expected: number;
  readonly counted: readonly Counted[];
  /** By the counters of /status between two readings; null: they could not be had. */
  readonly sampling: SamplingFindings | null;
  readonly samplesGivenUp: number | null;
  readonly readings: Readings;
  readonly warmUpSeconds: number;
  readonly medianSeconds: number;
  readonly database: {
    readonly maxBytes: number;
    /** Samples of days before that it began with. */
    readonly filled: number;
    /** The oldest sample at the begin and at the end of the window. */
    readonly oldest: readonly (string | null)[];
  };
  readonly alerts: AlertFindings;
  readonly rest: readonly PathLatency[];
  /** CPU time over the window. */
  readonly cpuSeconds: number | null;
  readonly watcherCpuSeconds: number;
  readonly notes: readonly string[];
}

/** At the least this: what settles after a start (heap, SQLite's cache, compiled code) takes its time whatever the rate. */
const LEAST_WARM_UP_SECONDS = 90;
const WARM_UP_SHARE = 0.1;
const MEDIANS = 60;
/** At the least as long that what questions take for a moment, each at its turn, is a part of each median. */
const MEDIAN_SECONDS = { least: 30, most: 300 };

/** The engine's rule for memory is made for a week; this scales its warm-up and its medians to a run of this length. */
export function memoryRule(seconds: number): Pick<Findings, 'warmUpSeconds' | 'medianSeconds'> {
  return {
    warmUpSeconds: Math.max(LEAST_WARM_UP_SECONDS, WARM_UP_SHARE * seconds),
    medianSeconds: Math.min(MEDIAN_SECONDS.most, Math.max(MEDIAN_SECONDS.least, seconds / MEDIANS)),
  };
}
