import { type AlertBook, buildBook } from './alert-book.ts';
import { type Api, ApiError } from './api.ts';
import type { Point } from './series.ts';
import type { Alert, HealthStatus, List } from './types.ts';
import { samplesOfStep, type WindowPlan } from './windows.ts';

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

export interface HistoryRequest {
  /** Null: the local node. */
  readonly node: string | null;
  readonly plan: WindowPlan;
  /** Publish rate of the node. */
  readonly hertz: number;
  /** Wall clock of the node. */
  readonly nowMs: () => number;
}

/** Fetches the points of the charts, oldest first. */
export async function fetchHistory(api: Api, request: HistoryRequest, signal: AbortSignal): Promise<Point[]> {
  const { hertz, nowMs, plan } = request;
  const { bucketMs, step } = plan;
  const path = `health/history?${rangeOf(request)}${step === null ? '' : `&step=${step}`}`;
  const { data } = await api.getJson<List<HealthStatus>>(path, signal);
  const answeredMs = nowMs();
  return data.map((row): Point => {
    const timestampMs = Date.parse(row.timestamp);
    return { timestampMs, readings: row, samples: step === null ? 1 : samplesOfStep(timestampMs, answeredMs, bucketMs, hertz) };
  });
}

function rangeOf({ node, nowMs, plan: { windowMs } }: HistoryRequest): string {
  // `hours` counts back from the machine's clock, which may differ from the browser's.
  if (node === null) return `hours=${(windowMs / 3_600_000).toFixed(6)}`;
  // The history of a remote node has the timestamps of that node's clock.
  const to = nowMs() + 1000;
  return `${nodeQuery(node)}&from=${new Date(to - windowMs).toISOString()}&to=${new Date(to).toISOString()}`;
}
