import { isoUtc } from '../../src/core/time.ts';
import type { Absence, AlertEvidence, Evidence, IntegrityEvidence, OpenEpisode, ReliabilityEvidence } from '../engine/evidence.ts';
import type { Series } from '../engine/series.ts';
import type { BeginEntry, Clocked, MinuteEntry, OpenAlert, OpenEntry, RecordEntry, ResumeEntry, Target, Watcher } from './entries.ts';
import { AlertBook, type AlertBooks, LIST_SECONDS } from './evidence/alert-book.ts';
import { Axis } from './evidence/axis.ts';
import { Chart } from './evidence/chart.ts';
import { DISTINCT_SECONDS, Distinct } from './evidence/distinct.ts';
import type { MachineOff } from './evidence/excuses.ts';
import { Holding } from './evidence/holding.ts';
import { Losses } from './evidence/losses.ts';
import { Readings } from './evidence/readings.ts';
import { ServiceRuns } from './evidence/service-runs.ts';
import { Spans } from './evidence/spans.ts';
import type { Stretch } from './evidence/stretch.ts';
import { WAYS, type Way } from './evidence/way.ts';

/** Where the present stretch began: the last `begin`, `resume` or `minute`. */
interface Mark extends Clocked {
  readonly at: number;
  /** It was no `minute`. */
  readonly fresh: boolean;
  /** The stamps are of another machine's clock. */
  readonly remote: boolean;
}

/** Boils a record down, entry by entry, to what the criteria judge and what the charts draw. A function of the entries alone. */
export class EvidenceBuilder {
  readonly #axis = new Axis();
  readonly #spans = new Spans();
  readonly #distinct = { topic: new Distinct(), events: new Distinct() };
  readonly #losses = new Losses();
  readonly #runs = new ServiceRuns();
  readonly #readings = new Readings();
  readonly #books: AlertBooks = { topic: new AlertBook(), events: new AlertBook() };
  readonly #chart = new Chart();
  readonly #absences: Absence[] = [];
  readonly #offs: MachineOff[] = [];
  #holdings: { readonly stored: Holding; readonly collected: Holding } | null = null;
  #plannedSeconds = 0;
  #beginMs = 0;
  #mark: Mark | null = null;
  #lastWall = 0;
  /** Of the wall clock, at the last minute. */
  #endMs = 0;
  #hertz: number | null = null;
  /** Whether the topic was asked for and there, ever; and why not, the last time that it was not. */
  #topicAsked = false;
  #topicOff: string | null = null;
  #heard = { topic: 0, events: 0 };
  #lastHeardAt: number | null = null;
  #lastReadingAt = Number.NEGATIVE_INFINITY;
  #open: { readonly at: number; readonly list: readonly OpenAlert[] } | null = null;
  #listenedAt = 0;
  /** In the last minute there was no subscription. */
  readonly #deaf = { topic: true, events: true };
  #ended = false;
  #eventsSeen = 0;

  /** A `torn` entry tells nothing: it is written before the `resume` that tells which boot its clocks are of. */
  add(entry: RecordEntry): void {
    switch (entry.type) {
      case 'begin':
        this.#plannedSeconds = entry.planned_seconds;
        this.#beginMs = entry.wall;
        this.#holdings = { stored: new Holding('stored', entry.wall), collected: new Holding('collected', entry.wall) };
        this.#listen(entry, this.#axis.begin(entry));
        break;
      case 'resume':
        this.#resume(entry);
        break;
      case 'minute':
        this.#minute(entry);
        break;
      case 'service':
        this.#runs.recorded(entry, { at: this.#place(entry), wall: entry.wall, boot: this.#axis.boot });
        break;
      case 'alert':
        this.#books[entry.by].told(entry, this.#place(entry));
        break;
      case 'open':
        this.#listed(entry);
        break;
      case 'holding':
        this.#place(entry);
        this.#holdings?.[entry.of].add(entry);
        break;
      case 'clock':
        this.#place(entry, true);
        break;
      case 'note':
        this.#place(entry);
        break;
      case 'end':
        this.#ended = true;
        break;
    }
  }

  /** Boot-time seconds in which somebody looked. */
  get watchedSeconds(): number {
    return this.#spans.watched().reduce((sum, { from, to }) => sum + Math.round((to - from) * 1000), 0) / 1000;
  }

  evidence(): Evidence {
    const events = this.#axis.events;
    const stalls = this.#spans.stalls().map((stall): Absence => ({ ...stall, kind: 'stalled' }));
    return {
      origin: 'watched',
      plannedSeconds: this.#plannedSeconds,
      ended: this.#mark !== null && this.watchedSeconds >= this.#plannedSeconds,
      watched: this.#spans.watched(),
      absences: [...this.#absences, ...stalls].sort((one, other) => one.from - other.from),
      suspends: events.filter(({ kind }) => kind === 'suspend').map(({ at, seconds }) => ({ at, seconds })),
      clockSteps: events.filter(({ kind }) => kind === 'step').map(({ at, seconds, latest }) => ({ at, seconds, wall: isoUtc(latest) })),
      runs: this.#runs.runs(),
      lastHeardAt: this.#lastHeardAt,
      reliability: this.#reliability(),
      memory: this.#readings.memory(),
      cpu: this.#readings.cpu(),
      alerts: this.#alerts(),
      integrity: this.#integrity(),
    };
  }

  series(): Series {
    const { absences, clockSteps, runs, suspends } = this.evidence();
    return {
      begunEpochSeconds: this.#beginMs / 1000,
      ...this.#chart.columns(this.#way()),
      alerts: this.#books[this.#way()].series(),
      restarts: runs.slice(1).map(({ from, cause, detail }) => ({ at: from, cause, detail })),
      absences,
      suspends,
      clockSteps: clockSteps.map(({ at, seconds }) => ({ at, seconds })),
    };
  }

  #place(entry: Clocked, detected = false): number {
    const at = this.#axis.place(entry, detected);
    this.#lastWall = entry.wall;
    this.#noticeSteps();
    return at;
  }

  #noticeSteps(): void {
    for (const { seconds } of this.#axis.events.slice(this.#eventsSeen)) {
      if (seconds < 0) for (const holding of Object.values(this.#holdings ?? {})) holding.putBack(-seconds);
    }
    this.#eventsSeen = this.#axis.events.length;
  }

  #listen({ boot, mono, target, wall, watcher }: BeginEntry | ResumeEntry, at: number): void {
    this.#mark = { boot, mono, wall, at, fresh: true, remote: target.kind === 'url' };
    this.#endMs = wall;
    this.#listenedAt = at;
    this.#lastWall = wall;
    this.#hertz = target.configured_hertz;
    const off = whyNotByTopic(target, watcher);
    if (off === null) this.#topicAsked = true;
    else this.#topicOff = off;
    for (const way of WAYS) this.#books[way].listen(at);
  }

  #resume(entry: ResumeEntry): void {
    const rebooted = this.#axis.resume(entry);
    const at = this.#axis.at(entry);
    if (this.#mark !== null) this.#absences.push({ from: this.#mark.at, to: at, kind: rebooted ? 'off' : 'away' });
    if (rebooted) this.#offs.push({ from: this.#lastWall, to: entry.wall });
    this.#chart.gap(at);
    this.#listen(entry, at);
  }

  #minute(entry: MinuteEntry): void {
    const at = this.#place(entry);
    const mark = this.#mark;
    if (mark === null) return;
    const { boot, mono, service, wall } = entry;
    if (service !== null) {
      this.#hertz = service.configured_hertz;
      this.#runs.read(service, { at, wall, boot: this.#axis.boot });
      this.#lastHeardAt = at;
      this.#lastReadingAt = at;
    }
    const stretch = this.#stretch(mark, entry, at);
    this.#spans.add(stretch);
    const counts = { topic: 0, events: 0 };
    for (const way of WAYS) {
      const received = entry[way];
      this.#deaf[way] = received === null;
      if (received === null) this.#spans.deaf(way, stretch.awakeSeconds);
      else {
        this.#distinct[way].add(received, stretch, mark.remote, (stampedAt) => {
          counts[way]++;
          this.#spans.count(way, stampedAt);
          if (stampedAt <= at) this.#lastHeardAt = Math.max(stampedAt, this.#lastHeardAt ?? 0);
        });
      }
      this.#heard[way] += counts[way];
    }
    this.#losses.add(stretch, service, counts);
    const cpuPercent = this.#readings.add(entry, stretch, this.#runs.last, this.#axis.boot);
    this.#chart.add(entry, stretch, counts, cpuPercent);
    this.#mark = { boot, mono, wall, at, fresh: false, remote: mark.remote };
    this.#endMs = wall;
  }

  #stretch(mark: Mark, { mono, stalled_seconds }: MinuteEntry, at: number): Stretch {
    const monotonicSeconds = Math.max(0, mono - mark.mono);
    // What was stamped before the clock was set may come again for as long as it is remembered.
    const steps = this.#axis.events.filter((event) => event.kind === 'step' && event.at >= mark.at - DISTINCT_SECONDS);
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
    const at = this.#place(entry);
    this.#open = { at, list: entry.open };
    for (const way of WAYS) this.#books[way].listedOpen(entry, at);
  }

  /** The service published, as it counts itself or, where it does not, as the event stream told, and the topic told nothing at all. */
  get #topicDeaf(): boolean {
    return this.#heard.topic === 0 && (this.#losses.published ?? this.#heard.events) > 0;
  }

  #way(): Way {
    return this.#topicAsked && !this.#topicDeaf ? 'topic' : 'events';
  }

  #reliability(): ReliabilityEvidence {
    const way = this.#topicAsked ? 'topic' : 'events';
    const tally = this.#spans.tally(way);
    const deaf = way === 'topic' && this.#topicDeaf;
    const counted = deaf ? { ...tally, unheard: tally.expected } : tally;
    const events = this.#spans.tally('events');
    return {
      by: way === 'events' && tally.unheard === tally.expected ? null : way,
      instead: way === 'events' ? this.#topicOff : deaf ? NOTHING_ON_TOPIC : null,
      hertz: this.#hertz,
      ...counted,
      duplicates: this.#distinct[way].duplicates,
      outOfOrder: this.#distinct[way].outOfOrder,
      lost: this.#losses.of(way, counted),
      byEvents: way === 'events' || events.unheard === events.expected ? null : { expected: events.expected, received: events.received },
    };
  }

  #alerts(): AlertEvidence {
    const way = this.#topicAsked ? 'topic' : 'events';
    const deaf = this.#deaf[way] || (way === 'topic' && this.#topicDeaf);
    const instead = way === 'events' ? this.#topicOff : deaf ? NOTHING_ON_TOPIC : null;
    const book = this.#books[way];
    return { episodes: book.byWorst(), openByRest: this.#openByRest(), openByTopic: deaf ? null : book.open(), instead };
  }

  /** As it was listed at the end; while the run goes on: as it was listed last, if the service still answers. */
  #openByRest(): readonly OpenEpisode[] | null {
    const open = this.#open;
    const end = this.#mark?.at ?? 0;
    if (open === null || open.at < this.#listenedAt) return null;
    const answers = this.#lastReadingAt >= end - LIST_SECONDS;
    const goesOn = !this.#ended && this.watchedSeconds < this.#plannedSeconds && answers;
    if (open.at < end - LIST_SECONDS && !goesOn) return null;
    return open.list.map(({ alert_id, metric, severity }) => ({ alertId: alert_id, metric, severity, since: null }));
  }

  #integrity(): IntegrityEvidence {
    const stored = this.#holdings?.stored.evidence(this.#endMs, this.#axis.events, this.#offs) ?? null;
    const collected = this.#holdings?.collected.evidence(this.#endMs, this.#axis.events, this.#offs) ?? null;
    return { stored, collected, instead: stored === null || collected === null ? 'nobody could look' : null };
  }
}

const NOTHING_ON_TOPIC = 'nothing was heard on the topic, though the service published';

/** For people; null: the topic is there and was asked for. */
function whyNotByTopic(target: Target, watcher: Watcher): string | null {
  if (target.service_transport === 'off') return 'the service is not on the ROS 2 graph (ros.transport: off)';
  return watcher.transport === 'off' ? 'the run was asked not to subscribe on the ROS 2 graph' : null;
}
