import type { AlertEntry, OpenAlert } from '../../harness/record/entries.ts';
import { isoUtc } from '../../src/core/time.ts';
import { type Fault, type FaultOf, ofKind } from './faults.ts';
import type { WeekClocks } from './week-clocks.ts';

export type Told = Omit<AlertEntry, 'boot' | 'mono' | 'wall'> & { readonly at: number };

interface Change extends Omit<OpenAlert, 'severity'> {
  readonly at: number;
  readonly severity: AlertEntry['severity'];
  readonly timestamp: string;
  readonly resolved: boolean;
  readonly silent: boolean;
}

/** As many changes a late joiner is told again. */
const DEPTH = 10;

/** Alert episodes of a synthetic week, and who is told what of them when. */
export class WeekAlerts {
  readonly #episodes: readonly FaultOf<'alert'>[];
  readonly #changes: readonly Change[];
  readonly #ways: readonly AlertEntry['by'][];

  constructor(faults: readonly Fault[], clocks: WeekClocks, ways: readonly AlertEntry['by'][]) {
    this.#episodes = ofKind(faults, 'alert');
    this.#ways = ways;
    this.#changes = this.#episodes
      .flatMap((episode, index): Change[] => {
        const { at, seconds, severity, silent = false } = episode;
        const change = { ...named(index), severity, silent };
        const raised = { ...change, at, timestamp: isoUtc(clocks.wall(at)), resolved: false };
        return seconds === null
          ? [raised]
          : [raised, { ...raised, at: at + seconds, timestamp: isoUtc(clocks.wall(at + seconds)), resolved: true }];
      })
      .sort((one, other) => one.at - other.at);
  }

  /** Changes of a stretch as they are told, a hundredth of a second after they happened. */
  between(from: number, to: number): Told[] {
    return this.#changes.filter(({ at }) => at >= from && at < to).flatMap((change) => this.#told(change, change.at + 0.01, this.#ways));
  }

  /** What one is told who subscribes at `at`. */
  toLateJoiner(at: number): Told[] {
    const last = this.#changes.filter((change) => change.at < at && !change.silent).slice(-DEPTH);
    return last.flatMap((change) =>
      this.#told(
        change,
        at + 0.02,
        this.#ways.filter((way) => way === 'topic'),
      ),
    );
  }

  /** What a service that starts at `at` tells again. */
  afterRestart(at: number): Told[] {
    const open = new Set(this.open(at).map(({ alert_id }) => alert_id));
    const raised = this.#changes.filter((change) => open.has(change.alert_id) && change.at < at);
    return raised.flatMap((change) => this.#told(change, at + 0.3, this.#ways));
  }

  open(at: number): OpenAlert[] {
    return this.#episodes.flatMap((episode, index) => {
      const isOpen = episode.at <= at && (episode.seconds === null || episode.at + episode.seconds > at);
      return isOpen ? [{ ...named(index), severity: episode.severity }] : [];
    });
  }

  #told(change: Change, at: number, ways: readonly AlertEntry['by'][]): Told[] {
    const { alert_id, metric, resolved, severity, silent, timestamp } = change;
    const hearing = ways.filter((way) => way === 'events' || !silent);
    return hearing.map((by) => ({ type: 'alert', by, alert_id, severity, metric, timestamp, resolved, at }));
  }
}

function named(index: number): Pick<OpenAlert, 'alert_id' | 'metric'> {
  return { alert_id: `health_monitor/cpu_percent/${String(index).padStart(26, '0')}`, metric: 'cpu_percent' };
}
