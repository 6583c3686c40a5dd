import type { HistoryPage, HistoryQuery } from './ports.ts';

/** End of a page of history: the time of its last row, and the number of rows with that time up to there. */
export interface PageEnd {
  readonly timestampMs: number;
  /** 0 for averages, whose times are unique. */
  readonly taken: number;
}

/** `page` has at least one row. Raw samples may share a millisecond, also across pages. */
export function endOfPage({ count, timestampMs }: HistoryPage, { fromMs, order, skip = 0, stepMs, toMs }: HistoryQuery): PageEnd {
  const last = timestampMs[count - 1] as number;
  if (stepMs !== null) return { timestampMs: last, taken: 0 };
  let first = count - 1;
  while (first > 0 && timestampMs[first - 1] === last) first -= 1;
  const isWhereItBegan = first === 0 && last === (order === 'asc' ? fromMs : toMs - 1);
  return { timestampMs: last, taken: count - first + (isWhereItBegan ? skip : 0) };
}

/** The query for the next page. */
export function queryAfter(query: HistoryQuery, { taken, timestampMs }: PageEnd): HistoryQuery {
  const { order, stepMs } = query;
  const skip = stepMs === null ? taken : 0;
  if (order === 'asc') return { ...query, fromMs: Math.max(query.fromMs, timestampMs + (stepMs ?? (skip > 0 ? 0 : 1))), skip };
  return { ...query, toMs: Math.min(query.toMs, timestampMs + (skip > 0 ? 1 : 0)), skip };
}
