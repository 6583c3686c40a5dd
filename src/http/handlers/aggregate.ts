import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { MAX_PAGE } from '../api/query-schema.ts';
import { type Context, nodeOf, queryStore, sendBody } from '../context.ts';
import { invalid, rangeOf } from '../parameters.ts';

const WIDTH_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

/** GET /health/aggregate: statistics of a range and, with `by`, of each minute, hour or day in it. */
export async function aggregate(context: Context): Promise<void> {
  const { query, view } = context;
  const node = nodeOf(context);
  const range = rangeOf(query, Date.now(), 24);
  const by = (query['by'] as keyof typeof WIDTH_MS | undefined) ?? null;
  if (by !== null && (range.toMs - range.fromMs) / WIDTH_MS[by] > MAX_PAGE) {
    throw invalid('by', by, `a range of at most ${MAX_PAGE} ${by}s, or a longer unit`);
  }
  const [whole] = await queryStore(context, () => view.history.aggregate({ node, ...range, by: null }));
  const buckets = by === null ? undefined : await queryStore(context, () => view.history.aggregate({ node, ...range, by }));
  return sendBody(context, 'application/json', JSON.stringify({ node_name: node, ...whole, buckets }), { 'Cache-Control': 'no-cache' });
}
