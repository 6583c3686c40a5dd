import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time.ts';
import { MAX_PAGE } from '../api/query-schema.ts';
import { type Context, fromStore, nodeOf, sendBody } from '../context.ts';
import { invalid, rangeOf } from '../parameters.ts';

const WIDTH_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

/** GET /health/aggregate: statistics of a range, and with `by` of each part of it. */
export async function aggregate(context: Context): Promise<void> {
  const { query, view } = context;
  const node = nodeOf(context);
  const range = rangeOf(query, Date.now(), 24);
  const by = (query['by'] as keyof typeof WIDTH_MS | undefined) ?? null;
  if (by !== null && (range.toMs - range.fromMs) / WIDTH_MS[by] > MAX_PAGE) {
    throw invalid('by', by, `a range of at most ${MAX_PAGE} ${by}s, or longer parts`);
  }
  const [whole] = await fromStore(context, () => view.history.aggregate({ node, ...range, by: null }));
  const buckets = by === null ? undefined : await fromStore(context, () => view.history.aggregate({ node, ...range, by }));
  return sendBody(context, 'application/json', JSON.stringify({ node_name: node, ...whole, buckets }), { 'Cache-Control': 'no-cache' });
}
