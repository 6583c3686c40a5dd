import { nodeOfAlertId, SEVERITIES, STATUSES } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Metric } from '../../core/metrics.ts';
import type { OpsDocument } from '../api/ops-schema.ts';
import type { StatusDocument } from '../api/schema.ts';
import { type Handler, sendBody } from '../context.ts';
import { Exposition } from '../exposition.ts';
import { Rendered } from '../rendered.ts';
import type { ServiceView } from '../view.ts';

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

type Job = OpsDocument['jobs'][number];

const OUTCOMES = ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'] as const;

const secondsOf = (instant: string | null | undefined): number | null => (instant ? Date.parse(instant) / 1000 : null);

/** Metrics of the maintenance scheduler and, with the label `ops_job`, of its jobs; none if no scheduler has ever run. */
export function jobMetrics(out: Exposition, { jobs, scheduler }: OpsDocument): void {
  if (scheduler.state === 'never') return;
  out.family('edge_health_ops_scheduler_up', 'gauge', 'Whether the maintenance scheduler is running.', [
    [{}, Number(scheduler.state === 'running')],
  ]);
  const family = (type: 'gauge' | 'counter') => (name: string, help: string, value: (job: Job) => number | null) =>
    out.family(
      `edge_health_ops_job_${name}`,
      type,
      help,
      jobs.map((job) => [{ ops_job: job.name }, value(job)]),
    );
  const gauge = family('gauge');
  const counter = family('counter');
  gauge('last_run_timestamp_seconds', 'Start time of the last completed run of a job.', ({ last }) => secondsOf(last?.started));
  gauge('last_success_timestamp_seconds', 'Start time of the last run that ended with OK or WARNING.', (job) =>
    secondsOf(job.last_success),
  );
  gauge('last_duration_seconds', 'Duration of the last completed run of a job.', ({ last }) => last?.duration_seconds ?? null);
  gauge('next_run_timestamp_seconds', 'Time of the next scheduled run of a job.', ({ next }) => secondsOf(next));
  out.family(
    'edge_health_ops_job_last_status',
    'gauge',
    'Status of the last completed run of a job: 1 for the current status, otherwise 0.',
    jobs.flatMap(({ last, name }) =>
      last ? OUTCOMES.map((status) => [{ ops_job: name, status }, Number(last.status === status)] as const) : [],
    ),
  );
  counter('runs_total', 'Completed runs of a job.', ({ runs }) => runs);
  counter('failures_total', 'Runs of a job that ended with CRITICAL or UNKNOWN.', ({ failures }) => failures);
  counter('missed_runs_total', 'Scheduled runs of a job that could not start.', ({ missed }) => missed);
  counter('overlaps_total', 'Scheduled runs of a job skipped because its previous run was still in progress.', ({ overlaps }) => overlaps);
}

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
