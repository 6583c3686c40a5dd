import { type Alert, changeKey, isAbout, nodeOfAlertId } from '../../core/alerts/alert.ts';
import { isPlausible } from '../../core/alerts/node-watch.ts';
import { TokenBucket } from '../../core/alerts/rate-limit.ts';
import { METRICS } from '../../core/metrics.ts';
import { rateLimited } from '../../core/platform/log.ts';
import type { Log, Publisher, RecordedAlert } from '../../core/ports.ts';
import { Recent } from '../../core/recent.ts';
import { type Clocks, isoUtc } from '../../core/time/time.ts';
import type { Live } from '../live.ts';

/** Limit of open alerts of all remote nodes together. */
const MAX_OPEN = 1024;
/** Rate limit of the changes of all remote nodes together. */
const CHANGES_PER_SECOND = 5;
const CHANGES_BURST = 500;
/** Rate limit of log lines about changes. */
const LINES_PER_SECOND = 1 / 10;
const LINES_BURST = 60;
/** Number of changes remembered to skip repetitions: more than DDS writers keep for late joiners. */
const REMEMBERED = 4096;

export interface RemoteAlertsOptions {
  readonly clocks: Clocks;
  readonly log: Log;
  readonly live: Live;
  readonly store: { recordAlert(alert: Alert): Promise<RecordedAlert> };
  readonly events: Pick<Publisher, 'publishAlert'>;
}

/** Alerts that remote nodes raise about themselves: stored and served like local ones, each change once, within limits. */
export class RemoteAlerts {
  readonly #options: RemoteAlertsOptions;
  readonly #changes = new TokenBucket(CHANGES_PER_SECOND, CHANGES_BURST);
  readonly #changeLines = new TokenBucket(LINES_PER_SECOND, LINES_BURST);
  readonly #open = new Map<string, Alert>();
  readonly #seen = new Recent(REMEMBERED);
  readonly #rateLimitedLog: Log;
  #accepted = 0;
  #refused = 0;

  constructor(options: RemoteAlertsOptions) {
    this.#options = options;
    this.#rateLimitedLog = rateLimited(options.log, () => options.clocks.monotonicSeconds());
  }

  get counts(): { readonly alerts: number; readonly alerts_refused: number } {
    return { alerts: this.#accepted, alerts_refused: this.#refused };
  }

  /** Continues an episode that was open before the start. */
  adopt(alert: Alert): void {
    this.#open.set(alert.alert_id, alert);
  }

  /** Accepts a change within the limits; `limit` is the bucket of its node. */
  take(alert: Alert, limit: TokenBucket): void {
    const key = changeKey(alert);
    if (this.#seen.has(key)) return;
    const nowSeconds = this.#options.clocks.monotonicSeconds();
    const before = this.#open.get(alert.alert_id) ?? null;
    // Resolving an open alert always passes, since its raise was counted.
    const isEnd = alert.resolved && before !== null;
    const isWithinRateLimit = isEnd || (limit.take(nowSeconds) && this.#changes.take(nowSeconds));
    const isNewEpisode = !alert.resolved && before === null;
    if (!isWithinRateLimit || (isNewEpisode && this.#open.size >= MAX_OPEN)) {
      this.refuse(isWithinRateLimit ? 'too many open alerts' : 'alert rate limit exceeded', alert);
      return;
    }
    this.#seen.add(key);
    this.#accepted += 1;
    void this.#publish(this.#stamped(alert), before);
  }

  refuse(reason: string, { alert_id }: Alert): void {
    this.#refused += 1;
    this.#rateLimitedLog('warning', `remote alert refused: ${reason}`, { alert_id });
  }

  /** Resolves the open alerts of a node that was removed. Returns one promise per alert, fulfilled once its change is stored. */
  end(node: string): Promise<void>[] {
    return [...this.#open.values()].filter(({ alert_id }) => nodeOfAlertId(alert_id) === node).map((alert) => this.#end(alert));
  }

  async #publish(alert: Alert, before: Alert | null): Promise<void> {
    const { clocks, events, live, log, store } = this.#options;
    const superseded = alert.resolved || before ? [] : this.#supersededBy(alert);
    if (alert.resolved) this.#open.delete(alert.alert_id);
    else this.#open.set(alert.alert_id, alert);
    const { isNew, cursor } = await store.recordAlert(alert);
    if (!isNew) {
      // The change is known from an earlier run, or its episode is resolved.
      if (this.#open.get(alert.alert_id) !== alert) return;
      if (before) this.#open.set(alert.alert_id, before);
      else this.#open.delete(alert.alert_id);
      return;
    }
    live.setAlert(alert);
    const { alert_id, metric, severity, threshold, value } = alert;
    const what = alert.resolved ? 'remote alert resolved' : `remote alert ${severity}`;
    if (this.#changeLines.take(clocks.monotonicSeconds())) log('notice', what, { metric, value, threshold, alert_id });
    events.publishAlert(alert, cursor);
    for (const other of superseded) if (this.#open.has(other.alert_id)) void this.#end(other);
  }

  /** A node has at most one episode per metric and kind: when another one begins, the resolution of the previous one was missed. */
  #supersededBy(alert: Alert): Alert[] {
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
    return this.#publish({ ...alert, timestamp: isoUtc(this.#options.clocks.wallMilliseconds()), resolved: true }, alert);
  }

  /** An invalid timestamp would list the change forever or never, so it is replaced by the time of arrival. */
  #stamped(alert: Alert): Alert {
    const nowMs = this.#options.clocks.wallMilliseconds();
    return isPlausible(Date.parse(alert.timestamp), nowMs) ? alert : { ...alert, timestamp: isoUtc(nowMs) };
  }
}
