import { nodeOfAlertId, SEVERITIES, STATUSES } from '../../core/alerts/alert.ts';
import { STALE_AFTER_PERIODS } from '../../core/health-status.ts';
import type { Metric } from '../../core/metrics.ts';
import type { OpsDocument } from '../api/ops-schema.ts';
import type { StatusDocument } from '../api/schema.ts';
import { type Handler, sendBody } from '../context.ts';
import { RenderCache } from '../render-cache.ts';
import type { ServiceView } from '../view.ts';

/** GET /metrics: metrics for Prometheus dashboards of many machines, with base units and Prometheus' naming. */
export function metrics(view: ServiceView, restCounts: () => StatusDocument['rest']): Handler {
  const rendered = new RenderCache(async () => render(await view.status(), restCounts(), view));
  return async (context) => sendBody(context, CONTENT_TYPE, await rendered.get());
}

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** By name, or rendered already. */
type Labels = Readonly<Record<string, string>> | string;
/** The series of a metric by their labels, or the value of its only series, which has no labels. Null: unavailable. */
type Series = number | null | readonly (readonly [Labels, number | null])[];

function escaped(text: string): string {
  return !/[\\\n"]/.test(text) ? text : text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

function labelText(labels: Labels): string {
  if (typeof labels === 'string') return labels;
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',');
}

/** Rendered once per node and list, because with hundreds of nodes nearly all series have this label. */
function nodeLabel(node: string): string {
  return labelText({ node });
}

/**
 * Renders the Prometheus text format, version 0.0.4. prom-client is not used because it takes 6 MB of resident memory after the first
 * scrape. promtool checks the output in the tests.
 */
export class Exposition {
  #text = '';

  /** Adds a metric. `name` is without the prefix edge_health_. Null values and metrics without any series are omitted. */
  gauge(name: string, help: string, series: Series): void {
    this.#add('gauge', name, help, series);
  }

  counter(name: string, help: string, series: Series): void {
    this.#add('counter', name, help, series);
  }

  #add(type: 'gauge' | 'counter', name: string, help: string, series: Series): void {
    const list = typeof series === 'number' || series === null ? ([[{}, series]] as const) : series;
    const known = list.filter(([, value]) => value !== null);
    if (known.length === 0) return;
    this.#text += `# HELP edge_health_${name} ${help}\n# TYPE edge_health_${name} ${type}\n`;
    for (const [labels, value] of known) {
      const text = labelText(labels);
      this.#text += `edge_health_${name}${text === '' ? '' : `{${text}}`} ${value}\n`;
    }
  }

  toString(): string {
    return this.#text;
  }
}

function render(status: Omit<StatusDocument, 'rest'>, rest: StatusDocument['rest'], view: ServiceView): string {
  const { collectors, host, memory, power, process: own, publish, remote, ros, storage, version } = status;
  const out = new Exposition();
  nodeMetrics(out, status.nodes, view);
  out.gauge(
    'open_alerts',
    'Open alerts.',
    SEVERITIES.map((severity) => [{ severity }, status.open_alerts[severity]]),
  );

  out.counter('samples_total', 'Samples taken.', publish.samples);
  out.counter('missed_samples_total', 'Samples missed.', publish.missed);
  out.gauge('publish_frequency_hertz', 'Configured publish frequency.', publish.configured_hertz);
  out.gauge('publish_rate_hertz', 'Publish rate over the last minute.', publish.measured_hertz);
  out.gauge(
    'collector_success',
    'Whether the last reading of a metric succeeded.',
    collectors.map(({ available, metric }) => [{ metric }, Number(available)]),
  );
  out.gauge(
    'collector_duration_seconds',
    'Duration of the last reading of a metric.',
    collectors.map(({ duration_seconds, metric }) => [{ metric }, duration_seconds]),
  );
  out.counter('remote_statuses_total', 'Health statuses accepted from remote nodes.', remote?.statuses ?? null);
  out.counter(
    'remote_refused_total',
    'Health statuses and alerts of remote nodes refused because of the limits.',
    remote && remote.refused + remote.alerts_refused,
  );
  out.gauge('memory_huge_pages_bytes', 'Memory reserved as huge pages.', memory?.huge_pages_bytes ?? null);
  out.gauge('memory_zfs_reclaimable_bytes', 'Part of the ZFS cache that counts as available.', memory?.zfs_reclaimable_bytes ?? null);
  out.gauge('undervoltage', 'Whether the power supply is too weak.', power.undervoltage === null ? null : Number(power.undervoltage));
  out.counter('undervoltage_events_total', 'Times that the supply fell below 4.63 V.', power.undervoltage_events);
  out.counter('cpu_throttle_events_total', 'Thermal throttling events of the CPU.', power.throttle_events);

  out.gauge('storage_up', 'Whether the database is writable.', Number(storage.state === 'ok'));
  out.gauge('storage_size_bytes', 'Size of the database.', storage.size_bytes);
  out.gauge('storage_max_bytes', 'Maximum size of the database.', storage.max_bytes);
  out.gauge('storage_pending_samples', 'Samples not yet in the database.', storage.samples_pending);
  out.counter(
    'storage_lost_samples_total',
    'Samples dropped because neither the database nor the spool could hold them.',
    storage.samples_lost,
  );
  jobMetrics(out, status.ops);
  out.gauge('http_connections', 'Open connections.', rest.connections);
  out.gauge('event_streams', 'Open streams of /events.', rest.event_streams);
  out.gauge('ros_peers', 'Other participants or nodes on the ROS 2 graph.', ros.peers);
  out.counter('ros_published_messages_total', 'Messages published on the ROS 2 graph.', [
    [{ topic: 'health_status' }, ros.published?.health_status ?? null],
    [{ topic: 'alerts' }, ros.published?.alerts ?? null],
  ]);
  out.gauge('shutdown_in_progress', 'Whether a safe shutdown is in progress.', Number(status.shutdown.state === 'in_progress'));
  out.gauge('config_reload_success', 'Whether the last reload of the configuration succeeded.', Number(status.config.problem === null));
  out.gauge('start_time_seconds', 'Start time of the service.', Date.parse(status.started) / 1000);
  out.counter('process_cpu_seconds_total', 'CPU time of the service.', own.cpu_seconds);
  out.gauge('process_resident_memory_bytes', 'Resident memory of the service.', own.resident_memory_bytes);
  out.gauge('process_open_fds', 'Open files and sockets of the service.', own.open_files);
  out.gauge('build_info', 'Versions of the service and of its runtime.', [[{ version, node_version: process.versions.node }, 1]]);
  if (host) {
    const { architecture, hostname, kernel, model, os } = host;
    out.gauge('host_info', 'The machine that the service runs on.', [[{ hostname, model, os, kernel, architecture }, 1]]);
  }
  return out.toString();
}

const OUTCOMES = ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'] as const;

const secondsOf = (instant: string | null | undefined): number | null => (instant ? Date.parse(instant) / 1000 : null);

/** Metrics of the maintenance scheduler and, with the label `ops_job`, of its jobs; none if no scheduler has ever run. */
function jobMetrics(out: Exposition, { jobs, scheduler }: OpsDocument): void {
  if (scheduler.state === 'never') return;
  out.gauge('ops_scheduler_up', 'Whether the maintenance scheduler is running.', Number(scheduler.state === 'running'));
  const perJob =
    (type: 'gauge' | 'counter') =>
    (name: string, help: string, value: (job: OpsDocument['jobs'][number]) => number | null): void => {
      const series = jobs.map((job) => [{ ops_job: job.name }, value(job)] as const);
      out[type](`ops_job_${name}`, help, series);
    };
  const gauge = perJob('gauge');
  const counter = perJob('counter');
  gauge('last_run_timestamp_seconds', 'Start time of the last completed run of a job.', ({ last }) => secondsOf(last?.started));
  gauge('last_success_timestamp_seconds', 'Start time of the last run that did not fail.', (job) => secondsOf(job.last_success));
  gauge('last_duration_seconds', 'Duration of the last completed run of a job.', ({ last }) => last?.duration_seconds ?? null);
  gauge('next_run_timestamp_seconds', 'Time of the next scheduled run of a job.', ({ next }) => secondsOf(next));
  out.gauge(
    'ops_job_last_status',
    'Status of the last completed run of a job: 1 for the current status, otherwise 0.',
    jobs.flatMap(({ last, name }) =>
      last ? OUTCOMES.map((status) => [{ ops_job: name, status }, Number(last.status === status)] as const) : [],
    ),
  );
  gauge(
    'last_failed',
    'Whether the last completed run of a job failed; 0 after a run by hand.',
    ({ last }) => last && Number(last.failed && last.trigger !== 'manual'),
  );
  counter('runs_total', 'Completed runs of a job.', ({ runs }) => runs);
  counter('failures_total', 'Completed runs of a job that failed.', ({ failures }) => failures);
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
function nodeMetrics(out: Exposition, nodes: StatusDocument['nodes'], view: ServiceView): void {
  const current = view.nodes().map((node) => ({ node, label: nodeLabel(node), status: view.current(node) }));
  const isPast = ({ age_seconds, period_seconds }: (typeof nodes)[number]): boolean =>
    age_seconds === null || age_seconds > STALE_AFTER_PERIODS * (period_seconds ?? 0);
  const past = new Set(nodes.filter(isPast).map(({ node_name }) => node_name));
  // An unavailable or stale metric has no series, so that a chart shows a gap and not a zero.
  const fresh = current.flatMap(({ label, node, status }) => (status === null || past.has(node) ? [] : [{ label, status }]));
  for (const { help, name, of, scale, unit } of FAMILIES)
    out.gauge(
      `${name}_${unit}`,
      `${help}.`,
      fresh.map(({ label, status }) => {
        const value = status[of];
        return [label, value === null ? null : value / scale];
      }),
    );
  const thresholds = view.thresholds();
  for (const { help, name, of, scale, unit } of FAMILIES) {
    const threshold = thresholds[of];
    out.gauge(`${name}_threshold_${unit}`, `${help}: threshold at which this machine raises an alert of the severity.`, [
      [{ severity: 'WARNING' }, threshold && threshold.warning / scale],
      [{ severity: 'CRITICAL' }, threshold && threshold.critical / scale],
    ]);
  }
  out.gauge(
    'status',
    'Health status of a node: 1 for the current status, otherwise 0.',
    current.flatMap(({ label, status }) =>
      STATUSES.map((name) => [`${label},status="${name}"`, Number((status?.status ?? 'UNKNOWN') === name)] as const),
    ),
  );
  out.gauge(
    'last_sample_timestamp_seconds',
    'Time of the last sample of a node.',
    current.map(({ label, status }) => [label, status === null ? null : Date.parse(status.timestamp) / 1000]),
  );
  const listed = nodes.map(({ local, node_name, stale }) => ({ label: nodeLabel(node_name), local, stale }));
  out.gauge(
    'node_local',
    'Whether this service takes the samples of a node; 0: a remote node.',
    listed.map(({ label, local }) => [label, Number(local)]),
  );
  out.gauge(
    'node_stale',
    'Whether a node is stale: no status received within the timeout.',
    listed.map(({ label, stale }) => [label, Number(stale)]),
  );
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
  out.gauge(
    'node_open_alerts',
    'Open alerts of a node.',
    [...counts].flatMap(([node, count]) => {
      const label = nodeLabel(node);
      return SEVERITIES.map((severity) => [`${label},severity="${severity}"`, count[severity]] as const);
    }),
  );
}
