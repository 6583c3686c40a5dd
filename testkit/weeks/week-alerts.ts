import type { AlertEntry, OpenAlert } from '../../harness/record/entries.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { type Fault, type FaultOf, ofKind } from './faults.ts';
import type { WeekClocks } from './week-clocks.ts';

export type ReceivedAlert = Omit<AlertEntry, 'boot' | 'mono' | 'wall'> & { readonly at: number };

interface Change extends Omit<OpenAlert, 'severity'> {
  readonly at: number;
  readonly severity: AlertEntry['severity'];
  readonly timestamp: string;
  readonly resolved: boolean;
  readonly unpublished: boolean;
}

/** Number of changes that a late joiner receives again. */
const DEPTH = 10;

/** Alert episodes of a synthetic week, and when each channel delivers them. */
export class WeekAlerts {
  readonly #episodes: readonly FaultOf<'alert'>[];
  readonly #changes: readonly Change[];
  readonly #channels: readonly AlertEntry['by'][];

  constructor(faults: readonly Fault[], clocks: WeekClocks, channels: readonly AlertEntry['by'][]) {
    this.#episodes = ofKind(faults, 'alert');
    this.#channels = channels;
    this.#changes = this.#episodes
      .flatMap((episode, index): Change[] => {
        const { at, seconds, severity, unpublished = false } = episode;
        const change = { ...named(index), severity, unpublished };
        const raised = { ...change, at, timestamp: isoUtc(clocks.wall(at)), resolved: false };
        return seconds === null
          ? [raised]
          : [raised, { ...raised, at: at + seconds, timestamp: isoUtc(clocks.wall(at + seconds)), resolved: true }];
      })
      .sort((one, other) => one.at - other.at);
  }

  /** Changes between two times, delivered a hundredth of a second after they happened. */
  between(from: number, to: number): ReceivedAlert[] {
    return this.#changes
      .filter(({ at }) => at >= from && at < to)
      .flatMap((change) => this.#receptions(change, change.at + 0.01, this.#channels));
  }

  /** Changes that a subscriber receives when it joins at `at`. */
  byLateJoiner(at: number): ReceivedAlert[] {
    const last = this.#changes.filter((change) => change.at < at && !change.unpublished).slice(-DEPTH);
    return last.flatMap((change) =>
      this.#receptions(
        change,
        at + 0.02,
        this.#channels.filter((channel) => channel === 'topic'),
      ),
    );
  }

  /** Changes that a service publishes again when it starts at `at`. */
  afterRestart(at: number): ReceivedAlert[] {
    const open = new Set(this.open(at).map(({ alert_id }) => alert_id));
    const raised = this.#changes.filter((change) => open.has(change.alert_id) && change.at < at);
    return raised.flatMap((change) => this.#receptions(change, at + 0.3, this.#channels));
  }

  open(at: number): OpenAlert[] {
    return this.#episodes.flatMap((episode, index) => {
      const isOpen = episode.at <= at && (episode.seconds === null || episode.at + episode.seconds > at);
      return isOpen ? [{ ...named(index), severity: episode.severity }] : [];
    });
  }

  #receptions(change: Change, at: number, channels: readonly AlertEntry['by'][]): ReceivedAlert[] {
    const { alert_id, metric, resolved, severity, unpublished, timestamp } = change;
    const receiving = channels.filter((channel) => channel === 'events' || !unpublished);
    return receiving.map((by) => ({ type: 'alert', by, alert_id, severity, metric, timestamp, resolved, at }));
  }
}

function named(index: number): Pick<OpenAlert, 'alert_id' | 'metric'> {
  return { alert_id: `health_monitor/cpu_percent/${String(index).padStart(26, '0')}`, metric: 'cpu_percent' };
}
