import { type AlertBook, bookOf } from './alert-book.ts';
import { type Api, ApiError } from './api.ts';
import type { Point } from './series.ts';
import type { Alert, HealthStatus, List } from './types.ts';
import { samplesOfStep, type WindowPlan } from './windows.ts';

/** What of a node is asked for; null: of the machine itself. */
export type Asked = string | null;

const nodeQuery = (node: string): string => `node=${encodeURIComponent(node)}`;

/** The last health status of a node; null: there is none, or the service does not know the node. */
export async function askHealth(api: Api, node: Asked, signal: AbortSignal): Promise<HealthStatus | null> {
  const path = node === null ? 'health' : `health?${nodeQuery(node)}`;
  return api.json<HealthStatus>(path, signal).catch((error) => {
    if (error instanceof ApiError && (error.code === 'no_sample_yet' || error.code === 'unknown_node')) return null;
    throw error;
  });
}

/** Alerts of all nodes: what is open, what was resolved last, and since when. */
export async function askAlerts(api: Api, signal: AbortSignal): Promise<AlertBook> {
  const list = async (query: string): Promise<readonly Alert[]> => (await api.json<List<Alert>>(`alerts?${query}`, signal)).data;
  const lists = await Promise.all([list('resolved=false'), list('resolved=true&limit=5'), list('changes=true&resolved=false')]);
  return bookOf(...lists);
}

export interface HistoryWish {
  readonly node: Asked;
  readonly plan: WindowPlan;
  /** How often the node publishes. */
  readonly hertz: number;
  /** The node's wall clock. */
  readonly nowMs: () => number;
}

/** The points of the charts, oldest first. */
export async function askHistory(api: Api, wish: HistoryWish, signal: AbortSignal): Promise<Point[]> {
  const { hertz, nowMs, plan } = wish;
  const { bucketMs, step } = plan;
  const path = `health/history?${rangeOf(wish)}${step === null ? '' : `&step=${step}`}`;
  const { data } = await api.json<List<HealthStatus>>(path, signal);
  const answeredMs = nowMs();
  return data.map((row): Point => {
    const timestampMs = Date.parse(row.timestamp);
    return { timestampMs, readings: row, samples: step === null ? 1 : samplesOfStep(timestampMs, answeredMs, bucketMs, hertz) };
  });
}

function rangeOf({ node, nowMs, plan: { windowMs } }: HistoryWish): string {
  // Counted back from the machine's clock, which need not agree with the one here.
  if (node === null) return `hours=${(windowMs / 3_600_000).toFixed(6)}`;
  // Another node's history has the times of its own clock.
  const to = nowMs() + 1000;
  return `${nodeQuery(node)}&from=${new Date(to - windowMs).toISOString()}&to=${new Date(to).toISOString()}`;
}
