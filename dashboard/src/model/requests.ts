import type { Alert, HealthStatus, List } from '../types.ts';
import { type AlertBook, buildBook } from './alert-book.ts';
import { type Api, ApiError } from './api.ts';
import type { BandStep, Point } from './series.ts';
import { edgesOf, type Range, type RangePlan, samplesOfStep } from './windows.ts';

const nodeQuery = (node: string): string => `node=${encodeURIComponent(node)}`;

/** Fetches the last health status of a node (null: the local one). Returns null if there is none or the node is unknown. */
export async function fetchHealth(api: Api, node: string | null, signal: AbortSignal): Promise<HealthStatus | null> {
  const path = node === null ? 'health' : `health?${nodeQuery(node)}`;
  return api.getJson<HealthStatus>(path, signal).catch((error) => {
    if (error instanceof ApiError && (error.code === 'no_sample_yet' || error.code === 'unknown_node')) return null;
    throw error;
  });
}

/** Fetches the open and the last resolved alerts of all nodes. */
export async function fetchAlerts(api: Api, signal: AbortSignal): Promise<AlertBook> {
  const list = async (query: string): Promise<readonly Alert[]> => (await api.getJson<List<Alert>>(`alerts?${query}`, signal)).data;
  const lists = await Promise.all([list('resolved=false'), list('resolved=true&limit=5'), list('changes=true&resolved=false')]);
  return buildBook(...lists);
}

/** Limit of the requests for alerts that were open when a range begins; a node has one for each of its metrics and disks. */
const MAX_EARLIER = 20;

/** Fetches the changes of every alert of a node that was open at any time in a range, and their last changes, the earliest first. */
export async function fetchChanges(api: Api, node: string, fromMs: number, toMs: number, signal: AbortSignal): Promise<readonly Alert[]> {
  const list = async (beforeMs: number, more = ''): Promise<readonly Alert[]> => {
    const range = `from=${isoOf(fromMs)}&to=${isoOf(beforeMs)}`;
    return (await api.getJson<List<Alert>>(`alerts?${nodeQuery(node)}&${range}&limit=1000${more}`, signal)).data.toReversed();
  };
  const endMs = toMs + 1000;
  const [earlier, changes, last] = await Promise.all([list(fromMs + 1), list(endMs, '&changes=true'), list(endMs)]);
  const whole = await Promise.all(earlier.slice(0, MAX_EARLIER).map(({ alert_id }) => fetchEpisode(api, alert_id, signal)));
  return [...whole.flat(), ...changes, ...last];
}

/** Maximum number of API pages of past alerts that are loaded, with 1,000 changes each. */
const MAX_PAGES = 5;

export interface PastChanges {
  readonly changes: readonly Alert[];
  /** Whether older ones exist. */
  readonly isMore: boolean;
}

/** Fetches the changes of all alerts of the last hours, the latest first. */
export async function fetchPastChanges(api: Api, hours: number, signal: AbortSignal): Promise<PastChanges> {
  const changes: Alert[] = [];
  let path: string | null = `alerts?changes=true&hours=${hours}&limit=1000`;
  for (let pages = 0; path !== null && pages < MAX_PAGES; pages += 1) {
    const { body, next }: { body: List<Alert>; next: string | null } = await api.getPage<List<Alert>>(path, signal);
    changes.push(...body.data);
    path = next;
  }
  return { changes, isMore: path !== null };
}

/** Fetches the changes of one alert, the earliest first. Returns none if the alert is not stored. */
export async function fetchEpisode(api: Api, id: string, signal: AbortSignal): Promise<readonly Alert[]> {
  const answer = api.getJson<Alert & { readonly changes: readonly Alert[] }>(`alerts/${encodeURIComponent(id)}`, signal);
  return answer.then(
    // An alert can be stored for longer than its changes.
    ({ changes, ...alert }) => (changes.length > 0 ? changes : [alert]),
    (error) => {
      if (error instanceof ApiError && error.code === 'unknown_alert') return [];
      throw error;
    },
  );
}

const isoOf = (ms: number): string => new Date(ms).toISOString();

export interface HistoryRequest {
  /** Null: the local node. */
  readonly node: string | null;
  readonly range: Range;
  readonly plan: RangePlan;
  /** Publish rate of the node. */
  readonly hertz: number;
  /** Wall clock of the node. */
  readonly nowMs: () => number;
}

/** Fetches the points of the charts, oldest first. */
export async function fetchHistory(api: Api, request: HistoryRequest, signal: AbortSignal): Promise<Point[]> {
  const { hertz, nowMs, plan } = request;
  const { bucketMs, step } = plan;
  const rows = await fetchRows(api, request, step === null ? '' : `&step=${step}`, signal);
  const answeredMs = nowMs();
  return rows.map((row): Point => {
    const timestampMs = Date.parse(row.timestamp);
    return { timestampMs, readings: row, samples: step === null ? 1 : samplesOfStep(timestampMs, answeredMs, bucketMs, hertz) };
  });
}

/** Fetches the lowest and highest values of each step, oldest first. */
export async function fetchBand(api: Api, request: HistoryRequest, step: string, signal: AbortSignal): Promise<BandStep[]> {
  const [lows, highs] = await Promise.all(['min', 'max'].map((value) => fetchRows(api, request, `&step=${step}&value=${value}`, signal)));
  const byTime = new Map(highs?.map((row) => [row.timestamp, row]));
  return (lows ?? []).flatMap((row) => {
    const high = byTime.get(row.timestamp);
    return high ? [{ startMs: Date.parse(row.timestamp), lows: row, highs: high }] : [];
  });
}

/** Fetches all rows of the range; a week in steps of a minute takes two pages of the API. */
async function fetchRows(api: Api, request: HistoryRequest, query: string, signal: AbortSignal): Promise<HealthStatus[]> {
  const rows: HealthStatus[] = [];
  for (let path: string | null = `health/history?${rangeOf(request)}${query}`; path !== null; ) {
    const { body, next }: { body: List<HealthStatus>; next: string | null } = await api.getPage<List<HealthStatus>>(path, signal);
    rows.push(...body.data);
    path = next;
  }
  return rows;
}

function rangeOf({ node, nowMs, range, plan: { windowMs } }: HistoryRequest): string {
  // `hours` counts back from the machine's clock, which may differ from the browser's.
  if (node === null && range.kind === 'live') return `hours=${(windowMs / 3_600_000).toFixed(6)}`;
  // The history of a remote node has the timestamps of that node's clock.
  const { fromMs, toMs } = edgesOf(range, nowMs() + (range.kind === 'live' ? 1000 : 0));
  return `${node === null ? '' : `${nodeQuery(node)}&`}from=${isoOf(fromMs)}&to=${isoOf(toMs)}`;
}
