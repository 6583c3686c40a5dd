import { type RestClient, ServiceRefused, serviceOf } from '../client/rest.ts';
import { localService, notRunningHint } from '../client/running-service.ts';
import { configPath, isUnreadable, loadConfig } from '../config/load.ts';
import { DEFAULT_CONFIG } from '../config/schema.ts';
import { type Alert, nodeOfAlertId } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { markLookAlike } from '../core/look-alike.ts';
import { METRICS } from '../core/metrics.ts';
import { alignedRows, printJson, printLines, printProblem } from '../core/platform/output.ts';
import { permissionProblem } from '../core/platform/permission.ts';
import { formatDuration } from '../core/time/duration.ts';
import { alertListSchema, healthStatusSchema, type StatusDocument, statusDocumentSchema } from '../http/api/schema.ts';
import type { Command } from './command.ts';

/** Nagios-compatible exit codes of `status`. */
const EXIT = { OK: 0, WARNING: 1, ERROR: 2, CRITICAL: 2, UNKNOWN: 3 } as const;

export const status: Command = {
  summary: 'Show the state of the running service and of this machine',
  usage: 'status [--url URL] [--config FILE] [--json | --ports]',
  help: `  --url URL       address of the service, which receives the token; default: the service of this machine that runs
                  with the configuration, over its Unix socket
  --config FILE   configuration of the service, with its port and token
  --json          print /status, /health and /alerts as one JSON document
  --ports         print the open ports and sockets of the service, and from where they can be reached

Exit codes (Nagios-compatible): 0 OK, 1 WARNING, 2 ERROR or CRITICAL, 3 UNKNOWN or not reachable, 64 wrong usage.`,
  options: { url: { type: 'string' }, config: { type: 'string' }, json: { type: 'boolean' }, ports: { type: 'boolean' } },
  positionals: 0,
  run: async ({ options }) => {
    const file = configPath((options['config'] as string | undefined) ?? null);
    const loaded = loadConfig(file);
    const url = (options['url'] as string | undefined) ?? null;
    let service: RestClient | null = null;
    let answers: Answers;
    try {
      const config = loaded.ok ? loaded.config : DEFAULT_CONFIG;
      service = serviceOf(config.rest, url ?? localService(file, process.env));
      answers = await readAnswers(service);
    } catch (error) {
      const { cause: inner, message } = error as Error & { cause?: { code?: string; message?: string } };
      const cause = inner?.code ?? inner?.message ?? message;
      const base = service?.base ?? url;
      const isRefused = error instanceof ServiceRefused && error.code === 'unauthorized' && isUnreadable(loaded);
      const denied = isRefused ? `permission denied: ${file}; run: sudo edge-health status` : permissionProblem(error, 'status');
      if (options['json']) printJson({ reachable: false, url: base, error: denied ?? cause });
      else if (denied !== null) printProblem(`edge-health: the service requires a token: ${denied}`);
      else if (!loaded.ok) printProblem(`edge-health: ${cause}; the configuration has errors: edge-health check-config`);
      else if (error instanceof ServiceRefused) printProblem(`edge-health: ${cause}`);
      else if (base === null) printProblem(`edge-health: rest.token_file: ${cause}`);
      else
        printProblem(
          `edge-health: ${inner ? `no response from the service at ${base}: ${cause}` : cause}${url === null ? notRunningHint() : ''}`,
        );
      return EXIT.UNKNOWN;
    }
    const { base } = service;
    if (options['json']) printJson({ reachable: true, url: base, ...answers }, 2);
    else printLines(options['ports'] ? portsPage(answers.status.ports) : page(answers, base));
    return EXIT[answers.status.status];
  },
};

interface Answers {
  readonly status: StatusDocument;
  /** Null before the first sample. */
  readonly health: HealthStatus | null;
  readonly alerts: readonly Alert[];
}

async function readAnswers(service: RestClient): Promise<Answers> {
  const [status, health, alerts] = await Promise.all([
    service.json<StatusDocument>('/status', { schema: statusDocumentSchema }),
    service.json<HealthStatus>('/health', { schema: healthStatusSchema }).catch((error: Error) => {
      if (error instanceof ServiceRefused && error.code === 'no_sample_yet') return null;
      throw error;
    }),
    service.json<{ data: Alert[] }>('/alerts?resolved=false', { schema: alertListSchema }),
  ]);
  return { status, health, alerts: alerts.data };
}

/** Lines of the table of open ports. */
function portsPage(ports: StatusDocument['ports']): string[] {
  const rows = ports.map(({ address, port, protocol, purpose }) => {
    const isLoopback = address.startsWith('127.') || address === '::1';
    const hosts = isLoopback ? 'this host' : address.startsWith('239.') ? 'the local network' : 'every host';
    const reach = protocol !== 'unix' ? hosts : address.endsWith('/control.sock') ? "the service's user and group" : 'this host';
    const host = address.includes(':') && port !== null ? `[${address}]` : address;
    return [protocol, port === null ? host : `${host}:${port}`, reach, purpose];
  });
  return alignedRows([['PROTOCOL', 'ADDRESS', 'REACHABLE BY', 'PURPOSE'], ...rows]);
}

const LABELS = { cpu_percent: 'CPU', memory_percent: 'Memory', disk_percent: 'Disk', temperature: 'Temperature' } as const;

function shutdownLines({
  action,
  ended,
  enabled,
  message,
  problem,
  reason,
  requested_by,
  seconds_left,
  state,
}: StatusDocument['shutdown']): string[] {
  const lines: string[] = [];
  const who = `${reason}, requested by ${requested_by}`;
  if (state === 'in_progress') lines.push(`  Shutdown     IN PROGRESS, ${Math.ceil(seconds_left ?? 0)} s left: ${who}: ${message}`);
  else if (state !== 'none') lines.push(`  Shutdown     the last one (${who}), ${ended}: ${message}`);
  if (enabled && problem !== null) lines.push(`  Shutdown     not possible: ${problem}`);
  else if (enabled && state === 'none') lines.push(`  Shutdown     none; a request would perform: ${action}`);
  return lines;
}

/** Lines of the status page: the status first, then the four metrics, the alerts, the remote nodes and the service itself. */
function page({ status: document, health, alerts }: Answers, base: string): string[] {
  const { host, publish, storage, power } = document;
  const local = document.nodes.find((node) => node.local)?.node_name;
  const machine = host ? `${host.hostname} (${[host.model, host.os].filter((part) => part !== 'unknown').join(', ')})` : 'this machine';
  const lines = [`${document.status}  ${local === undefined ? '' : `${local} on `}${machine}`, ''];
  for (const metric of METRICS) {
    const value = health?.[metric] ?? null;
    const unit = metric === 'temperature' ? '°C' : '%';
    lines.push(`  ${LABELS[metric].padEnd(12)} ${value === null ? 'unavailable' : `${value.toFixed(1).padStart(6)} ${unit}`}`);
  }
  const { memory } = document;
  if (memory && memory.huge_pages_bytes > 0) {
    const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;
    lines.push(
      `               ${gigabytes(memory.huge_pages_bytes)} of ${gigabytes(memory.total_bytes)} are reserved as huge pages, ${gigabytes(memory.huge_pages_free_bytes)} of them unused`,
    );
  }
  lines.push('', alerts.length === 0 ? '  No open alerts' : '  Open alerts:');
  for (const { alert_id, metric, severity, threshold, timestamp, value } of alerts) {
    const node = nodeOfAlertId(alert_id);
    const whose = node === local ? '' : `${markLookAlike(node)}: `;
    lines.push(`    ${severity}  ${whose}${metric} ${value} (threshold ${threshold}) at ${timestamp}`);
  }
  const others = document.nodes.filter((node) => !node.local);
  if (others.length > 0) lines.push('', '  Other nodes:');
  for (const { node_name, status, age_seconds, conflict_addresses, left } of others) {
    const seen =
      left !== null ? `left at ${left}` : age_seconds === null ? 'no data since the start' : `last seen ${formatDuration(age_seconds)} ago`;
    const conflict = conflict_addresses.length === 0 ? '' : `, published by several machines: ${conflict_addresses.join(', ')}`;
    lines.push(`    ${status}  ${markLookAlike(node_name)}, ${seen}${conflict}`);
  }
  const rate = publish.measured_hertz === null ? 'not measured yet' : `${publish.measured_hertz} Hz of ${publish.configured_hertz} Hz`;
  lines.push(
    '',
    `  Uptime       ${formatDuration(document.uptime_seconds)}, version ${document.version}, ${base}`,
    `  Published    ${rate}, ${publish.missed} of ${publish.samples + publish.missed} samples missed`,
    `  Storage      ${storage.state}, ${(storage.size_bytes / 1e6).toFixed(1)} of ${(storage.max_bytes / 1e6).toFixed(0)} MB${storage.error ? `: ${storage.error}` : ''}`,
    ...(document.rest.problem === null ? [] : [`  REST API     not listening: ${document.rest.problem}`]),
    `  ROS 2        ${document.ros.transport} (${document.ros.reason})`,
  );
  if (document.ros.problem && document.ros.problem !== document.ros.reason) lines.push(`               ${document.ros.problem}`);
  if (document.ros.note) lines.push(`               ${document.ros.note}`);
  const { observers, observing } = document.ros;
  if (!observing && observers.length > 0) lines.push(`               other nodes are observed by ${observers.join(', ')}`);
  lines.push(...shutdownLines(document.shutdown));
  for (const key of document.config.restart_needed) lines.push(`  Restart      ${key}`);
  if (power.undervoltage) lines.push('  Power        UNDERVOLTAGE: the supply is too weak');
  else if (power.undervoltage_events)
    lines.push(
      `  Power        undervoltage ${power.undervoltage_events} times since the service started, last at ${power.last_undervoltage}`,
    );
  for (const path of storage.quarantined) lines.push(`  Quarantined  ${path}`);
  return lines;
}
