import { worstFirst } from '../../../../src/core/alerts/alert.ts';
import { nodeOfAlert } from '../../model/alert-book.ts';
import type { Moment, Span } from '../../page/chart.tsx';
import type { Alert, StatusDocument } from '../../types.ts';

/** The alerts of a node in a time range, oldest first, from their changes. */
export function spansIn(changes: readonly Alert[], node: string | null, fromMs: number, toMs: number): Span[] {
  const spans = new Map<string, Span>();
  for (const alert of changes) {
    if (nodeOfAlert(alert.alert_id) !== node) continue;
    const known = spans.get(alert.alert_id);
    const atMs = Date.parse(alert.timestamp);
    const isWorse = known === undefined || worstFirst(alert.severity, known.severity) < 0;
    spans.set(alert.alert_id, {
      id: alert.alert_id,
      metric: alert.metric,
      severity: isWorse ? alert.severity : known.severity,
      // The alert was raised before the requested changes.
      fromMs: known?.fromMs ?? (alert.resolved ? Number.NEGATIVE_INFINITY : atMs),
      toMs: alert.resolved ? atMs : null,
    });
  }
  return [...spans.values()].filter((span) => span.fromMs <= toMs && (span.toMs ?? toMs) >= fromMs).sort((a, b) => a.fromMs - b.fromMs);
}

/** The last start of the service and the changes of the machine's clock in a time range; known only for the local node. */
export function momentsIn(status: StatusDocument | null, fromMs: number, toMs: number): Moment[] {
  if (!status) return [];
  const moments: Moment[] = [
    { kind: 'restart', atMs: Date.parse(status.started), seconds: 0 },
    ...status.clock_events.map(({ kind, timestamp, delta_seconds }) => ({ kind, atMs: Date.parse(timestamp), seconds: delta_seconds })),
  ];
  return moments.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs).sort((a, b) => a.atMs - b.atMs);
}
