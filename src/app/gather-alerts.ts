import { type Alert, changeKey, isAbout, nodeOfAlertId } from '../core/alert.ts';
import { METRICS } from '../core/metrics.ts';
import { isPlausible } from '../core/node-watch.ts';
import { type LineLimit, TokenBucket } from '../core/node-watch-limit.ts';
import type { Log, Publisher } from '../core/ports.ts';
import { type Clocks, isoUtc } from '../core/time.ts';
import type { Live } from './live.ts';

/** Open alerts of other nodes, all together. */
const MAX_OPEN = 1024;
/** Changes of all other nodes together. */
const CHANGES_PER_SECOND = 5;
const CHANGES_AT_ONCE = 500;
/** Lines of the log about changes, in the long run and at once. */
const LINES_PER_SECOND = 1 / 10;
const LINES_AT_ONCE = 60;
/** Changes that are remembered, to take each once: more than writers keep for those who join late. */
const REMEMBERED = 4096;

export interface AlertGatheringOptions {
  readonly clocks: Clocks;
  readonly log: Log;
  readonly lines: LineLimit;
  readonly live: Live;
  readonly store: { recordAlert(alert: Alert): Promise<boolean> };
  readonly events: Pick<Publisher, 'publishAlert'>;
}

/** Alerts that other nodes raise about themselves: stored and served like this node's own, each change once, within bounds. */
export class GatheredAlerts {
  readonly #options: AlertGatheringOptions;
  readonly #changes = new TokenBucket(CHANGES_PER_SECOND, CHANGES_AT_ONCE);
  readonly #changeLines = new TokenBucket(LINES_PER_SECOND, LINES_AT_ONCE);
  readonly #open = new Map<string, Alert>();
  readonly #seen = new Set<string>();
  #taken = 0;
  #refused = 0;

  constructor(options: AlertGatheringOptions) {
    this.#options = options;
  }

  get counts(): { readonly alerts: number; readonly alerts_refused: number } {
    return { alerts: this.#taken, alerts_refused: this.#refused };
  }

  /** Goes on with an episode that was open before. */
  adopt(alert: Alert): void {
    this.#open.set(alert.alert_id, alert);
  }

  /** Takes a change; `limit` is its node's own. */
  take(alert: Alert, limit: TokenBucket): void {
    const key = changeKey(alert);
    if (this.#seen.has(key)) return;
    const nowSeconds = this.#options.clocks.monotonicSeconds();
    const before = this.#open.get(alert.alert_id) ?? null;
    // The end of what is open always passes: it was paid for by its beginning.
    const isEnd = alert.resolved && before !== null;
    const isWithinRate = isEnd || (limit.take(nowSeconds) && this.#changes.take(nowSeconds));
    const isOneMore = !alert.resolved && before === null;
    if (!isWithinRate || (isOneMore && this.#open.size >= MAX_OPEN)) {
      this.refuse(isWithinRate ? 'too many are open' : 'they change too often', alert);
      return;
    }
    this.#remember(key);
    this.#taken += 1;
    void this.#pass(this.#stamped(alert), before);
  }

  refuse(reason: string, { alert_id }: Alert): void {
    this.#refused += 1;
    const { clocks, lines, log } = this.#options;
    const times = lines.count(reason, clocks.monotonicSeconds());
    if (times !== null) log('warning', `an alert of another node was refused: ${reason}`, { alert_id, times });
  }

  /** Resolves what is open of a node of which nothing more will come: one promise for each alert, fulfilled once that is stored. */
  end(node: string): Promise<void>[] {
    return [...this.#open.values()].filter(({ alert_id }) => nodeOfAlertId(alert_id) === node).map((alert) => this.#end(alert));
  }

  async #pass(alert: Alert, before: Alert | null): Promise<void> {
    const { clocks, events, live, log, store } = this.#options;
    const superseded = alert.resolved || before ? [] : this.#othersLike(alert);
    if (alert.resolved) this.#open.delete(alert.alert_id);
    else this.#open.set(alert.alert_id, alert);
    if (!(await store.recordAlert(alert))) {
      // Known from an earlier run, or about an episode that is over.
      if (this.#open.get(alert.alert_id) !== alert) return;
      if (before) this.#open.set(alert.alert_id, before);
      else this.#open.delete(alert.alert_id);
      return;
    }
    live.setAlert(alert);
    const { alert_id, metric, severity, threshold, value } = alert;
    const what = alert.resolved ? 'alert of another node resolved' : `alert ${severity} of another node`;
    if (this.#changeLines.take(clocks.monotonicSeconds())) log('notice', what, { metric, value, threshold, alert_id });
    events.publishAlert(alert);
    for (const other of superseded) if (this.#open.has(other.alert_id)) void this.#end(other);
  }

  /** A node has one episode of a metric and kind at a time: where another one begins, the end of the one before was missed. */
  #othersLike(alert: Alert): Alert[] {
    if (!METRICS.some((metric) => isAbout(alert, metric))) return [];
    const node = nodeOfAlertId(alert.alert_id);
    return [...this.#open.values()].filter(
      (other) =>
        other.metric === alert.metric &&
        (other.severity === 'ERROR') === (alert.severity === 'ERROR') &&
        nodeOfAlertId(other.alert_id) === node,
    );
  }

  #end(alert: Alert): Promise<void> {
    return this.#pass({ ...alert, timestamp: isoUtc(this.#options.clocks.wallMilliseconds()), resolved: true }, alert);
  }

  /** With an impossible time it would be listed forever, or never: such a change has the time at which it came. */
  #stamped(alert: Alert): Alert {
    const nowMs = this.#options.clocks.wallMilliseconds();
    return isPlausible(Date.parse(alert.timestamp), nowMs) ? alert : { ...alert, timestamp: isoUtc(nowMs) };
  }

  #remember(key: string): void {
    this.#seen.add(key);
    if (this.#seen.size <= REMEMBERED) return;
    for (const oldest of this.#seen) {
      this.#seen.delete(oldest);
      break;
    }
  }
}
