import { nodeOfAlertId, SEVERITIES } from '../../core/alerts/alert.ts';
import { STATUSES } from '../../core/alerts/thresholds.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Metric } from '../../core/metrics.ts';
import type { StatusDocument } from '../api/schema.ts';
import type { Exposition } from '../exposition.ts';
import type { ServiceView } from '../view.ts';

/** One metric family per metric of a health status. Percentages are exported as ratios, as Prometheus recommends. */
const FAMILIES: readonly {
  readonly of: Metric;
  readonly name: string;
  readonly unit: string;
  readonly scale: number;
  readonly help: string;
}[] = [
  { of: 'cpu_percent', name: 'cpu_usage', unit: 'ratio', scale: 100, help: 'CPU usage from 0 to 1' },
  { of: 'memory_percent', name: 'memory_usage', unit: 'ratio', scale: 100, help: 'Memory usage from 0 to 1' },
  { of: 'disk_percent', name: 'disk_usage', unit: 'ratio', scale: 100, help: 'Usage of the fullest configured file system from 0 to 1' },
  { of: 'temperature', name: 'temperature', unit: 'celsius', scale: 1, help: 'CPU or SoC temperature' },
];

/** Metrics of every node, with the label `node`, and the thresholds of this machine. */
export function nodeMetrics(out: Exposition, nodes: StatusDocument['nodes'], view: ServiceView): void {
  const current = view.nodes().map((node) => ({ node, status: view.current(node) }));
  // An unavailable or stale metric has no series, so that a chart shows a gap and not a zero.
  const fresh = current.filter(
    (entry): entry is { node: string; status: HealthStatus } => (entry.status?.status ?? 'UNKNOWN') !== 'UNKNOWN',
  );
  for (const { help, name, of, scale, unit } of FAMILIES)
    out.family(
      `edge_health_${name}_${unit}`,
      'gauge',
      `${help}.`,
      fresh.map(({ node, status }) => {
        const value = status[of];
        return [{ node }, value === null ? null : value / scale];
      }),
    );
  const thresholds = view.thresholds();
  for (const { help, name, of, scale, unit } of FAMILIES)
    out.family(
      `edge_health_${name}_threshold_${unit}`,
      'gauge',
      `${help}: threshold at which this machine raises an alert of the severity.`,
      [
        [{ severity: 'WARNING' }, thresholds[of].warning / scale],
        [{ severity: 'CRITICAL' }, thresholds[of].critical / scale],
      ],
    );
  out.family(
    'edge_health_status',
    'gauge',
    'Health status of a node: 1 for the current status, otherwise 0.',
    current.flatMap(({ node, status }) =>
      STATUSES.map((name) => [{ node, status: name }, Number((status?.status ?? 'UNKNOWN') === name)] as const),
    ),
  );
  out.family(
    'edge_health_last_sample_timestamp_seconds',
    'gauge',
    'Time of the last sample of a node.',
    current.map(({ node, status }) => [{ node }, status === null ? null : Date.parse(status.timestamp) / 1000]),
  );
  const perNode = (name: string, help: string, is: (node: StatusDocument['nodes'][number]) => boolean): void =>
    out.family(
      `edge_health_node_${name}`,
      'gauge',
      help,
      nodes.map((node) => [{ node: node.node_name }, Number(is(node))]),
    );
  perNode('local', 'Whether this service takes the samples of a node; 0: a remote node.', ({ local }) => local);
  perNode('stale', 'Whether a node is stale: no status received within the timeout.', ({ stale }) => stale);
  openAlerts(out, view);
}

function openAlerts(out: Exposition, view: ServiceView): void {
  const counts = new Map(view.nodes().map((node) => [node, { WARNING: 0, ERROR: 0, CRITICAL: 0 }]));
  for (const { alert_id, severity } of view.openAlerts()) {
    const node = nodeOfAlertId(alert_id);
    const count = counts.get(node) ?? { WARNING: 0, ERROR: 0, CRITICAL: 0 };
    count[severity] += 1;
    counts.set(node, count);
  }
  out.family(
    'edge_health_node_open_alerts',
    'gauge',
    'Open alerts of a node.',
    [...counts].flatMap(([node, count]) => SEVERITIES.map((severity) => [{ node, severity }, count[severity]] as const)),
  );
}
