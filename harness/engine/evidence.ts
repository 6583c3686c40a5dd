import type { Severity } from '../../src/core/alert.ts';

/**
 * What the criteria judge: a run boiled down, whether it was watched (harness/record) or reconstructed from what operations collected
 * (ops/report). All times named `…At`, `from`, `to` are seconds on the run's own axis: 0 is its begin; it goes with the boot-time clock,
 * which neither steps nor stops in a suspend; between two boots it goes on by the wall clock.
 */
export interface Evidence {
  readonly origin: 'watched' | 'collected';
  readonly plannedSeconds: number;
  /** The run came to its planned end. */
  readonly ended: boolean;
  /** Stretches in which somebody looked, in order, not overlapping. */
  readonly watched: readonly WatchedSpan[];
  /** Stretches between them. */
  readonly absences: readonly Absence[];
  /** `at`: when the machine fell asleep, as far as it can be told. */
  readonly suspends: readonly { readonly at: number; readonly seconds: number }[];
  /** `seconds` is positive where the clock was put forward; `wall` is the time after it. */
  readonly clockSteps: readonly { readonly at: number; readonly seconds: number; readonly wall: string }[];
  /** Runs of the service, in order; the first was there at the begin, or was the first that was seen. */
  readonly runs: readonly ServiceRun[];
  /** When the service last gave a sign of life, by whatever way; null: it never did. */
  readonly lastHeardAt: number | null;
  readonly reliability: ReliabilityEvidence;
  readonly memory: MemoryEvidence;
  readonly cpu: CpuEvidence;
  readonly alerts: AlertEvidence;
  readonly integrity: IntegrityEvidence;
}

export interface WatchedSpan {
  readonly from: number;
  readonly to: number;
  /** Of it, without suspends and without what the watcher itself missed. */
  readonly awakeSeconds: number;
}

export interface Absence {
  readonly from: number;
  readonly to: number;
  /** `off`: the machine was off or booting; `away`: it was on, the watcher was not running; `stalled`: it was kept from running. */
  readonly kind: 'off' | 'away' | 'stalled';
}

export interface ServiceRun {
  /** When it started, as far as it can be told: between the last sight of the run before and the first of this one. Negative: before the run of the harness. */
  readonly from: number;
  readonly started: string;
  readonly version: string | null;
  /** Why the run before ended (harness/record/entries.ts, CAUSES). */
  readonly cause: string;
  readonly detail: string;
  /** Restarts before it of which nothing else is known. */
  readonly unseen: number;
}

export interface ReliabilityEvidence {
  /** Where distinct statuses were counted; null: nowhere. */
  readonly by: 'topic' | 'events' | 'collected' | null;
  /** Why not by the topic; null: it is by the topic. */
  readonly instead: string | null;
  readonly hertz: number | null;
  readonly expected: number;
  /** Of these slots; never more than expected. */
  readonly received: number;
  /** Of the slots that are expected and not received: those in which nobody listened, so that they may have been there. */
  readonly unheard: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
  readonly lost: {
    /** No sample was taken: the service was down, or missed the slot. */
    readonly notSampled: number;
    /** Sampled, and not handed to the graph. */
    readonly notPublished: number;
    /** Handed to the graph, and not received. */
    readonly notDelivered: number;
    /** The counters do not tell (slots without a subscription among them). */
    readonly unknown: number;
  };
  /** The same by the other way, for information. */
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
  /** CPU time the service used over the stretches that readings of one run cover. */
  readonly cpuSeconds: number;
  /** Time awake of these stretches. */
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
  /** Episodes seen in the run, by the worst severity that each had. */
  readonly episodes: Readonly<Record<Severity, number>>;
  /** Open at the end by REST; null: it was not asked, or did not answer. */
  readonly openByRest: readonly OpenEpisode[] | null;
  /** Open at the end by the topic (collected: by the files of alerts/); null: not subscribed. */
  readonly openByTopic: readonly OpenEpisode[] | null;
  /** Why the topic tells nothing; null: it does. */
  readonly instead: string | null;
}

export interface HoldingEvidence {
  readonly count: number;
  /** Share of the run that looks at it cover, 0 to 1. */
  readonly covered: number;
  /** Between neighbours, and from begin and to end of the run; `seconds` without suspends and clock steps. */
  readonly gaps: readonly HoldingGap[];
  readonly longestSeconds: number;
  /** The longest stretch without a known sample or row at which nobody could look: so long a gap may hide there. */
  readonly blindSeconds: number;
}

export interface HoldingGap {
  /** ISO 8601, as the samples are stamped. */
  readonly from: string;
  readonly to: string;
  /** Without what `excused` tells. */
  readonly seconds: number;
  /** Such as "suspended for 3600 s", "the clock was put forward by 3600 s"; empty: nothing. */
  readonly excused: string;
  /** What else is known of it and excuses nothing, such as "the machine was off"; empty: nothing. */
  readonly remark: string;
}

export interface IntegrityEvidence {
  readonly stored: HoldingEvidence | null;
  readonly collected: HoldingEvidence | null;
  /** Why one of them is missing; null: neither is. */
  readonly instead: string | null;
}
