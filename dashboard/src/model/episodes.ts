import { SEVERITIES } from '../../../src/core/alerts/alert.ts';
import type { Alert, Severity } from '../types.ts';
import { nodeOfAlert } from './alert-book.ts';

/** An alert from its first to its last known change. */
export interface Episode {
  readonly id: string;
  readonly node: string;
  readonly metric: string;
  /** The highest severity that it reached; `current` is that of its last change. */
  readonly severity: Severity;
  readonly current: Severity;
  readonly fromMs: number;
  /** Null: still open. */
  readonly toMs: number | null;
  /** Oldest first. */
  readonly changes: readonly Alert[];
}

/** Groups changes into episodes, the latest first. Duplicate changes count once. */
export function episodesOf(changes: readonly Alert[]): Episode[] {
  const byId = new Map<string, Alert[]>();
  for (const change of changes) {
    const known = byId.get(change.alert_id) ?? [];
    const isKnown = known.some(
      (other) => other.timestamp === change.timestamp && other.severity === change.severity && other.resolved === change.resolved,
    );
    if (!isKnown) byId.set(change.alert_id, [...known, change]);
  }
  return [...byId.values()].map(episodeOf).sort((a, b) => b.fromMs - a.fromMs);
}

function episodeOf(unordered: readonly Alert[]): Episode {
  // A resolved alert is never raised again under its id, so its resolution is the last change, regardless of its timestamp.
  const changes = unordered.toSorted(
    (a, b) => Number(a.resolved) - Number(b.resolved) || Date.parse(a.timestamp) - Date.parse(b.timestamp),
  );
  const first = changes[0] as Alert;
  const last = changes.at(-1) as Alert;
  const raised = changes.filter(({ resolved }) => !resolved);
  const worst = Math.max(...(raised.length > 0 ? raised : changes).map(({ severity }) => SEVERITIES.indexOf(severity)));
  return {
    id: first.alert_id,
    node: nodeOfAlert(first.alert_id),
    metric: first.metric,
    severity: SEVERITIES[worst] as Severity,
    current: last.severity,
    fromMs: Date.parse(first.timestamp),
    toMs: last.resolved ? Date.parse(last.timestamp) : null,
    changes,
  };
}

/** What the list shows; null: all. */
export interface EpisodeFilter {
  readonly node: string | null;
  readonly severity: Severity | null;
  readonly metric: string | null;
  readonly state: 'open' | 'past' | null;
}

export function matches({ metric, node, severity, state }: EpisodeFilter, episode: Episode): boolean {
  const isOpen = episode.toMs === null;
  return (
    (node === null || node === episode.node) &&
    (severity === null || severity === episode.severity) &&
    (metric === null || metric === episode.metric) &&
    (state === null || (state === 'open') === isOpen)
  );
}

/** Sorts the episodes: open ones first, the worst of them at the top, then past ones, the latest first. */
export function inOrder(episodes: readonly Episode[]): Episode[] {
  const rank = ({ current, toMs }: Episode): number => (toMs === null ? SEVERITIES.indexOf(current) : -1);
  return episodes.toSorted((a, b) => rank(b) - rank(a) || (b.toMs ?? b.fromMs) - (a.toMs ?? a.fromMs));
}
