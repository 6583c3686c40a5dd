import { type Metric, type Readings, toHundredths } from '../../src/core/metrics.ts';
import { isoUtc } from '../../src/core/time.ts';

/** The last sample of a node as /metrics shows it. */
export interface NodeValues {
  readonly status: string | null;
  /** When it was measured, by the node's clock; ISO 8601 in UTC. */
  readonly sampleTime: string | null;
  readonly readings: Readings;
}

/** One series: name, labels, value. */
const SERIES = /^edge_health_(\w+)\{(.*)\} (\S+)$/;
const NODE = /(?:^|,)node="((?:[^"\\]|\\.)*)"/;
const STATUS = /(?:^|,)status="(\w+)"/;
const ESCAPED: Readonly<Record<string, string>> = { '\\\\': '\\', '\\"': '"', '\\n': '\n' };

interface Building {
  status: string | null;
  sampleTime: string | null;
  readings: Record<Metric, number | null>;
}

type Take = (node: Building, value: number, labels: string) => void;

const reading =
  (metric: Metric, scale: number): Take =>
  ({ readings }, value) => {
    readings[metric] = toHundredths(value * scale);
  };

const FAMILIES: Readonly<Record<string, Take>> = {
  cpu_usage_ratio: reading('cpu_percent', 100),
  memory_usage_ratio: reading('memory_percent', 100),
  disk_usage_ratio: reading('disk_percent', 100),
  temperature_celsius: reading('temperature', 1),
  // One line a status, 1 for the one that it has.
  status: (node, value, labels) => {
    if (value === 1) node.status = STATUS.exec(labels)?.[1] ?? null;
  },
  last_sample_timestamp_seconds: (node, value) => {
    node.sampleTime = isoUtc(Math.round(value * 1000));
  },
};

/**
 * The values of every node out of the Prometheus text of /metrics: one answer for all nodes, all of one instant. /health has
 * those of one node, and /status none.
 */
export function nodeValues(exposition: string): Map<string, NodeValues> {
  const nodes = new Map<string, Building>();
  // A family has one line a node, or four: most of the text is passed over without looking into its lines.
  for (const family of exposition.split('# HELP ')) {
    const take = FAMILIES[/^edge_health_(\w+)/.exec(family)?.[1] ?? ''];
    if (!take) continue;
    for (const line of family.split('\n')) {
      const [, , labels = '', text] = SERIES.exec(line) ?? [];
      const name = NODE.exec(labels)?.[1];
      const value = Number(text);
      if (name === undefined || !Number.isFinite(value)) continue;
      take(nodeOf(nodes, name.includes('\\') ? name.replaceAll(/\\[\\"n]/g, (found) => ESCAPED[found] as string) : name), value, labels);
    }
  }
  return nodes;
}

function nodeOf(nodes: Map<string, Building>, name: string): Building {
  let found = nodes.get(name);
  if (!found) {
    found = {
      status: null,
      sampleTime: null,
      readings: { cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null },
    };
    nodes.set(name, found);
  }
  return found;
}
