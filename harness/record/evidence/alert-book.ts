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
  /** The last time of listening in which it was told of. */
  heardIn: number;
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
  /** How often the watcher began to listen. */
  #listening = 0;
  /** Until then the first list tells what was open before. */
  #listUntil = Number.NEGATIVE_INFINITY;

  /** Begin or resume. */
  listen(at: number): void {
    this.#listening++;
    this.#listUntil = at + LIST_SECONDS;
  }

  told({ alert_id, severity, metric, timestamp, resolved }: AlertEntry, at: number): void {
    const change = `${timestamp} ${severity} ${resolved}`;
    const known = this.#episodes.get(alert_id);
    if (known === undefined) {
      const episode = { metric, severity, worst: severity, resolved, since: timestamp, from: at, to: resolved ? at : null };
      this.#episodes.set(alert_id, { ...episode, told: new Set([change]), heardIn: this.#listening });
      return;
    }
    known.heardIn = this.#listening;
    if (known.resolved || known.told.has(change)) return;
    known.told.add(change);
    known.severity = severity;
    known.worst = worse(known.worst, severity);
    if (!resolved) return;
    known.resolved = true;
    known.to = at;
    known.told.clear();
  }

  listedOpen({ open }: OpenEntry, at: number): void {
    if (at > this.#listUntil) return;
    this.#listUntil = Number.NEGATIVE_INFINITY;
    const ids = new Set(open.map(({ alert_id }) => alert_id));
    for (const [id, episode] of this.#episodes) {
      if (episode.heardIn === this.#listening || ids.has(id)) continue;
      episode.to ??= at;
      episode.resolved = true;
    }
    for (const { alert_id, severity, metric } of open) {
      const known = this.#episodes.get(alert_id);
      if (known === undefined) {
        const episode = { metric, severity, worst: severity, resolved: false, since: null, from: at, to: null };
        this.#episodes.set(alert_id, { ...episode, told: new Set(), heardIn: this.#listening });
      } else if (known.heardIn !== this.#listening) {
        known.severity = severity;
        known.worst = worse(known.worst, severity);
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

function worse(one: Severity, other: Severity): Severity {
  return SEVERITIES[Math.max(SEVERITIES.indexOf(one), SEVERITIES.indexOf(other))] as Severity;
}

/** One book for each way. */
export type AlertBooks = Readonly<Record<Way, AlertBook>>;
