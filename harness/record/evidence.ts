import { isoUtc } from '../../src/core/time/time.ts';
import type {
  AlertEvidence,
  ChartSeries,
  Evidence,
  IntegrityEvidence,
  MonitoringGap,
  OpenEpisode,
  ReliabilityEvidence,
} from '../engine/evidence.ts';
import {
  type BeginEntry,
  CHANNELS,
  type Channel,
  type Clocked,
  type MinuteEntry,
  type Observer,
  type OpenAlert,
  type OpenEntry,
  type RecordEntry,
  type ResumeEntry,
  type Target,
} from './entries.ts';
import { AlertEpisodes, LIST_SECONDS } from './evidence/alert-episodes.ts';
import { Coverage, type MachineOff } from './evidence/coverage.ts';
import { Chart, ResourceReadings } from './evidence/readings.ts';
import { ServiceRuns } from './evidence/service-runs.ts';
import { DISTINCT_SECONDS, Losses, ObservedSpans, StatusDeduplicator } from './evidence/statuses.ts';
import { type ClockEvent, type Interval, TimeAxis } from './evidence/time-axis.ts';

/** Start of the current interval: the last `begin`, `resume` or `minute`. */
interface Mark {
  readonly at: number;
  readonly mono: number;
  /** True if it was not a `minute`. */
  readonly fresh: boolean;
  /** True if the stamps come from another machine's clock. */
  readonly remote: boolean;
}

/** Computes the input of the criteria and the charts from the entries of a record, one by one and from no other source. */
export class EvidenceBuilder {
  readonly #axis = new TimeAxis();
  readonly #spans = new ObservedSpans();
  readonly #distinct = { topic: new StatusDeduplicator(), events: new StatusDeduplicator() };
  readonly #losses = new Losses();
  readonly #runs = new ServiceRuns();
  readonly #readings = new ResourceReadings();
  readonly #alertEpisodes = { topic: new AlertEpisodes(), events: new AlertEpisodes() };
  readonly #chart = new Chart();
  readonly #monitoringGaps: MonitoringGap[] = [];
  // Stryker disable next-line ArrayDeclaration: a text among the times has no time, and none is compared with it
  readonly #offs: MachineOff[] = [];
  #coverage: { readonly stored: Coverage; readonly collected: Coverage } | null = null;
  #plannedSeconds = 0;
  #beginMs = 0;
  #mark: Mark | null = null;
  #lastWall = 0;
  /** Wall-clock time at the last minute. */
  #endMs = 0;
  #hertz: number | null = null;
  /** Whether the topic was ever requested and available; and the last reason for its absence. */
  #topicAsked = false;
  #topicOff: string | null = null;
  #received = { topic: 0, events: 0 };
  #lastSeenAt: number | null = null;
  #lastReadingAt = Number.NEGATIVE_INFINITY;
  #open: { readonly at: number; readonly list: readonly OpenAlert[] } | null = null;
  #sessionBeganAt = 0;
  /** Whether there was no subscription in the last minute, by channel. */
  readonly #unsubscribed = { topic: true, events: true };
  #ended = false;
  #eventsSeen = 0;

  /** A `torn` entry is ignored, because it precedes the `resume` entry with the boot id of its clocks. */
  add(entry: RecordEntry): void {
    switch (entry.type) {
      case 'begin':
        this.#plannedSeconds = entry.planned_seconds;
        this.#beginMs = entry.wall;
        this.#coverage = { stored: new Coverage('stored', entry.wall), collected: new Coverage('collected', entry.wall) };
        this.#beginSession(entry, this.#axis.begin(entry));
        break;
      case 'resume':
        this.#resume(entry);
        break;
      case 'minute':
        this.#minute(entry);
        break;
      case 'service':
        this.#runs.recorded(entry, { at: this.#advance(entry), wall: entry.wall, boot: this.#axis.boot });
        break;
      case 'alert':
        this.#alertEpisodes[entry.by].changed(entry, this.#advance(entry));
        break;
      case 'open':
        this.#listed(entry);
        break;
      case 'coverage':
        this.#advance(entry);
        this.#coverage?.[entry.of].add(entry);
        break;
      case 'clock':
      case 'note':
        this.#advance(entry, entry.type === 'clock');
        break;
      case 'end':
        this.#ended = true;
        break;
    }
  }

  /** Boot-time seconds in which the observer ran. */
  get observedSeconds(): number {
    return this.#spans.merged().reduce((sum, { from, to }) => sum + Math.round((to - from) * 1000), 0) / 1000;
  }

  evidence(): Evidence {
    const events = this.#axis.events;
    const stalls = this.#spans.stalls().map((stall): MonitoringGap => ({ ...stall, kind: 'stalled' }));
    return {
      origin: 'observed',
      plannedSeconds: this.#plannedSeconds,
      ended: this.#mark !== null && this.observedSeconds >= this.#plannedSeconds,
      observed: this.#spans.merged(),
      monitoringGaps: [...this.#monitoringGaps, ...stalls].sort((one, other) => one.from - other.from),
      suspends: events.filter(({ kind }) => kind === 'suspend').map(({ at, seconds }) => ({ at, seconds })),
      clockSteps: events.filter(({ kind }) => kind === 'step').map(({ at, seconds, latest }) => ({ at, seconds, wall: isoUtc(latest) })),
      runs: this.#runs.runs(),
      lastSeenAt: this.#lastSeenAt,
      reliability: this.#reliability(),
      memory: this.#readings.memory(),
      cpu: this.#readings.cpu(),
      alerts: this.#alerts(),
      integrity: this.#integrity(),
    };
  }

  series(): ChartSeries {
    const { monitoringGaps, clockSteps, runs, suspends } = this.evidence();
    return {
      begunEpochSeconds: this.#beginMs / 1000,
      ...this.#chart.columns(this.#channel()),
      alerts: this.#alertEpisodes[this.#channel()].series(),
      restarts: runs.slice(1).map(({ from, cause, detail }) => ({ at: from, cause, detail })),
      monitoringGaps,
      suspends,
      clockSteps: clockSteps.map(({ at, seconds }) => ({ at, seconds })),
    };
  }

  #advance(entry: Clocked, detected = false): number {
    const at = this.#axis.place(entry, detected);
    this.#lastWall = entry.wall;
    this.#noticeSteps();
    return at;
  }

  #noticeSteps(): void {
    for (const { seconds } of this.#axis.events.slice(this.#eventsSeen)) {
      // Stryker disable next-line EqualityOperator: putting back by 0 s changes nothing
      if (seconds < 0) for (const coverage of Object.values(this.#coverage ?? {})) coverage.putBack(-seconds);
    }
    this.#eventsSeen = this.#axis.events.length;
  }

  #beginSession({ mono, target, wall, observer }: BeginEntry | ResumeEntry, at: number): void {
    this.#mark = { at, mono, fresh: true, remote: target.kind === 'url' };
    this.#endMs = wall;
    this.#sessionBeganAt = at;
    this.#lastWall = wall;
    this.#hertz = target.configured_hertz;
    const off = whyNotByTopic(target, observer);
    if (off === null) this.#topicAsked = true;
    else this.#topicOff = off;
    for (const channel of CHANNELS) this.#alertEpisodes[channel].startSession(at);
  }

  #resume(entry: ResumeEntry): void {
    const rebooted = this.#axis.resume(entry);
    const at = this.#axis.at(entry);
    if (this.#mark !== null) this.#monitoringGaps.push({ from: this.#mark.at, to: at, kind: rebooted ? 'off' : 'away' });
    if (rebooted) this.#offs.push({ from: this.#lastWall, to: entry.wall });
    this.#chart.gap(at);
    this.#beginSession(entry, at);
  }

  #minute(entry: MinuteEntry): void {
    const at = this.#advance(entry);
    const mark = this.#mark;
    if (mark === null) return;
    const { mono, service, wall } = entry;
    if (service !== null) {
      this.#hertz = service.configured_hertz;
      this.#runs.read(service, { at, wall, boot: this.#axis.boot });
      this.#lastSeenAt = at;
      this.#lastReadingAt = at;
    }
    const interval = this.#interval(mark, entry, at);
    this.#spans.add(interval);
    const counts = { topic: 0, events: 0 };
    for (const channel of CHANNELS) {
      const received = entry[channel];
      this.#unsubscribed[channel] = received === null;
      if (received === null) this.#spans.unsubscribed(channel, interval.awakeSeconds);
      else {
        this.#distinct[channel].add(received, interval, mark.remote, (stampedAt) => {
          counts[channel]++;
          this.#spans.count(channel, stampedAt);
          if (stampedAt <= at) this.#lastSeenAt = Math.max(stampedAt, this.#lastSeenAt ?? 0);
        });
      }
      this.#received[channel] += counts[channel];
    }
    this.#losses.add(interval, service, counts);
    const cpuPercent = this.#readings.add(entry, interval, this.#runs.last, this.#axis.boot);
    this.#chart.add(entry, interval, counts, cpuPercent);
    this.#mark = { at, mono, fresh: false, remote: mark.remote };
    this.#endMs = wall;
  }

  #interval(mark: Mark, { mono, stalled_seconds }: MinuteEntry, at: number): Interval {
    const monotonicSeconds = Math.max(0, mono - mark.mono);
    // Statuses stamped before a clock step may be received again for as long as they are remembered.
    // Stryker disable next-line EqualityOperator: statuses stamped by the older clock are forgotten at that moment
    const isRecent = ({ at }: ClockEvent): boolean => at >= mark.at - DISTINCT_SECONDS;
    const steps = this.#axis.events.filter((event) => event.kind === 'step' && isRecent(event));
    const wallOffsets = [this.#axis.wallOffset()];
    for (const { seconds } of steps.reverse()) wallOffsets.push((wallOffsets.at(-1) as number) - seconds);
    return {
      from: mark.at,
      to: Math.max(mark.at, at),
      awakeSeconds: Math.max(0, monotonicSeconds - stalled_seconds),
      monotonicSeconds,
      stalledSeconds: stalled_seconds,
      fresh: mark.fresh,
      hertz: this.#hertz ?? 1,
      wallOffsets,
    };
  }

  #listed(entry: OpenEntry): void {
    const at = this.#advance(entry);
    this.#open = { at, list: entry.open };
    for (const channel of CHANNELS) this.#alertEpisodes[channel].listedOpen(entry, at);
  }

  /** Whether the service published, by its own count or, without one, by the event stream, but nothing arrived on the topic. */
  get #isTopicEmpty(): boolean {
    return this.#received.topic === 0 && (this.#losses.published ?? this.#received.events) > 0;
  }

  #channel(): Channel {
    return this.#topicAsked && !this.#isTopicEmpty ? 'topic' : 'events';
  }

  #reliability(): ReliabilityEvidence {
    const channel = this.#topicAsked ? 'topic' : 'events';
    const tally = this.#spans.tally(channel);
    const isEmpty = channel === 'topic' && this.#isTopicEmpty;
    const counted = isEmpty ? { ...tally, unobserved: tally.expected } : tally;
    const events = this.#spans.tally('events');
    return {
      by: channel === 'events' && tally.unobserved === tally.expected ? null : channel,
      reason: channel === 'events' ? this.#topicOff : isEmpty ? NOTHING_ON_TOPIC : null,
      hertz: this.#hertz,
      ...counted,
      duplicates: this.#distinct[channel].duplicates,
      outOfOrder: this.#distinct[channel].outOfOrder,
      lost: this.#losses.of(channel, counted),
      byEvents:
        channel === 'events' || events.unobserved === events.expected ? null : { expected: events.expected, received: events.received },
    };
  }

  #alerts(): AlertEvidence {
    const channel = this.#topicAsked ? 'topic' : 'events';
    const isEmpty = this.#unsubscribed[channel] || (channel === 'topic' && this.#isTopicEmpty);
    const reason = channel === 'events' ? this.#topicOff : isEmpty ? NOTHING_ON_TOPIC : null;
    const episodes = this.#alertEpisodes[channel];
    return { episodes: episodes.countsByWorst(), openByRest: this.#openByRest(), openByTopic: isEmpty ? null : episodes.open(), reason };
  }

  /** The open alerts as listed at the end or, during the run, in the last list if the service still responds. */
  #openByRest(): readonly OpenEpisode[] | null {
    const open = this.#open;
    const end = this.#mark?.at ?? 0;
    if (open === null || open.at < this.#sessionBeganAt) return null;
    const answers = this.#lastReadingAt >= end - LIST_SECONDS;
    const isRunning = !this.#ended && this.observedSeconds < this.#plannedSeconds && answers;
    if (open.at < end - LIST_SECONDS && !isRunning) return null;
    return open.list.map(({ alert_id, metric, severity }) => ({ alertId: alert_id, metric, severity, since: null }));
  }

  #integrity(): IntegrityEvidence {
    const stored = this.#coverage?.stored.evidence(this.#endMs, this.#axis.events, this.#offs) ?? null;
    const collected = this.#coverage?.collected.evidence(this.#endMs, this.#axis.events, this.#offs) ?? null;
    return { stored, collected, reason: stored === null || collected === null ? 'not scanned' : null };
  }
}

const NOTHING_ON_TOPIC = 'nothing arrived on the topic, although the service published';

/** The reason for display; null if the topic was requested and available. */
function whyNotByTopic(target: Target, observer: Observer): string | null {
  if (target.service_transport === 'off') return 'the service is not on the ROS 2 graph (ros.transport: off)';
  return observer.transport === 'off' ? 'the run does not subscribe on the ROS 2 graph (--transport off)' : null;
}
