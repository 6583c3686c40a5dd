import type { Severity } from '../../core/alert.ts';
import { type Context, fromStore, nextLink, nodeOf, sendBody } from '../context.ts';
import { decodeCursor, encodeCursor, givenRange } from '../parameters.ts';

/** GET /alerts: open alerts and those of the last 24 hours, or of a range, newest first. */
export async function alerts(context: Context): Promise<void> {
  const { query, view } = context;
  const nowMs = Date.now();
  const range = givenRange(query, nowMs, 24);
  const asked = {
    node: query['node'] === undefined ? null : nodeOf(context),
    severity: (query['severity'] as Severity | undefined) ?? null,
    metric: (query['metric'] as string | undefined) ?? null,
    resolved: (query['resolved'] as boolean | undefined) ?? null,
    changes: (query['changes'] as boolean | undefined) ?? false,
    limit: query['limit'] as number,
    after: query['cursor'] === undefined ? null : decodeCursor(query['cursor'] as string),
    range,
    nowMs,
  };
  const { alerts: data, next } = await fromStore(() => view.history.alerts(asked));
  const link: Record<string, string> = next ? { Link: nextLink(context, encodeCursor(next.timestampMs, next.key), range) } : {};
  sendBody(context, 'application/json', JSON.stringify({ data, count: data.length }), { 'Cache-Control': 'no-cache', ...link });
}
