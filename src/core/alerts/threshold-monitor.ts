import type { Sample } from '../health-status.ts';
import { METRICS, type Metric, type Reading } from '../metrics.ts';
import { Recent } from '../recent.ts';
import { isoUtc, roundToMilliseconds } from '../time/time.ts';
import {
  type Alert,
  alertId,
  CHANNEL_METRICS,
  type ChannelMetric,
  diskMetric,
  isAbout,
  raisedBy,
  type Threshold,
  type Thresholds,
} from './alert.ts';
import {
  type AlertTiming,
  type EpisodeState,
  freshEpisode,
  initialStaleState,
  type Level,
  type StaleState,
  stepEpisode,
  stepStale,
} from './episode.ts';

export interface JudgingRules {
  readonly nodeName: string;
  readonly thresholds: Thresholds;
  readonly timing: AlertTiming;
  /** Fixed for a process. */
  readonly diskPaths: readonly string[];
}

/** State of the previous run. */
export interface JudgingPast {
  /** The last change of every open episode. */
  readonly openAlerts: readonly Alert[];
  /** Metrics that had values before: their absence is a failure, not a machine without that sensor. */
  readonly readableMetrics: ReadonlySet<string>;
}

/** The threshold episode of a metric. */
interface Episode {
  state: EpisodeState;
  /** The last published change while the episode is open. */
  alert: Alert | null;
}

/** Whether a metric or disk path that should be readable is readable, or a channel works. */
interface Readability {
  state: StaleState;
  alert: Alert | null;
}

/** Number of ended episodes remembered; a list of open alerts is at most seconds old. */
const MAX_ENDED = 256;

/**
 * The threshold monitor: turns samples into changes of alert episodes. It reads no clock; `uniqueId` (sortable, given the sample's
 * wall-clock milliseconds) is injected.
 */
export class ThresholdMonitor {
  readonly #episodes: Readonly<Record<Metric, Episode>>;
  /** By the metric of their alert. Disk paths and channels have an entry from the start, because they are configured. */
  readonly #readable = new Map<string, Readability>();
  /** How full each disk path was when it was last measured, in percent of space or inodes. */
  readonly #lastFull = new Map<string, number>();
  readonly #uniqueId: (timestampMs: number) => string;
  /** Ids of recently ended episodes, which an outdated list of open alerts must not reopen. */
  readonly #ended = new Recent(MAX_ENDED);
  #rules: JudgingRules;

  constructor(rules: JudgingRules, past: JudgingPast, startSeconds: number, uniqueId: (timestampMs: number) => string) {
    this.#rules = rules;
    this.#uniqueId = uniqueId;
    const episode = (): Episode => ({ state: freshEpisode(), alert: null });
    this.#episodes = { cpu_percent: episode(), memory_percent: episode(), disk_percent: episode(), temperature: episode() };
    for (const metric of METRICS) {
      if (metric === 'disk_percent') continue;
      this.#readable.set(metric, { state: initialStaleState(past.readableMetrics.has(metric) ? startSeconds : null, false), alert: null });
    }
    for (const metric of [...rules.diskPaths.map(diskMetric), ...CHANNEL_METRICS])
      this.#readable.set(metric, { state: initialStaleState(startSeconds, false), alert: null });
    this.adopt(past.openAlerts);
  }

  /**
   * Continues its episodes that are open in the store. Returns those that cannot continue: an episode of the same metric and
   * kind is open already, or the metric is no longer measured.
   */
  adopt(openAlerts: readonly Alert[]): Alert[] {
    const ended: Alert[] = [];
    for (const alert of openAlerts) {
      const { alert_id, metric, resolved, severity } = alert;
      if (resolved || raisedBy(alert, this.#rules.nodeName) !== 'thresholds') continue;
      const watched = severity === 'ERROR' ? this.#readable.get(metric) : this.#episodes[metric as Metric];
      if (watched?.alert?.alert_id === alert_id || this.#ended.has(alert_id)) continue;
      if (!watched || watched.alert) {
        ended.push(alert);
        this.#ended.add(alert_id);
        continue;
      }
      watched.alert = alert;
      // Any path may have caused it, also one that cannot be measured now.
      if (metric === 'disk_percent')
        for (const path of this.#rules.diskPaths) if (!this.#lastFull.has(path)) this.#lastFull.set(path, alert.value);
      if ('level' in watched.state) watched.state = { ...watched.state, level: severity as Level };
      else watched.state = { ...watched.state, open: true };
    }
    return ended;
  }

  /** New thresholds or timing apply from the next sample; open episodes stay open and are evaluated by them. */
  setRules(rules: JudgingRules): void {
    this.#rules = rules;
  }

  /** The last change of every open episode. */
  openAlerts(): Alert[] {
    const open: Alert[] = [];
    for (const metric of METRICS) {
      const { alert } = this.#episodes[metric];
      if (alert) open.push(alert);
    }
    for (const { alert } of this.#readable.values()) if (alert) open.push(alert);
    return open;
  }

  /**
   * Whether a metric should be available: it is judged, and it was measured before, also by an earlier run. Disk paths are configured, so
   * they need not have been measured.
   */
  isExpected(metric: Metric): boolean {
    return this.#rules.thresholds[metric] !== null && this.#readable.get(metric)?.state.lastGoodSeconds !== null;
  }

  /** Changes that this sample causes, in the order to publish them. `isWorking`: whether a channel works, at the time of the sample. */
  judge(sample: Sample, isWorking: (channel: ChannelMetric) => boolean = () => true): Alert[] {
    const changes: Alert[] = [];
    for (const metric of CHANNEL_METRICS) this.#judgeReadability(metric, isWorking(metric), sample, changes);
    const { thresholds } = this.#rules;
    for (const metric of METRICS) {
      const threshold = thresholds[metric];
      if (threshold === null) {
        this.#switchOff(metric, sample, changes);
        continue;
      }
      const reading = sample.readings[metric];
      const judged = metric === 'disk_percent' ? this.#fullest(reading, sample.disks, threshold) : reading;
      this.#judgeEpisode(metric, judged, threshold, sample, changes);
      if (metric !== 'disk_percent') this.#judgeReadability(metric, reading !== null, sample, changes);
    }
    if (thresholds.disk_percent === null) return changes;
    for (const { path, percent, problem } of sample.disks) {
      if (percent !== null || problem !== null) this.#judgeReadability(diskMetric(path), problem === null, sample, changes);
    }
    return changes;
  }

  /**
   * The reading by which the episode of `disk_percent` is judged: the fullest path, by space or by inodes. The absence of a path must not
   * end an episode, so a path that cannot be measured counts as last measured while one is open; null, which changes nothing, if it was full.
   */
  #fullest(reading: Reading, disks: Sample['disks'], { warning }: Threshold): Reading {
    if (reading === null) return null;
    let [fullest, absent] = [reading, Number.NEGATIVE_INFINITY];
    for (const { path, percent, inodes_percent } of disks) {
      if (percent === null) absent = Math.max(absent, this.#lastFull.get(path) ?? absent);
      else {
        const full = Math.max(percent, inodes_percent ?? percent);
        this.#lastFull.set(path, full);
        fullest = Math.max(fullest, full);
      }
    }
    if (absent <= fullest || this.#episodes.disk_percent.state.level === 'none') return fullest;
    return absent < warning ? absent : null;
  }

  /** Resolves the open alerts of a metric that is not judged. If it is switched on again, its timeouts begin then. */
  #switchOff(metric: Metric, sample: Sample, changes: Alert[]): void {
    const episode = this.#episodes[metric];
    if (episode.alert) this.#change(episode, { ...episode.alert, resolved: true }, sample, changes);
    episode.state = freshEpisode();
    for (const [name, readable] of this.#readable) {
      if (!isAbout({ metric: name }, metric)) continue;
      if (readable.alert) this.#change(readable, { ...readable.alert, resolved: true }, sample, changes);
      readable.state = initialStaleState(readable.state.lastGoodSeconds === null ? null : sample.monotonicSeconds, false);
    }
  }

  #judgeEpisode(metric: Metric, reading: Reading, threshold: Threshold, sample: Sample, changes: Alert[]): void {
    const episode = this.#episodes[metric];
    const { state, taken } = stepEpisode(episode.state, reading, sample.monotonicSeconds, threshold, this.#rules.timing);
    episode.state = state;
    if (reading === null) return;
    const level = taken?.to ?? state.level;
    const severity = level === 'none' ? episode.alert?.severity : level;
    if (!severity) return;
    const inForce = severity === 'CRITICAL' ? threshold.critical : threshold.warning;
    // A reload changed the threshold: the open alert is published again with the one in force.
    if (taken === null && (!episode.alert || episode.alert.threshold === inForce)) return;
    this.#change(episode, { metric, severity, value: reading, threshold: inForce, resolved: level === 'none' }, sample, changes);
  }

  #judgeReadability(metric: string, isRead: boolean, sample: Sample, changes: Alert[]): void {
    const readable = this.#readable.get(metric);
    if (!readable) return;
    const { clearAfterSeconds, sensorTimeoutSeconds } = this.#rules.timing;
    const { state, change, staleSeconds } = stepStale(
      readable.state,
      isRead,
      sample.monotonicSeconds,
      sensorTimeoutSeconds,
      clearAfterSeconds,
    );
    readable.state = state;
    if (change === null && (!readable.alert || readable.alert.threshold === sensorTimeoutSeconds)) return;
    const value = roundToMilliseconds(staleSeconds);
    const resolved = change === 'resolve';
    this.#change(readable, { metric, severity: 'ERROR', value, threshold: sensorTimeoutSeconds, resolved }, sample, changes);
  }

  #change(
    episode: { alert: Alert | null },
    { metric, severity, value, threshold, resolved }: Omit<Alert, 'alert_id' | 'timestamp'>,
    { timestampMs }: Sample,
    changes: Alert[],
  ): void {
    const alert_id = episode.alert?.alert_id ?? alertId(this.#rules.nodeName, metric, this.#uniqueId(timestampMs));
    const alert = { alert_id, severity, metric, value, threshold, timestamp: isoUtc(timestampMs), resolved };
    episode.alert = resolved ? null : alert;
    if (resolved) this.#ended.add(alert_id);
    changes.push(alert);
  }
}
