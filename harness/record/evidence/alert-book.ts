import { SEVERITIES, type Severity } from '../../../src/core/alert.ts';
import type { AlertEvidence, OpenEpisode } from '../../engine/evidence.ts';
import type { Series } from '../../engine/series.ts';
import type { AlertEntry, OpenEntry } from '../entries.ts';
import type { Way } from './way.ts';

interface Episode {
  readonly metric: string;
  severity: Severity;
  worst: Severity;
  resolved: boolean;
  readonly since: string | null;
  readonly from: number;
  to: number | null;
  /** Changes that were told: a late joiner is told old ones again, and a restarted service those that are open. */
  readonly told: Set<string>;
  /** Nothing was heard of it since the watcher was away. */
  doubtful: boolean;
}

/** A list belongs to the begin, the resume or the end that it is at most this far from. */
export const LIST_SECONDS = 120;

/**
 * The episodes as one way tells them. What was open before anybody listened is taken from the list right after the begin or a resume;
 * from there on only the changes count, so that the list at the end can be held against them. An episode that was resolved never opens
 * again: each has an id of its own.
 */
export class AlertBook {
  readonly #episodes = new Map<string, Episode>();
  #listening = 0;
  #listed = false;
  /** Whether anything was told, or could have been. */
  heard = false;

  /** Begin or resume. */
  listen(at: number): void {
    this.#listening = at;
    this.#listed = false;
    for (const episode of this.#episodes.values()) episode.doubtful = true;
  }

  told({ alert_id, severity, metric, timestamp, resolved }: AlertEntry, at: number): void {
    this.heard = true;
    const change = `${timestamp} ${severity} ${resolved}`;
    const known = this.#episodes.get(alert_id);
    if (known === undefined) {
      const episode = { metric, severity, worst: severity, resolved, since: timestamp, from: at, to: resolved ? at : null };
      this.#episodes.set(alert_id, { ...episode, told: new Set([change]), doubtful: false });
      return;
    }
    known.doubtful = false;
    if (known.resolved || known.told.has(change)) return;
    known.told.add(change);
    known.severity = severity;
    if (SEVERITIES.indexOf(severity) > SEVERITIES.indexOf(known.worst)) known.worst = severity;
    if (!resolved) return;
    known.resolved = true;
    known.to = at;
    known.told.clear();
  }

  listedOpen({ open }: OpenEntry, at: number): void {
    if (this.#listed || at - this.#listening > LIST_SECONDS) return;
    this.#listed = true;
    const ids = new Set(open.map(({ alert_id }) => alert_id));
    for (const [id, episode] of this.#episodes) {
      if (!episode.doubtful || ids.has(id)) continue;
      episode.to ??= at;
      episode.resolved = true;
    }
    for (const { alert_id, severity, metric } of open) {
      const known = this.#episodes.get(alert_id);
      if (known === undefined) {
        const episode = { metric, severity, worst: severity, resolved: false, since: null, from: at, to: null };
        this.#episodes.set(alert_id, { ...episode, told: new Set(), doubtful: false });
      } else if (known.doubtful) {
        known.severity = severity;
        known.doubtful = false;
        if (SEVERITIES.indexOf(severity) > SEVERITIES.indexOf(known.worst)) known.worst = severity;
      }
    }
  }

  open(): OpenEpisode[] {
    const open = [...this.#episodes].filter(([, { resolved }]) => !resolved);
    return open.map(([alertId, { metric, severity, since }]) => ({ alertId, metric, severity, since }));
  }

  byWorst(): AlertEvidence['episodes'] {
    const counts: Record<Severity, number> = { WARNING: 0, ERROR: 0, CRITICAL: 0 };
    for (const { worst } of this.#episodes.values()) counts[worst]++;
    return counts;
  }

  series(): Series['alerts'] {
    return [...this.#episodes].map(([alertId, { from, to, worst, metric }]) => ({ from, to, severity: worst, metric, alertId }));
  }
}

/** One book for each way. */
export type AlertBooks = Readonly<Record<Way, AlertBook>>;
