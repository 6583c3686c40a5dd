import type { Severity } from '../../src/core/alerts/alert.ts';

/**
 * The input of the criteria: a summary of a run, either observed (harness/record) or reconstructed from the files that maintenance jobs
 * collected (ops/report). All times named `…At`, `from`, `to` are seconds on the run's own axis. 0 is its start; the axis follows the
 * boot-time clock, which neither steps nor stops in a suspend, and the wall clock between two boots.
 */
export interface Evidence {
  readonly origin: 'observed' | 'collected';
  readonly plannedSeconds: number;
  /** Whether the run reached its planned end. */
  readonly ended: boolean;
  /** Time in which the observer ran, in order and without overlaps. */
  readonly observed: readonly ObservedSpan[];
  /** The time between the observed spans. */
  readonly monitoringGaps: readonly MonitoringGap[];
  /** `at`: the start of the suspend, as precisely as it is known. */
  readonly suspends: readonly { readonly at: number; readonly seconds: number }[];
  /** `seconds` is positive if the clock was set forward; `wall` is the time after the step. */
  readonly clockSteps: readonly { readonly at: number; readonly seconds: number; readonly wall: string }[];
  /** Runs of the service, in order; the first one was already running at the start, or was the first one seen. */
  readonly runs: readonly ServiceRun[];
  /** When the service was last seen, on any channel; null if never. */
  readonly lastSeenAt: number | null;
  readonly reliability: ReliabilityEvidence;
  readonly memory: MemoryEvidence;
  readonly cpu: CpuEvidence;
  readonly alerts: AlertEvidence;
  readonly integrity: IntegrityEvidence;
}

export interface ObservedSpan {
  readonly from: number;
  readonly to: number;
  /** Excludes suspends and stalls of the observer. */
  readonly awakeSeconds: number;
}

export interface MonitoringGap {
  readonly from: number;
  readonly to: number;
  /**
   * `off`: the machine was off or booting; `away`: the machine was on but the observer was not running; `stalled`: the
   * observer got no CPU time.
   */
  readonly kind: 'off' | 'away' | 'stalled';
}

export interface ServiceRun {
  /**
   * Start time, between the time the previous run was last seen and the time this one was first seen. Negative if
   * before the run of the harness.
   */
  readonly from: number;
  readonly started: string;
  readonly version: string | null;
  /** Why the previous run ended (harness/record/entries.ts, CAUSES). */
  readonly cause: string;
  readonly detail: string;
  /** Earlier restarts that are known only from systemd's count. */
  readonly unseen: number;
}

export interface ReliabilityEvidence {
  /** The channel on which distinct statuses were counted; null if there was none. */
  readonly by: 'topic' | 'events' | 'collected' | null;
  /** Why the topic was not used; null if it was. */
  readonly reason: string | null;
  readonly hertz: number | null;
  readonly expected: number;
  /** At most `expected`. */
  readonly received: number;
  /** Expected statuses that were not received because there was no subscription. They may have been sent. */
  readonly unobserved: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
  readonly lost: {
    /** No sample was taken: the service was down, or missed the sample. */
    readonly notSampled: number;
    /** Sampled, but not passed to the ROS 2 graph. */
    readonly notPublished: number;
    /** Passed to the ROS 2 graph, but not received. */
    readonly notDelivered: number;
    /** The counters do not show the cause; includes samples without a subscription. */
    readonly unknown: number;
  };
  /** The same counts from the event stream, for information. */
  readonly byEvents: { readonly expected: number; readonly received: number } | null;
}

export interface MemoryEvidence {
  /** Readings of the service's resident memory, in order. */
  readonly at: Float64Array;
  readonly bytes: Float64Array;
  /** Memory usage of the machine in percent, at the same times; NaN if unknown. */
  readonly hostPercent: Float64Array;
  /** Memory of the control group, including the page cache; null if unknown. */
  readonly group: { readonly lastBytes: number; readonly maxBytes: number } | null;
}

export interface CpuEvidence {
  /** CPU time of the service in the intervals between readings of the same run. */
  readonly cpuSeconds: number;
  /** Time awake in these intervals. */
  readonly awakeSeconds: number;
  readonly from: string;
  readonly hostMeanPercent: number | null;
}

export interface OpenEpisode {
  readonly alertId: string;
  readonly metric: string;
  readonly severity: Severity;
  readonly since: string | null;
}

export interface AlertEvidence {
  /** Episodes seen in the run, by the worst severity of each. */
  readonly episodes: Readonly<Record<Severity, number>>;
  /** Alerts open at the end according to REST; null if there was no response. */
  readonly openByRest: readonly OpenEpisode[] | null;
  /** Alerts open at the end according to the topic (for collected runs: the files of alerts/); null if not subscribed. */
  readonly openByTopic: readonly OpenEpisode[] | null;
  /** Why there are no alerts from the topic; null if there are. */
  readonly reason: string | null;
}

export interface CoverageEvidence {
  readonly count: number;
  /** Fraction of the run that was scanned, 0 to 1. */
  readonly covered: number;
  /** Gaps between neighbours, from the start, and to the end of the run; `seconds` excludes suspends and clock steps. */
  readonly gaps: readonly CoverageGap[];
  readonly longestSeconds: number;
  /** The longest unscanned time without a known sample or row, which may contain a gap of this length. */
  readonly unscannedSeconds: number;
}

export interface CoverageGap {
  /** Time stamps as stored with the samples, ISO 8601. */
  readonly from: string;
  readonly to: string;
  /** Length without the time that `excused` explains. */
  readonly seconds: number;
  /** Such as "suspended for 3600 s" or "the clock was set forward by 3600 s"; may be empty. */
  readonly excused: string;
  /** Other known facts that do not excuse the gap, such as "the machine was off"; may be empty. */
  readonly remark: string;
}

export interface IntegrityEvidence {
  readonly stored: CoverageEvidence | null;
  readonly collected: CoverageEvidence | null;
  /** Why one of them is missing; null if both are present. */
  readonly reason: string | null;
}

/** Columns on a common time axis, one point per minute or fewer; null if unknown. */
export interface ChartColumns {
  /** Seconds on the run's axis. */
  readonly at: readonly number[];
  /** Received statuses in percent of the expected ones. */
  readonly ratePercent: readonly (number | null)[];
  readonly memoryMegabytes: readonly (number | null)[];
  readonly hostMemoryPercent: readonly (number | null)[];
  /** In percent of one core. */
  readonly cpuPercent: readonly (number | null)[];
  readonly hostCpuPercent: readonly (number | null)[];
  readonly celsius: readonly (number | null)[];
}

/** The data of a report's charts. */
export interface ChartSeries extends ChartColumns {
  /** Start of the axis in seconds since the epoch, for labels. */
  readonly begunEpochSeconds: number;
  /** `to` is null if the alert is still open at the end. */
  readonly alerts: readonly {
    readonly from: number;
    readonly to: number | null;
    readonly severity: string;
    readonly metric: string;
    readonly alertId: string;
  }[];
  readonly restarts: readonly { readonly at: number; readonly cause: string; readonly detail: string }[];
  readonly monitoringGaps: Evidence['monitoringGaps'];
  readonly suspends: Evidence['suspends'];
  readonly clockSteps: readonly { readonly at: number; readonly seconds: number }[];
}
