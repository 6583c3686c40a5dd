import { SEVERITIES } from '../../core/alerts/alert.ts';
import type { StatusDocument } from '../api/schema.ts';
import { type Handler, sendBody } from '../context.ts';
import { Exposition } from '../exposition.ts';
import { Rendered } from '../rendered.ts';
import type { ServiceView } from '../view.ts';
import { jobMetrics } from './metrics-of-jobs.ts';
import { nodeMetrics } from './metrics-of-nodes.ts';

/** GET /metrics: metrics for Prometheus dashboards of many machines, with base units and Prometheus' naming. */
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

  const { remote, publish, storage, power, collectors } = status;
  counter('samples_total', 'Samples taken.', publish.samples);
  counter('missed_samples_total', 'Samples missed.', publish.missed);
  gauge('publish_frequency_hertz', 'Configured publish frequency.', publish.configured_hertz);
  gauge('publish_rate_hertz', 'Publish rate over the last minute.', publish.measured_hertz);
  const perCollector = (name: string, help: string, value: (collector: Document['collectors'][number]) => number): void =>
    out.family(
      `edge_health_${name}`,
      'gauge',
      help,
      collectors.map((collector) => [{ metric: collector.metric }, value(collector)]),
    );
  perCollector('collector_success', 'Whether the last reading of a metric succeeded.', ({ available }) => Number(available));
  perCollector('collector_duration_seconds', 'Duration of the last reading of a metric.', ({ duration_seconds }) => duration_seconds);
  counter('remote_statuses_total', 'Health statuses accepted from remote nodes.', remote?.statuses ?? null);
  counter(
    'remote_refused_total',
    'Health statuses and alerts of remote nodes refused because of the limits.',
    remote && remote.refused + remote.alerts_refused,
  );
  gauge('undervoltage', 'Whether the power supply is too weak.', power.undervoltage === null ? null : Number(power.undervoltage));
  counter('cpu_throttle_events_total', 'Thermal throttling events of the CPU since boot.', power.throttle_events);

  gauge('storage_up', 'Whether the database is writable.', Number(storage.state === 'ok'));
  gauge('storage_size_bytes', 'Size of the database.', storage.size_bytes);
  gauge('storage_max_bytes', 'Maximum size of the database.', storage.max_bytes);
  gauge('storage_pending_samples', 'Samples not yet in the database.', storage.samples_pending);
  counter('storage_lost_samples_total', 'Samples dropped because the database was not writable for too long.', storage.samples_lost);
  jobMetrics(out, status.ops);
  gauge('http_connections', 'Open connections.', rest.connections);
  gauge('event_streams', 'Open streams of /events.', rest.event_streams);
  gauge('ros_peers', 'Other participants or nodes on the ROS 2 graph.', status.ros.peers);
  const { published } = status.ros;
  out.family('edge_health_ros_published_messages_total', 'counter', 'Messages published on the ROS 2 graph.', [
    [{ topic: 'health_status' }, published?.health_status ?? null],
    [{ topic: 'alerts' }, published?.alerts ?? null],
  ]);
  gauge('shutdown_in_progress', 'Whether a safe shutdown is in progress.', Number(status.shutdown.state === 'in_progress'));
  gauge('config_reload_success', 'Whether the last reload of the configuration succeeded.', Number(status.config.problem === null));
  gauge('start_time_seconds', 'Start time of the service.', Date.parse(status.started) / 1000);
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
