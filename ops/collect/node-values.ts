import { type Metric, toHundredths } from '../../src/core/metrics.ts';
import { isoUtc } from '../../src/core/time.ts';

/** The last sample of a node as /metrics has it. */
export interface NodeValues {
  status: string | null;
  /** Time of the sample by the node's clock; ISO 8601, UTC. */
  sampleTime: string | null;
  readonly readings: Record<Metric, number | null>;
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
 * The values of every node from the Prometheus text of /metrics: one response with all nodes at one instant. /health has those of one
 * node, and /status none.
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
    // One series per status; that of the present status is 1.
    else if (family === 'status' && value === 1) node.status = STATUS.exec(labels)?.[1] ?? null;
  }
  return nodes;
}
