/** What the service returns about its nodes at one moment, with the clocks of this machine. */

import { type StatusDocument, statusDocumentSchema } from '../../src/client/documents.ts';
import { type Metric, toHundredths } from '../../src/core/metrics.ts';
import { readBootId } from '../../src/core/platform/boot-id.ts';
import { systemClocks } from '../../src/core/platform/clocks.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import type { JobContext } from '../lib/job.ts';

/** /status, of `process` and `ros` only what is collected. */
export type CollectedStatus = Omit<StatusDocument, 'process' | 'ros'> & {
  readonly process: { readonly resident_memory_bytes: number | null; readonly cpu_seconds: number | null };
  readonly ros: { readonly published: { readonly health_status: number } | null };
};

/** What the service returned, and the clocks of this machine at that time. Comparing the clocks reveals steps, suspends and reboots. */
export interface Observation {
  /** Wall clock, milliseconds since the epoch. */
  readonly wallMs: number;
  /** Different in each boot; null if procfs lacks it. */
  readonly bootId: string | null;
  /** Seconds since boot, including suspends; null if procfs lacks it. */
  readonly bootSeconds: number | null;
  /** Does not advance while the machine is suspended. */
  readonly monotonicSeconds: number;
  /** Null if there was no response. */
  readonly status: CollectedStatus | null;
  readonly values: ReadonlyMap<string, NodeValues>;
  /** Why the response or the values are missing; null if both are present. */
  readonly reason: string | null;
}

/** The last sample of a node as reported by /metrics. */
export interface NodeValues {
  status: string | null;
  /** Time of the sample by the node's clock; ISO 8601, UTC. */
  sampleTime: string | null;
  readonly readings: Record<Metric, number | null>;
}

/** After this long without a response, the row has answered: false. */
const RESPONSE_SECONDS = 10;

const clocks = systemClocks();

/** Requests /status and /metrics, and reads the clocks between the two. A failure becomes the reason in the row. */
export async function observe({ config, nowMs, rest, signal: ended }: JobContext): Promise<Observation> {
  const seconds = Math.min(RESPONSE_SECONDS, config.ops.timeouts.collect_metrics * 0.8);
  const timeout = AbortSignal.timeout(seconds * 1000);
  const signal = AbortSignal.any([ended, timeout]);
  const reasonOf = (error: unknown): string => (timeout.aborted ? `no response within ${seconds} s` : (error as Error).message);
  let status: CollectedStatus | null = null;
  let values: Observation['values'] = new Map();
  let reason: string | null = null;
  try {
    status = await rest.json<CollectedStatus>('/status', { signal, schema: statusDocumentSchema });
  } catch (error) {
    reason = reasonOf(error);
  }
  const hundredths = (value: number): number => Math.round(value * 100) / 100;
  const times = {
    wallMs: nowMs(),
    bootId: readBootId('/proc'),
    bootSeconds: clocks.bootSeconds(),
    monotonicSeconds: hundredths(clocks.monotonicSeconds()),
  };
  try {
    if (status !== null) values = nodeValues(await rest.text('/metrics', { signal }));
  } catch (error) {
    reason = reasonOf(error);
  }
  return { ...times, status, values, reason };
}

/** `edge_health_NAME{LABELS} VALUE` */
const SERIES = /^edge_health_((?:cpu|memory|disk)_usage_ratio|temperature_celsius|status|last_sample_timestamp_seconds)\{(.*)\} (\S+)$/gm;
const NODE = /(?:^|,)node="((?:[^"\\]|\\.)*)"/;
const STATUS = /(?:^|,)status="(\w+)"/;
const METRIC_OF: Readonly<Record<string, Metric>> = {
  cpu_usage_ratio: 'cpu_percent',
  memory_usage_ratio: 'memory_percent',
  disk_usage_ratio: 'disk_percent',
  temperature_celsius: 'temperature',
};

/**
 * The values of every node from the Prometheus text of /metrics: one response covers all nodes at one instant. /health covers one node,
 * and /status has no values.
 */
export function nodeValues(exposition: string): Map<string, NodeValues> {
  const nodes = new Map<string, NodeValues>();
  for (const [, family = '', labels = '', text] of exposition.matchAll(SERIES)) {
    const name = NODE.exec(labels)?.[1]?.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
    const value = Number(text);
    if (name === undefined || !Number.isFinite(value)) continue;
    const readings = { cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null };
    const node = nodes.get(name) ?? { status: null, sampleTime: null, readings };
    nodes.set(name, node);
    const metric = METRIC_OF[family];
    if (metric) node.readings[metric] = toHundredths(family.endsWith('_ratio') ? value * 100 : value);
    else if (family === 'last_sample_timestamp_seconds') node.sampleTime = isoUtc(Math.round(value * 1000));
    // There is one series per status; that of the current status is 1.
    else if (family === 'status' && value === 1) node.status = STATUS.exec(labels)?.[1] ?? null;
  }
  return nodes;
}
