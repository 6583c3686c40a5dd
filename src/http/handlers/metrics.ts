import { SEVERITIES } from '../../core/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Metric } from '../../core/metrics.ts';
import { STATUSES } from '../../core/thresholds.ts';
import type { StatusDocument } from '../api/schema.ts';
import { type Handler, sendBody } from '../context.ts';
import { Exposition } from '../exposition.ts';
import type { ServiceView } from '../view.ts';

/** GET /metrics: what a Prometheus dashboard of many machines needs, with base units and Prometheus' naming. */
export function metrics(restCounts: () => StatusDocument['rest']): Handler {
  return async (context) => {
    const text = render(await context.view.status(), restCounts(), context.view);
    sendBody(context, Exposition.contentType, text);
  };
}

type Document = Omit<StatusDocument, 'rest'>;

function render(status: Document, rest: StatusDocument['rest'], view: ServiceView): string {
  const out = new Exposition();
  const gauge = (name: string, help: string, value: number | null): void => out.family(`edge_health_${name}`, 'gauge', help, [[{}, value]]);
  const counter = (name: string, help: string, value: number | null): void =>
    out.family(`edge_health_${name}`, 'counter', help, [[{}, value]]);
  nodes(out, view);
  out.family(
    'edge_health_node_silent',
    'gauge',
    'Whether nothing has come from a node for too long.',
    status.nodes.map(({ node_name, silent }) => [{ node: node_name }, Number(silent)]),
  );
  out.family(
    'edge_health_open_alerts',
    'gauge',
    'Open alerts.',
    SEVERITIES.map((severity) => [{ severity }, status.open_alerts[severity]]),
  );

  const { gathered, publish, storage, power, collectors } = status;
  counter('samples_total', 'Samples taken.', publish.samples);
  counter('missed_samples_total', 'Slots of the sampling grid that were missed.', publish.missed);
  gauge('publish_frequency_hertz', 'Configured publish frequency.', publish.configured_hertz);
  gauge('publish_rate_hertz', 'Publish rate over the last minute.', publish.measured_hertz);
  const perCollector = (name: string, help: string, value: (collector: Document['collectors'][number]) => number): void =>
    out.family(
      `edge_health_${name}`,
      'gauge',
      help,
      collectors.map((collector) => [{ metric: collector.metric }, value(collector)]),
    );
  perCollector('collector_success', 'Whether a metric can be read.', ({ available }) => Number(available));
  perCollector('collector_duration_seconds', 'How long the last reading took.', ({ duration_seconds }) => duration_seconds);
  counter('gathered_statuses_total', 'Health statuses of other nodes that were taken.', gathered?.statuses ?? null);
  counter(
    'gathered_refused_total',
    'Health statuses and alerts of other nodes beyond the limits.',
    gathered && gathered.refused + gathered.alerts_refused,
  );
  gauge('undervoltage', 'Whether the power supply is too weak.', power.undervoltage === null ? null : Number(power.undervoltage));
  counter('cpu_throttle_events_total', 'Times a core was slowed for its heat.', power.throttle_events);

  gauge('storage_up', 'Whether the database can be written.', Number(storage.state === 'ok'));
  gauge('storage_size_bytes', 'Size of the database.', storage.size_bytes);
  gauge('storage_pending_samples', 'Samples not yet in the database.', storage.samples_pending);
  counter('storage_lost_samples_total', 'Samples given up because the database could not be written for too long.', storage.samples_lost);
  gauge('http_connections', 'Open connections.', rest.connections);
  gauge('event_streams', 'Readers of /events.', rest.event_streams);
  gauge('start_time_seconds', 'When the service started.', Date.parse(status.started) / 1000);
  const { user, system } = process.cpuUsage();
  counter('process_cpu_seconds_total', 'CPU time of the service.', (user + system) / 1e6);
  gauge('process_resident_memory_bytes', 'Resident memory of the service.', process.memoryUsage.rss());
  out.family('edge_health_build_info', 'gauge', 'Version of the service.', [[{ version: status.version }, 1]]);
  return out.toString();
}

function nodes(out: Exposition, view: ServiceView): void {
  const current = view.nodes().map((node) => ({ node, status: view.current(node) }));
  // An unavailable or stale metric has no series: a gap in the chart, not a zero.
  const fresh = current.filter(
    (entry): entry is { node: string; status: HealthStatus } => (entry.status?.status ?? 'UNKNOWN') !== 'UNKNOWN',
  );
  const metric = (name: string, help: string, of: Metric, scale: number): void =>
    out.family(
      name,
      'gauge',
      help,
      fresh.map(({ node, status }) => {
        const value = status[of];
        return [{ node }, value === null ? null : value / scale];
      }),
    );
  metric('edge_health_cpu_usage_ratio', 'CPU usage from 0 to 1.', 'cpu_percent', 100);
  metric('edge_health_memory_usage_ratio', 'Memory usage from 0 to 1.', 'memory_percent', 100);
  metric('edge_health_disk_usage_ratio', 'Usage of the fullest configured file system from 0 to 1.', 'disk_percent', 100);
  metric('edge_health_temperature_celsius', 'CPU or SoC temperature.', 'temperature', 1);
  out.family(
    'edge_health_status',
    'gauge',
    'Health status of a node: 1 for the one it has.',
    current.flatMap(({ node, status }) =>
      STATUSES.map((name) => [{ node, status: name }, Number((status?.status ?? 'UNKNOWN') === name)] as const),
    ),
  );
  out.family(
    'edge_health_last_sample_timestamp_seconds',
    'gauge',
    'When the node was last measured.',
    current.map(({ node, status }) => [{ node }, status === null ? null : Date.parse(status.timestamp) / 1000]),
  );
}
