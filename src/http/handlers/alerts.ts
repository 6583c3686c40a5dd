import type { Severity } from '../../core/alerts/alert.ts';
import type { RecordCursor } from '../../core/ports.ts';
import { MAX_PAGE } from '../api/query-schema.ts';
import { type Context, nodeOf, pageHeaders, queryStore, sendBody } from '../context.ts';
import { formatId, parseId } from '../events.ts';
import { decodeCursor, encodeCursor, givenRange, invalid, type Query } from '../parameters.ts';
import { Problem } from '../problem.ts';

/** GET /alerts: open alerts and the alerts of 24 hours or of a range, newest first; with `after`, changes in the order of recording. */
export async function alerts(context: Context): Promise<void> {
  const { query, view } = context;
  if (query['after'] !== undefined) return changesAfter(context, cursorOf(query));
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
  const { alerts: data, next } = await queryStore(context, () => view.history.alerts(asked));
  const headers = pageHeaders(context, next && encodeCursor(next.timestampMs, next.key), range);
  return sendBody(context, 'application/json', JSON.stringify({ data, count: data.length }), { 'Cache-Control': 'no-cache', ...headers });
}

/** GET /alerts/{alert_id}: an alert and its changes, the earliest first. */
export async function alert(context: Context): Promise<void> {
  const { path, request, view } = context;
  // The slashes of the id may be percent-encoded or not: reverse proxies decode them.
  const id = decodeURIComponent((request.url ?? '').split('?')[0]?.slice(path.indexOf('{')) ?? '');
  const asked = { id, node: null, severity: null, metric: null, resolved: null, range: null, limit: MAX_PAGE, after: null, nowMs: 0 };
  const [episode, changes] = await queryStore(context, () =>
    Promise.all([view.history.alerts({ ...asked, changes: false }), view.history.alerts({ ...asked, changes: true })]),
  );
  const [current] = episode.alerts;
  if (!current) throw new Problem('unknown_alert', `no alert "${id.slice(0, 100)}" is stored; /alerts has the ids`);
  // If the clock was set back during the alert, its resolution is still the last change.
  const ordered = changes.alerts.toReversed().sort((a, b) => Number(a.resolved) - Number(b.resolved));
  return sendBody(context, 'application/json', JSON.stringify({ ...current, changes: ordered }), {
    'Cache-Control': 'no-cache',
    Truncated: String(changes.next !== null),
  });
}

/** Parameters that can be combined with `after`. */
const WITH_AFTER = ['after', 'changes', 'node', 'limit'];

function cursorOf(query: Query): RecordCursor {
  const after = query['after'] as string;
  const other = Object.keys(query).find((name) => query[name] !== undefined && !WITH_AFTER.includes(name));
  if (other !== undefined) throw invalid('after', after, `together with changes, node and limit, but not with ${other}`);
  if (query['changes'] !== true) throw invalid('after', after, 'together with changes=true');
  return parseId(after)?.alert ?? { segment: 0, sequence: 0 };
}

/**
 * Responds with the changes recorded after a cursor, oldest first. The cursor grows with every record, even if a clock is set back and
 * across restarts, so that a client that continues from the last cursor gets each change exactly once.
 */
async function changesAfter(context: Context, after: RecordCursor): Promise<void> {
  const { query, view } = context;
  const node = query['node'] === undefined ? null : nodeOf(context);
  const { events, more } = await queryStore(context, () =>
    view.history.recorded({ healthAfter: null, alertAfter: after, node, limit: query['limit'] as number }),
  );
  if (after.segment > (view.history.segment() ?? 0)) {
    throw new Problem(
      'cursor_ahead',
      'the cursor is from another database, or from a time when the clock was ahead; continue with after=0 and skip known changes',
      { parameter: 'after' },
    );
  }
  const last = events.at(-1)?.cursor ?? after;
  const id = formatId({ health: last, alert: last }, 0);
  const headers = { 'Cache-Control': 'no-cache', 'Last-Event-ID': id, ...pageHeaders(context, more ? id : null, null, 'after') };
  const body = `{"data":[${events.map(({ json }) => json).join(',')}],"count":${events.length}}`;
  return sendBody(context, 'application/json', body, headers);
}
