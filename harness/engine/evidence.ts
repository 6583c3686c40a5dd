import type { Severity } from '../../src/core/alerts/alert.ts';

/**
 * What the criteria judge: a summary of a run, either observed (harness/record) or reconstructed from the files that maintenance jobs
 * collected (ops/report). All times named `…At`, `from`, `to` are seconds on the run's own axis: 0 is its begin; it follows the
 * boot-time clock, which neither steps nor stops in a suspend, and between two boots the wall clock.
 */
export interface Evidence {
  readonly origin: 'watched' | 'collected';
  readonly plannedSeconds: number;
  /** The run reached its planned end. */
  readonly ended: boolean;
  /** Time in which the observer ran, in order, not overlapping. */
  readonly watched: readonly WatchedSpan[];
  /** The time between. */
  readonly monitoringGaps: readonly MonitoringGap[];
  /** `at`: the begin of the suspend, as precisely as it is known. */
  readonly suspends: readonly { readonly at: number; readonly seconds: number }[];
  /** `seconds` is positive where the clock was put forward; `wall` is the time after it. */
  readonly clockSteps: readonly { readonly at: number; readonly seconds: number; readonly wall: string }[];
  /** Runs of the service, in order; the first one was under way at the begin, or was the first that was seen. */
  readonly runs: readonly ServiceRun[];
  /** When the service was last seen, on any channel; null: never. */
  readonly lastSeenAt: number | null;
  readonly reliability: ReliabilityEvidence;
  readonly memory: MemoryEvidence;
  readonly cpu: CpuEvidence;
  readonly alerts: AlertEvidence;
  readonly integrity: IntegrityEvidence;
}

export interface WatchedSpan {
  readonly from: number;
  readonly to: number;
  /** Without suspends and without stalls of the observer. */
  readonly awakeSeconds: number;
}

export interface MonitoringGap {
  readonly from: number;
  readonly to: number;
  /** `off`: the machine was off or booting; `away`: it was on, the observer was not running; `stalled`: the observer got no CPU time. */
  readonly kind: 'off' | 'away' | 'stalled';
}

export interface ServiceRun {
  /** When it started: between the time the previous run was last seen and the time this one was first seen. Negative: before the run of the harness. */
  readonly from: number;
  readonly started: string;
  readonly version: string | null;
  /** Why the run before ended (harness/record/entries.ts, CAUSES). */
  readonly cause: string;
  readonly detail: string;
  /** Restarts before it that are known by systemd's count alone. */
  readonly unseen: number;
}

export interface ReliabilityEvidence {
  /** Where distinct statuses were counted; null: nowhere. */
  readonly by: 'topic' | 'events' | 'collected' | null;
  /** Why not by the topic; null: by the topic. */
  readonly reason: string | null;
  readonly hertz: number | null;
  readonly expected: number;
  /** Never more than expected. */
  readonly received: number;
  /** Expected statuses that were not received because there was no subscription: they may have been sent. */
  readonly unobserved: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
  readonly lost: {
    /** No sample was taken: the service was down, or missed the sample. */
    readonly notSampled: number;
    /** Sampled, but not handed to the graph. */
    readonly notPublished: number;
    /** Handed to the graph, but not received. */
    readonly notDelivered: number;
    /** Not shown by the counters; includes samples without a subscription. */
    readonly unknown: number;
  };
  /** The same by the event stream, for information. */
  readonly byEvents: { readonly expected: number; readonly received: number } | null;
}

export interface MemoryEvidence {
  /** Readings of the service's resident memory, in order. */
  readonly at: Float64Array;
  readonly bytes: Float64Array;
  /** Of the machine in percent, at the same times; NaN: unknown. */
  readonly hostPercent: Float64Array;
  /** Of the control group, page cache included; null: not known. */
  readonly group: { readonly lastBytes: number; readonly maxBytes: number } | null;
}

export interface CpuEvidence {
  /** CPU time of the service over the intervals that readings of one run cover. */
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
  /** Open at the end by REST; null: no answer. */
  readonly openByRest: readonly OpenEpisode[] | null;
  /** Open at the end by the topic (collected: by the files of alerts/); null: not subscribed. */
  readonly openByTopic: readonly OpenEpisode[] | null;
  /** Why there are no alerts of the topic; null: there are. */
  readonly reason: string | null;
}

export interface CoverageEvidence {
  readonly count: number;
  /** Share of the run that was scanned, 0 to 1. */
  readonly covered: number;
  /** Between neighbours, and from begin and to end of the run; `seconds` without suspends and clock steps. */
  readonly gaps: readonly CoverageGap[];
  readonly longestSeconds: number;
  /** The longest time without a known sample or row that was not scanned: a gap of this length may hide there. */
  readonly unscannedSeconds: number;
}

export interface CoverageGap {
  /** ISO 8601, as the samples are stamped. */
  readonly from: string;
  readonly to: string;
  /** Without the time that `excused` explains. */
  readonly seconds: number;
  /** Such as "suspended for 3600 s", "the clock was put forward by 3600 s"; may be empty. */
  readonly excused: string;
  /** What else is known and excuses nothing, such as "the machine was off"; may be empty. */
  readonly remark: string;
}

export interface IntegrityEvidence {
  readonly stored: CoverageEvidence | null;
  readonly collected: CoverageEvidence | null;
  /** Why one of them is missing; null: neither is. */
  readonly reason: string | null;
}

/** Columns over one time axis, one point per minute or fewer; null: not known. */
export interface ChartColumns {
  /** Seconds on the run's axis. */
  readonly at: readonly number[];
  /** Received of expected statuses. */
  readonly ratePercent: readonly (number | null)[];
  readonly memoryMegabytes: readonly (number | null)[];
  readonly hostMemoryPercent: readonly (number | null)[];
  /** Of one core. */
  readonly cpuPercent: readonly (number | null)[];
  readonly hostCpuPercent: readonly (number | null)[];
  readonly celsius: readonly (number | null)[];
}

/** What the charts of a report draw. */
export interface ChartSeries extends ChartColumns {
  /** Seconds since the epoch at which the axis begins, for labels. */
  readonly begunEpochSeconds: number;
  /** `to` null: still open at the end. */
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
