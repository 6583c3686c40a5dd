import { type Alert, alertId } from './alert.ts';
import { type AlertTiming, type EpisodeState, freshEpisode, stepEpisode } from './episode.ts';
import type { Sample } from './health-status.ts';
import { METRICS, type Metric } from './metrics.ts';
import { freshSilence, type SilenceState, stepSilence } from './silence.ts';
import type { Thresholds } from './thresholds.ts';
import { isoUtc } from './time.ts';

export interface JudgingRules {
  readonly nodeName: string;
  readonly thresholds: Thresholds;
  readonly timing: AlertTiming;
}

/** What a run before this one left behind. */
export interface JudgingPast {
  /** The last change of every episode that was open. */
  readonly openAlerts: readonly Alert[];
  /** Metrics that could be read when last seen: their silence is a failure, not a machine without that sensor. */
  readonly readableMetrics: ReadonlySet<string>;
}

interface Watched {
  episode: EpisodeState;
  /** The last published change of the open threshold episode. */
  episodeAlert: Alert | null;
  silence: SilenceState;
  silenceAlert: Alert | null;
}

/** So many ended episodes are remembered; a list of open alerts is at most seconds old. */
const MAX_ENDED = 256;

/**
 * The threshold monitor: samples in, changes of alert episodes out. It holds only what it was told and never asks a
 * clock; `uniqueId` (sortable, given the sample's wall-clock milliseconds) is injected.
 */
export class ThresholdMonitor {
  readonly #watched = new Map<Metric, Watched>();
  readonly #uniqueId: (timestampMs: number) => string;
  /** Episodes that ended lately: a list of open alerts from before that must not open them again. */
  readonly #ended = new Set<string>();
  #rules: JudgingRules;

  constructor(rules: JudgingRules, past: JudgingPast, startSeconds: number, uniqueId: (timestampMs: number) => string) {
    this.#rules = rules;
    this.#uniqueId = uniqueId;
    for (const metric of METRICS) {
      this.#watched.set(metric, {
        episode: freshEpisode(),
        episodeAlert: null,
        silence: freshSilence(past.readableMetrics.has(metric) ? startSeconds : null, false),
        silenceAlert: null,
      });
    }
    this.adopt(past.openAlerts);
  }

  /**
   * Goes on with episodes that are open elsewhere (in the store). Returns those of this node that it could not take over
   * because it has an open episode of the same metric and kind itself.
   */
  adopt(openAlerts: readonly Alert[]): Alert[] {
    const doubled: Alert[] = [];
    for (const alert of openAlerts) {
      const watched = this.#watched.get(alert.metric as Metric);
      if (alert.resolved || !watched || !alert.alert_id.startsWith(`${this.#rules.nodeName}/${alert.metric}/`)) continue;
      const mine = alert.severity === 'ERROR' ? watched.silenceAlert : watched.episodeAlert;
      if (mine?.alert_id === alert.alert_id || this.#ended.has(alert.alert_id)) continue;
      if (mine) {
        doubled.push(alert);
        this.#end(alert.alert_id);
      } else if (alert.severity === 'ERROR') {
        watched.silence = { ...watched.silence, open: true };
        watched.silenceAlert = alert;
      } else {
        watched.episode = { ...watched.episode, level: alert.severity };
        watched.episodeAlert = alert;
      }
    }
    return doubled;
  }

  /** New thresholds or timing apply from the next sample on; open episodes stay open and are judged by them. */
  setRules(rules: JudgingRules): void {
    this.#rules = rules;
  }

  /** The last change of every open episode. */
  openAlerts(): Alert[] {
    return [...this.#watched.values()].flatMap((watched) => [watched.episodeAlert, watched.silenceAlert].filter((alert) => alert !== null));
  }

  /** Changes that this sample causes, in the order to publish them. */
  judge(sample: Sample): Alert[] {
    const changes: Alert[] = [];
    for (const [metric, watched] of this.#watched) {
      const episodeChange = this.#stepEpisode(metric, watched, sample);
      if (episodeChange) changes.push(episodeChange);
      const silenceChange = this.#stepSilence(metric, watched, sample);
      if (silenceChange) changes.push(silenceChange);
    }
    return changes;
  }

  #stepEpisode(metric: Metric, watched: Watched, sample: Sample): Alert | null {
    const reading = sample.readings[metric];
    const threshold = this.#rules.thresholds[metric];
    const { state, taken } = stepEpisode(watched.episode, reading, sample.monotonicSeconds, threshold, this.#rules.timing);
    watched.episode = state;
    if (taken === null || reading === null) return null;
    const resolved = taken.to === 'none';
    const alert: Alert = {
      alert_id: watched.episodeAlert?.alert_id ?? this.#newId(metric, sample),
      severity: taken.to === 'none' ? (watched.episodeAlert?.severity ?? 'WARNING') : taken.to,
      metric,
      value: reading,
      threshold: threshold[taken.crossed],
      timestamp: isoUtc(sample.timestampMs),
      resolved,
    };
    watched.episodeAlert = resolved ? null : alert;
    if (resolved) this.#end(alert.alert_id);
    return alert;
  }

  #stepSilence(metric: Metric, watched: Watched, sample: Sample): Alert | null {
    const { timing } = this.#rules;
    const heard = sample.readings[metric] !== null;
    const step = stepSilence(watched.silence, heard, sample.monotonicSeconds, timing.sensorTimeoutSeconds, timing.clearAfterSeconds);
    watched.silence = step.state;
    if (step.change === null) return null;
    const alert: Alert = {
      alert_id: watched.silenceAlert?.alert_id ?? this.#newId(metric, sample),
      severity: 'ERROR',
      metric,
      value: Math.round(step.silentSeconds * 1000) / 1000,
      threshold: timing.sensorTimeoutSeconds,
      timestamp: isoUtc(sample.timestampMs),
      resolved: step.change === 'resolve',
    };
    watched.silenceAlert = alert.resolved ? null : alert;
    if (alert.resolved) this.#end(alert.alert_id);
    return alert;
  }

  #end(id: string): void {
    this.#ended.add(id);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= MAX_ENDED) break;
      this.#ended.delete(oldest);
    }
  }

  #newId(metric: Metric, sample: Sample): string {
    return alertId(this.#rules.nodeName, metric, this.#uniqueId(sample.timestampMs));
  }
}
