import { STATUSES } from '../../core/alerts/alert.ts';
import { csvText } from '../../core/csv.ts';
import { METRICS, type Metric } from '../../core/metrics.ts';
import type { HistoryPage, HistoryQuery, Order, StepValue, TimeRange } from '../../core/ports.ts';
import { isoUtc } from '../../core/time/time.ts';
import { MAX_PAGE } from '../api/query-schema.ts';
import { acquireStore, awaitAnswer, type Context, nodeOf, PIECE_BYTES, pageHeaders, prefers, waitForDrain } from '../context.ts';
import { decodeCursor, encodeCursor, invalid, rangeOf, stepMs } from '../parameters.ts';

/** Rows rendered per turn of the event loop, which takes about 0.5 ms. Samples and other requests are processed in between. */
const ROWS_AT_ONCE = 500;

/** Memory per row: the time and the metrics as 64-bit floats, and one byte for the status. */
const BYTES_PER_ROW = 8 * (1 + METRICS.length) + 1;

/** Rows per store query of a CSV download. It bounds the memory held for a slow client, and the store serves others between two queries. */
const DOWNLOAD_PAGE = 2000;

/** GET /health/history: health statuses of a range, sent in chunks: one page as JSON, or as CSV the whole range unless `limit` is given. */
export async function history(context: Context): Promise<void> {
  const { query, request, response, view } = context;
  const range = rangeOf(query, Date.now(), 1);
  const isCsv = prefers(request, 'text/csv');
  const limit = query['limit'] as number | undefined;
  const isWhole = isCsv && limit === undefined;
  let pageQuery = historyQuery(context, range, isWhole ? DOWNLOAD_PAGE : (limit ?? MAX_PAGE));
  const render = isCsv ? csvRows : jsonRows;
  for (;;) {
    // The store is released only when the page is being sent, because pages waiting to be rendered would fill memory.
    const release = await acquireStore(context);
    try {
      const page = pageQuery.fromMs < pageQuery.toMs ? await awaitAnswer(view.history.history(pageQuery)) : EMPTY;
      const rows = render(page, pageQuery.node);
      const isFirst = !response.headersSent;
      if (isFirst) writeHead(context, isCsv, page.more && !isWhole ? cursorAfter(page, pageQuery) : null, range);
      if (request.method === 'HEAD') return void response.end();
      context.hold(page, page.count * BYTES_PER_ROW);
      const rest = await writeRows(context, page.count, isFirst ? rows.head : '', rows.row, release);
      if (!isWhole || !page.more) return void response.end(rest + rows.foot);
      pageQuery = queryAfter(pageQuery, endOfPage(page, pageQuery));
    } finally {
      release();
    }
  }
}

const EMPTY: HistoryPage = { count: 0, timestampMs: new Float64Array(0), metrics: [], status: new Uint8Array(0), more: false };

function historyQuery(context: Context, range: TimeRange, limit: number): HistoryQuery {
  const { query } = context;
  const order = query['order'] as Order;
  const step = query['step'] === undefined ? null : stepMs(query['step'] as string);
  const value = query['value'] as StepValue;
  if (step === null && value !== 'mean') throw invalid('value', value, 'mean, or min or max together with step');
  const first: HistoryQuery = { node: nodeOf(context), ...range, stepMs: step, value, order, limit };
  if (query['cursor'] === undefined) return first;
  const { key, timestampMs } = decodeCursor(query['cursor'] as string);
  return queryAfter(first, { timestampMs, taken: /^\d{1,9}$/.test(key) ? Number(key) : 0 });
}

function cursorAfter(page: HistoryPage, pageQuery: HistoryQuery): string {
  const { taken, timestampMs } = endOfPage(page, pageQuery);
  return encodeCursor(timestampMs, String(taken));
}

function writeHead(context: Context, isCsv: boolean, cursor: string | null, range: TimeRange): void {
  context.response.writeHead(200, {
    'Content-Type': isCsv ? 'text/csv; charset=utf-8; header=present' : 'application/json',
    'Cache-Control': 'no-cache',
    Vary: 'Accept, Origin',
    // The first page fixes the range for all pages of a listing, so that they do not shift as time passes.
    ...pageHeaders(context, cursor, range),
  });
}

interface Rows {
  readonly head: string;
  readonly row: (i: number) => string;
  readonly foot: string;
}

function jsonRows(page: HistoryPage, node: string): Rows {
  const end = `","node_name":${JSON.stringify(node)},"timestamp":"`;
  const number = (m: number, i: number): string => {
    const value = (page.metrics[m] as Float64Array)[i] as number;
    return Number.isFinite(value) ? String(value) : 'null';
  };
  const names = METRICS.map((metric: Metric) => JSON.stringify(metric));
  const row = (i: number): string => {
    let text = i === 0 ? '{' : ',{';
    for (let m = 0; m < names.length; m += 1) text += `${names[m]}:${number(m, i)},`;
    return `${text}"status":"${STATUSES[page.status[i] as number]}${end}${isoUtc(page.timestampMs[i] as number)}"}`;
  };
  return { head: '{"data":[', row, foot: `],"count":${page.count}}` };
}

function csvRows(page: HistoryPage, node: string): Rows {
  const name = csvText(node);
  const row = (i: number): string => {
    let text = '';
    for (const column of page.metrics) {
      const value = column[i] as number;
      text += `${Number.isFinite(value) ? value : ''},`;
    }
    return `${text}${STATUSES[page.status[i] as number]},${name},${isoUtc(page.timestampMs[i] as number)}\r\n`;
  };
  return { head: `${METRICS.join(',')},status,node_name,timestamp\r\n`, row, foot: '' };
}

/** Writes the rows of a page; resolves with the text that is not written yet. Calls `release` as soon as it must wait for the client. */
async function writeRows(
  { response, turns }: Context,
  count: number,
  head: string,
  row: (i: number) => string,
  release: () => void,
): Promise<string> {
  let text = head;
  await turns.next();
  for (let i = 0; i < count && !response.destroyed; i += 1) {
    text += row(i);
    if ((i + 1) % ROWS_AT_ONCE !== 0 && text.length < PIECE_BYTES) continue;
    response.write(text);
    text = '';
    if (response.writableNeedDrain) release();
    await waitForDrain(response);
    await turns.next();
  }
  return text;
}

/** End of a page of history: the time of its last row, and the number of rows with that time up to there. */
interface PageEnd {
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
