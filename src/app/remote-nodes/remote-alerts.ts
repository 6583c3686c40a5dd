import { type Alert, changeKey, isAbout, nodeOfAlertId } from '../../core/alerts/alert.ts';
import { isPlausible } from '../../core/alerts/node-watch.ts';
import { TokenBucket } from '../../core/alerts/rate-limit.ts';
import { METRICS } from '../../core/metrics.ts';
import { rateLimited } from '../../core/platform/log.ts';
import type { Log, Publisher, RecordedAlert } from '../../core/ports.ts';
import { Recent } from '../../core/recent.ts';
import { type Clocks, isoUtc } from '../../core/time/time.ts';
import type { Sender } from '../../ros/graph.ts';
import type { Live } from '../live.ts';
import { isSameHost } from './node-publisher.ts';
import type { RemoteNode } from './remote-node.ts';

/** Limit of open alerts of all remote nodes together. */
const MAX_OPEN = 1024;
/** Rate limit of the changes of all established nodes together, and of all others. */
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

/** An open alert. `raiser` null: the node that it is about, by its established publisher, or an unknown participant before the start. */
interface Episode {
  readonly alert: Alert;
  readonly raiser: Sender | null;
}

/** Who sent a change. `sender` null: the transport cannot identify it. */
export interface ChangeSource {
  readonly node: RemoteNode;
  readonly sender: Sender | null;
  /** Whether it is the node that the alert is about. */
  readonly isNode: boolean;
}

/**
 * Alerts that remote nodes raise, usually about themselves: stored and served like local ones, each change once, within limits. An
 * episode is changed only from the host that raised it, or by the publisher that succeeds the node that raised it.
 */
export class RemoteAlerts {
  readonly #options: RemoteAlertsOptions;
  readonly #establishedChanges = new TokenBucket(CHANGES_PER_SECOND, CHANGES_BURST);
  readonly #otherChanges = new TokenBucket(CHANGES_PER_SECOND, CHANGES_BURST);
  readonly #changeLines = new TokenBucket(LINES_PER_SECOND, LINES_BURST);
  readonly #open = new Map<string, Episode>();
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
    this.#open.set(alert.alert_id, { alert, raiser: null });
  }

  /** Whether a change may come from there: from the raiser of its episode. */
  mayChange(alert: Alert, source: ChangeSource): boolean {
    const episode = this.#open.get(alert.alert_id);
    if (!episode) return source.isNode || !alert.resolved;
    // A node may raise under its own name what another participant has raised before; the episode is then its own.
    return isRaiser(episode, source) || (source.isNode && !alert.resolved);
  }

  /** Accepts a change within the limits. */
  take(alert: Alert, source: ChangeSource): void {
    const { isNode, node, sender } = source;
    const key = changeKey(alert);
    const before = this.#open.get(alert.alert_id) ?? null;
    if (this.#seen.has(key)) {
      if (before && isNode && !alert.resolved) this.#open.set(alert.alert_id, { ...before, raiser: null });
      return;
    }
    const nowSeconds = this.#options.clocks.monotonicSeconds();
    // Resolving an open alert always passes, since its raise was counted.
    const isEnd = alert.resolved && before !== null;
    const all = isNode && node.isEstablished ? this.#establishedChanges : this.#otherChanges;
    const isWithinRateLimit = isEnd || ((isNode ? node.changes : node.otherChanges).take(nowSeconds) && all.take(nowSeconds));
    const isNewEpisode = !alert.resolved && before === null;
    if (!isWithinRateLimit || (isNewEpisode && this.#open.size >= MAX_OPEN)) {
      this.refuse(isWithinRateLimit ? 'too many open alerts' : 'alert rate limit exceeded', alert);
      return;
    }
    this.#seen.add(key);
    this.#accepted += 1;
    void this.#publish({ alert: this.#stamped(alert), raiser: isNode ? null : sender }, before, this.#supersededBy(alert, source));
  }

  refuse(reason: string, { alert_id }: Alert, sender: Sender | null = null): void {
    this.#refused += 1;
    this.#rateLimitedLog('warning', `remote alert refused: ${reason}`, { alert_id, address: sender?.address });
  }

  /** Resolves the open alerts of a node that was removed. Returns one promise per alert, fulfilled once its change is stored. */
  end(node: string): Promise<void>[] {
    return [...this.#open.values()].filter(({ alert }) => nodeOfAlertId(alert.alert_id) === node).map((episode) => this.#end(episode));
  }

  /** `superseded`: the episodes that end if this one is new. */
  async #publish(episode: Episode, before: Episode | null, superseded: readonly Episode[] = []): Promise<void> {
    const { clocks, events, live, log, store } = this.#options;
    const { alert } = episode;
    if (alert.resolved) this.#open.delete(alert.alert_id);
    else this.#open.set(alert.alert_id, episode);
    const { isNew, cursor } = await store.recordAlert(alert);
    if (!isNew) {
      // The change is known from an earlier run, or its episode is resolved.
      if (this.#open.get(alert.alert_id)?.alert !== alert) return;
      if (before) this.#open.set(alert.alert_id, before);
      else this.#open.delete(alert.alert_id);
      return;
    }
    live.setAlert(alert);
    const { alert_id, metric, severity, threshold, value } = alert;
    const what = alert.resolved ? 'remote alert resolved' : `remote alert ${severity}`;
    if (this.#changeLines.take(clocks.monotonicSeconds())) log('notice', what, { metric, value, threshold, alert_id });
    events.publishAlert(alert, cursor);
    for (const other of superseded) if (this.#open.has(other.alert.alert_id)) void this.#end(other);
  }

  /** A node has at most one episode per metric and kind: when another one begins, the resolution of the previous one was missed. */
  #supersededBy(alert: Alert, source: ChangeSource): Episode[] {
    const isKnown = alert.resolved || this.#open.has(alert.alert_id);
    if (isKnown || !METRICS.some((metric) => isAbout(alert, metric))) return [];
    const node = nodeOfAlertId(alert.alert_id);
    return [...this.#open.values()].filter(
      (episode) =>
        episode.alert.metric === alert.metric &&
        (episode.alert.severity === 'ERROR') === (alert.severity === 'ERROR') &&
        nodeOfAlertId(episode.alert.alert_id) === node &&
        isRaiser(episode, source),
    );
  }

  #end(episode: Episode): Promise<void> {
    const timestamp = isoUtc(this.#options.clocks.wallMilliseconds());
    return this.#publish({ ...episode, alert: { ...episode.alert, timestamp, resolved: true } }, episode);
  }

  /** An invalid timestamp would list the change forever or never, so it is replaced by the time of arrival. */
  #stamped(alert: Alert): Alert {
    const nowMs = this.#options.clocks.wallMilliseconds();
    return isPlausible(Date.parse(alert.timestamp), nowMs) ? alert : { ...alert, timestamp: isoUtc(nowMs) };
  }
}

function isRaiser({ raiser }: Episode, { isNode, sender }: ChangeSource): boolean {
  return raiser === null || sender === null ? isNode : isSameHost(raiser, sender);
}
