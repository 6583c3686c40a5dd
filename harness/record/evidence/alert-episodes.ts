import { changeKey, SEVERITIES, type Severity } from '../../../src/core/alerts/alert.ts';
import type { AlertEvidence, ChartSeries, OpenEpisode } from '../../engine/evidence.ts';
import type { AlertEntry, OpenEntry } from '../entries.ts';

interface Episode {
  readonly metric: string;
  severity: Severity;
  worst: Severity;
  readonly since: string | null;
  readonly from: number;
  /** When it was resolved; null while open. */
  to: number | null;
  /** Changes received. Old changes are sent again to a late joiner, and a restarted service sends those of open alerts again. */
  readonly changes: Set<string>;
  /** The last session in which a change of the episode was received. */
  seenInSession: number;
}

/** A list of open alerts belongs to the begin, the resume or the end if it is at most this far from it. */
export const LIST_SECONDS = 120;

/**
 * The alert episodes received on one channel. Episodes that were open before a session are taken from the first list after its start; from
 * then on, only the changes count, so that they can be compared with the list at the end. A resolved episode never opens again, because
 * each episode has its own id.
 */
export class AlertEpisodes {
  readonly #episodes = new Map<string, Episode>();
  /** Sessions of the observer, each of which starts with a `begin` or a `resume`. */
  #session = 0;
  /** Until this time, the first list counts as open before the session. */
  #listUntil = Number.NEGATIVE_INFINITY;

  startSession(at: number): void {
    // Stryker disable next-line UpdateOperator: sessions are only compared for equality
    this.#session++;
    this.#listUntil = at + LIST_SECONDS;
  }

  changed(entry: AlertEntry, at: number): void {
    const { alert_id, metric, resolved, severity, timestamp } = entry;
    const change = changeKey(entry);
    const episode = this.#episodes.get(alert_id) ?? this.#add(alert_id, { severity, metric, since: timestamp, from: at });
    episode.seenInSession = this.#session;
    if (episode.to !== null || episode.changes.has(change)) return;
    episode.changes.add(change);
    setSeverity(episode, severity);
    if (!resolved) return;
    episode.to = at;
    episode.changes.clear();
  }

  listedOpen({ open }: OpenEntry, at: number): void {
    if (at > this.#listUntil) return;
    this.#listUntil = Number.NEGATIVE_INFINITY;
    const ids = new Set(open.map(({ alert_id }) => alert_id));
    for (const [id, episode] of this.#episodes) if (episode.seenInSession !== this.#session && !ids.has(id)) episode.to ??= at;
    for (const { alert_id, severity, metric } of open) {
      const episode = this.#episodes.get(alert_id) ?? this.#add(alert_id, { severity, metric, since: null, from: at });
      if (episode.seenInSession !== this.#session) setSeverity(episode, severity);
    }
  }

  open(): OpenEpisode[] {
    const open = [...this.#episodes].filter(([, { to }]) => to === null);
    return open.map(([alertId, { metric, severity, since }]) => ({ alertId, metric, severity, since }));
  }

  countsByWorst(): AlertEvidence['episodes'] {
    const counts: Record<Severity, number> = { WARNING: 0, ERROR: 0, CRITICAL: 0 };
    for (const { worst } of this.#episodes.values()) counts[worst]++;
    return counts;
  }

  series(): ChartSeries['alerts'] {
    return [...this.#episodes].map(([alertId, { from, to, worst, metric }]) => ({ from, to, severity: worst, metric, alertId }));
  }

  #add(id: string, known: Pick<Episode, 'severity' | 'metric' | 'since' | 'from'>): Episode {
    const episode = { ...known, worst: known.severity, to: null, changes: new Set<string>(), seenInSession: this.#session };
    this.#episodes.set(id, episode);
    return episode;
  }
}

function setSeverity(episode: Episode, severity: Severity): void {
  episode.severity = severity;
  episode.worst = SEVERITIES[Math.max(SEVERITIES.indexOf(severity), SEVERITIES.indexOf(episode.worst))] as Severity;
}
