import type { Registry } from 'prom-client';
import { SEVERITIES } from '../../core/alert.ts';
import { STATUSES } from '../../core/thresholds.ts';
import type { StatusDocument } from '../api/schema.ts';
import { type Handler, sendBody } from '../context.ts';
import type { ServiceView } from '../view.ts';

/** GET /metrics: what a Prometheus dashboard of many machines needs, with base units and Prometheus' naming. */
export function metrics(restCounts: () => StatusDocument['rest']): Handler {
  return async (context) => {
    // Loaded by the first scrape: a machine that nobody scrapes does not pay for it.
    const prometheus = await import('prom-client');
    const registry = new prometheus.Registry();
    await fill(registry, prometheus, context.view, restCounts());
    sendBody(context, registry.contentType, await registry.metrics());
  };
}

type Prometheus = typeof import('prom-client');

async function fill(registry: Registry, { Counter, Gauge }: Prometheus, view: ServiceView, rest: StatusDocument['rest']): Promise<void> {
  const gauge = (name: string, help: string, labels: string[] = []) => new Gauge({ name: `edge_health_${name}`, help, labelNames: labels, registers: [registry] });
  const counter = (name: string, help: string, value: number): void => {
    new Counter({ name: `edge_health_${name}`, help, registers: [registry] }).inc(value);
  };
  const status = await view.status();

  const values = {
    cpu_percent: gauge('cpu_usage_ratio', 'CPU usage from 0 to 1.', ['node']),
    memory_percent: gauge('memory_usage_ratio', 'Memory usage from 0 to 1.', ['node']),
    disk_percent: gauge('disk_usage_ratio', 'Usage of the fullest configured file system from 0 to 1.', ['node']),
    temperature: gauge('temperature_celsius', 'CPU or SoC temperature.', ['node']),
  };
  const statusGauge = gauge('status', 'Health status of a node: 1 for the one it has.', ['node', 'status']);
  const lastSample = gauge('last_sample_timestamp_seconds', 'When the node was last measured.', ['node']);
  for (const node of view.nodes()) {
    const current = view.current(node);
    for (const name of STATUSES) statusGauge.set({ node, status: name }, (current?.status ?? 'UNKNOWN') === name ? 1 : 0);
    if (!current) continue;
    lastSample.set({ node }, Date.parse(current.timestamp) / 1000);
    // An unavailable or stale metric has no series: a gap in the chart, not a zero.
    if (current.status === 'UNKNOWN') continue;
    for (const [metric, series] of Object.entries(values) as [keyof typeof values, (typeof values)['temperature']][]) {
      const value = current[metric];
      if (value !== null) series.set({ node }, metric === 'temperature' ? value : value / 100);
    }
  }
  const open = gauge('open_alerts', 'Open alerts.', ['severity']);
  for (const severity of SEVERITIES) open.set({ severity }, status.open_alerts[severity]);

  counter('samples_total', 'Samples taken.', status.publish.samples);
  counter('missed_samples_total', 'Slots of the sampling grid that were missed.', status.publish.missed);
  gauge('publish_frequency_hertz', 'Configured publish frequency.').set(status.publish.configured_hertz);
  if (status.publish.measured_hertz !== null) gauge('publish_rate_hertz', 'Publish rate over the last minute.').set(status.publish.measured_hertz);
  const available = gauge('collector_success', 'Whether a metric can be read.', ['metric']);
  const duration = gauge('collector_duration_seconds', 'How long the last reading took.', ['metric']);
  for (const collector of status.collectors) {
    available.set({ metric: collector.metric }, collector.available ? 1 : 0);
    duration.set({ metric: collector.metric }, collector.duration_seconds);
  }
  if (status.power.undervoltage !== null) gauge('undervoltage', 'Whether the power supply is too weak.').set(status.power.undervoltage ? 1 : 0);
  if (status.power.throttle_events !== null) counter('cpu_throttle_events_total', 'Times a core was slowed for its heat.', status.power.throttle_events);

  gauge('storage_up', 'Whether the database can be written.').set(status.storage.state === 'ok' ? 1 : 0);
  gauge('storage_size_bytes', 'Size of the database.').set(status.storage.size_bytes);
  gauge('storage_pending_samples', 'Samples not yet in the database.').set(status.storage.samples_pending);
  counter('storage_lost_samples_total', 'Samples given up because the database could not be written for too long.', status.storage.samples_lost);
  gauge('http_connections', 'Open connections.').set(rest.connections);
  gauge('event_streams', 'Readers of /events.').set(rest.event_streams);
  gauge('start_time_seconds', 'When the service started.').set(Date.parse(status.started) / 1000);
  counter('process_cpu_seconds_total', 'CPU time of the service.', process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6);
  gauge('process_resident_memory_bytes', 'Resident memory of the service.').set(process.memoryUsage.rss());
  gauge('build_info', 'Version of the service.', ['version']).set({ version: status.version }, 1);
}
