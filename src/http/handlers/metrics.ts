import { SEVERITIES } from '../../core/alert.ts';
import type { StatusDocument } from '../api/schema.ts';
import { type Handler, sendBody } from '../context.ts';
import { Exposition } from '../exposition.ts';
import { Rendered } from '../rendered.ts';
import type { ServiceView } from '../view.ts';
import { jobMetrics } from './metrics-of-jobs.ts';
import { nodeMetrics } from './metrics-of-nodes.ts';

/** GET /metrics: what a Prometheus dashboard of many machines needs, with base units and Prometheus' naming. */
export function metrics(view: ServiceView, restCounts: () => StatusDocument['rest']): Handler {
  const rendered = new Rendered(async () => render(await view.status(), restCounts(), view));
  return async (context) => sendBody(context, Exposition.contentType, await rendered.get());
}

type Document = Omit<StatusDocument, 'rest'>;

function render(status: Document, rest: StatusDocument['rest'], view: ServiceView): string {
  const out = new Exposition();
  const gauge = (name: string, help: string, value: number | null): void => out.family(`edge_health_${name}`, 'gauge', help, [[{}, value]]);
  const counter = (name: string, help: string, value: number | null): void =>
    out.family(`edge_health_${name}`, 'counter', help, [[{}, value]]);
  nodeMetrics(out, status.nodes, view);
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
  gauge('storage_max_bytes', 'Size up to which the database may grow.', storage.max_bytes);
  gauge('storage_pending_samples', 'Samples not yet in the database.', storage.samples_pending);
  counter('storage_lost_samples_total', 'Samples given up because the database could not be written for too long.', storage.samples_lost);
  jobMetrics(out, status.ops);
  gauge('http_connections', 'Open connections.', rest.connections);
  gauge('event_streams', 'Readers of /events.', rest.event_streams);
  gauge('ros_peers', 'Other participants or nodes on the ROS 2 graph.', status.ros.peers);
  const { published } = status.ros;
  out.family('edge_health_ros_published_messages_total', 'counter', 'Messages handed to the ROS 2 graph.', [
    [{ topic: 'health_status' }, published?.health_status ?? null],
    [{ topic: 'alerts' }, published?.alerts ?? null],
  ]);
  gauge('shutdown_in_progress', 'Whether a safe shutdown is under way.', Number(status.shutdown.state === 'in_progress'));
  gauge('config_reload_success', 'Whether the configuration file was taken when it was last read.', Number(status.config.problem === null));
  gauge('start_time_seconds', 'When the service started.', Date.parse(status.started) / 1000);
  counter('process_cpu_seconds_total', 'CPU time of the service.', status.process.cpu_seconds);
  gauge('process_resident_memory_bytes', 'Resident memory of the service.', status.process.resident_memory_bytes);
  gauge('process_open_fds', 'Open files and sockets of the service.', status.process.open_files);
  const { host, version } = status;
  const info = (name: string, help: string, labels: Readonly<Record<string, string>>): void =>
    out.family(`edge_health_${name}_info`, 'gauge', help, [[labels, 1]]);
  info('build', 'Versions of the service and of its runtime.', { version, node_version: process.versions.node });
  if (host) {
    const { architecture, hostname, kernel, model, os } = host;
    info('host', 'The machine that the service runs on.', { hostname, model, os, kernel, architecture });
  }
  return out.toString();
}
