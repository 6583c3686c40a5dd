import { alertListSchema, type StatusDocument, statusDocumentSchema } from '../../src/client/documents.ts';
import { ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { unitOfConfig } from '../../src/client/unit-limits.ts';
import { type Alert, nodeOfAlertId, SEVERITIES, type Severity } from '../../src/core/alerts/alert.ts';
import type { JobContext } from '../lib/job.ts';
import { type Check, type CheckResult, resultsFor, type ServiceAnswer } from './check.ts';
import type { Counters } from './previous-run.ts';
import { installedUnit } from './units.ts';

const TIMEOUT_SECONDS = 6;
/** More than one node can have: four metrics, and whether they and 32 paths can be read. */
const ALERTS_READ = 50;

/** Reads /status and, if alerts are open, those of its own node. Never rejects. */
export async function readService({ rest, signal }: JobContext): Promise<ServiceAnswer> {
  const options = { timeoutSeconds: TIMEOUT_SECONDS, signal };
  const startedMs = performance.now();
  try {
    const status = await rest.json<StatusDocument>('/status', { ...options, schema: statusDocumentSchema });
    const seconds = (performance.now() - startedMs) / 1000;
    const { CRITICAL, ERROR, WARNING } = status.open_alerts;
    if (CRITICAL + ERROR + WARNING === 0) return { kind: 'answer', status, seconds, openAlerts: [] };
    const local = status.nodes.find((node) => node.local)?.node_name ?? '';
    const path = `/alerts?resolved=false&node=${encodeURIComponent(local)}&limit=${ALERTS_READ}`;
    const page = await rest.json<{ data: Alert[] }>(path, { ...options, schema: alertListSchema }).catch(() => null);
    return { kind: 'answer', status, seconds, openAlerts: page?.data ?? null };
  } catch (error) {
    if (error instanceof ServiceRefused) return { kind: 'refused', why: error.message, httpStatus: error.status };
    const { message } = error as Error;
    return { kind: 'unreachable', why: error instanceof ServiceUnreachable ? message : `${rest.base}: ${message}` };
  }
}

const JOURNAL = 'journalctl -u edge-health -n 50';
const RESTART = `${JOURNAL}; systemctl restart edge-health`;

/** `unitActive`: whether systemd reports the service as active; null if it has no such unit. */
export function evaluateNoAnswer(answer: Exclude<ServiceAnswer, { kind: 'answer' }>, unitActive: boolean | null): CheckResult {
  const { critical, unknown } = resultsFor('service');
  if (answer.kind === 'refused' && (answer.httpStatus === 401 || answer.httpStatus === 403))
    return unknown(`a token is required (${answer.why})`, 'set rest.token_file to a file that this user may read');
  if (answer.kind === 'refused') return critical(`its status cannot be read (${answer.why})`, JOURNAL);
  if (unitActive === true) return critical(`its unit is active, but there is no response (${answer.why})`, RESTART);
  const remedy = unitActive === false ? 'see its unit: systemctl status edge-health' : 'start it, or see --config and --url';
  return critical(`no response (${answer.why})`, remedy);
}

const SLOW_SECONDS = 3;

/** Whether the service responds in time and takes samples. */
export function evaluateAnswer(status: StatusDocument, seconds: number, maxAgeSeconds: number): CheckResult {
  const local = status.nodes.find((node) => node.local);
  const age = local?.age_seconds ?? null;
  const { uptime_seconds, version } = status;
  const measured = { answer_milliseconds: Math.round(seconds * 1000), sample_age_seconds: age, version, uptime_seconds };
  const { critical, ok, warning } = resultsFor('service', measured);
  const allowed = `at most ${maxAgeSeconds} s are allowed`;
  if (age === null)
    return uptime_seconds <= maxAgeSeconds
      ? ok('has just started')
      : critical(`it has taken no sample since its start ${Math.round(uptime_seconds)} s ago; ${allowed}`, RESTART);
  if (age > maxAgeSeconds) return critical(`its last sample is ${age.toFixed(1)} s old; ${allowed}`, RESTART);
  if (seconds > SLOW_SECONDS) return warning(`it took ${seconds.toFixed(1)} s to respond`, 'find what loads this machine: top, iotop');
  if (local?.status === 'UNKNOWN') return warning('nothing can be measured', 'edge-health sensors, and collectors in /status');
  return ok(`responded in ${measured.answer_milliseconds} ms, last sample ${age.toFixed(1)} s old`);
}

const ALERTS_NAMED = 3;

/**
 * `openAlerts`: those of this node; null: not known, then all of `open_alerts` count. In a fleet some node nearly always has an alert, which
 * is no fault of this one.
 */
export function evaluateAlerts({ open_alerts: all }: StatusDocument, openAlerts: readonly Alert[] | null): CheckResult {
  const own = (severity: Severity): number => (openAlerts ?? []).filter((alert) => alert.severity === severity).length;
  const counts = openAlerts === null ? all : { CRITICAL: own('CRITICAL'), ERROR: own('ERROR'), WARNING: own('WARNING') };
  const others = all.CRITICAL + all.ERROR + all.WARNING - counts.CRITICAL - counts.ERROR - counts.WARNING;
  const { critical, note, ok, warning } = resultsFor('alerts', { critical: counts.CRITICAL, error: counts.ERROR, warning: counts.WARNING });
  const open = SEVERITIES.filter((severity) => counts[severity] > 0).toReversed();
  const [worst] = open;
  if (worst === undefined) return others > 0 ? note(`${others} open on other nodes`, 'see /alerts or the dashboard') : ok('none open');
  const named = (openAlerts ?? [])
    .filter(({ severity }) => severity === worst)
    .slice(0, ALERTS_NAMED)
    .map(({ alert_id, metric, threshold, value }) => `${nodeOfAlertId(alert_id)} ${metric} ${value} (${threshold} allowed)`);
  const examples = named.length === 0 ? '' : `, such as ${named.join(', ')}`;
  const problem = worst === 'WARNING' ? warning : critical;
  return problem(`${open.map((severity) => `${counts[severity]} ${severity}`).join(', ')} open${examples}`, 'see /alerts or the dashboard');
}

export function evaluateStorage({ remote, started, storage }: StatusDocument, counters: Counters): CheckResult {
  const lost = counters.increase('lost samples', started, storage.samples_lost);
  const notStored = counters.increase('alerts not stored', started, remote?.alerts_not_stored ?? 0);
  const { samples_lost, samples_pending, size_bytes, state } = storage;
  const { critical, ok, warning } = resultsFor('storage', { state, size_bytes, samples_pending, samples_lost });
  const disk = `look at the disk of ${storage.path}`;
  if (state === 'degraded') {
    const [what, ...remedy] = (storage.error ?? 'not writable').split('; ');
    return critical(`degraded since ${storage.since ?? 'its start'}: ${what}`, remedy.join('; ') || `${disk}: df, dmesg`);
  }
  if (lost > 0) return warning(`${lost} samples were lost since the last check`, `${disk}: dmesg`);
  if (notStored > 0) {
    const message = `${notStored} alert changes of other nodes, beyond what may be written in a day, are shown but not stored`;
    return warning(message, 'see in /alerts which nodes they name');
  }
  const [quarantined] = storage.quarantined;
  if (quarantined !== undefined) {
    const remedy = 'restore it with edge-health ops restore_backup if it matters, then remove that file';
    return warning(`a damaged database was quarantined: ${quarantined}`, remedy);
  }
  return ok(`${state}, ${(size_bytes / 1e6).toFixed(1)} of ${Math.round(storage.max_bytes / 1e6)} MB`);
}

/** The rate is measured over a minute and is not meaningful before this time. */
const RATE_AFTER_SECONDS = 120;
const MIN_RATE = 0.99;

export function evaluateRate({ publish, uptime_seconds }: StatusDocument): CheckResult {
  const { configured_hertz, measured_hertz, missed } = publish;
  const { ok, warning } = resultsFor('publish rate', { configured_hertz, measured_hertz, missed });
  if (measured_hertz === null || uptime_seconds < RATE_AFTER_SECONDS) return ok('not measured before two minutes after the start');
  const percent = (100 * measured_hertz) / configured_hertz;
  const message = `${measured_hertz} Hz, ${percent.toFixed(1)} % of ${configured_hertz} Hz`;
  if (measured_hertz >= MIN_RATE * configured_hertz) return ok(message);
  return warning(message, 'find what loads this machine: top; or lower publish_frequency');
}

export function evaluateConfiguration({ config: { file, loaded, problem } }: StatusDocument): CheckResult {
  const { ok, warning } = resultsFor('configuration', { file });
  if (problem === null) return ok(`in force since ${loaded}`);
  return warning(`the last reload was refused: ${problem}`, `edge-health check-config ${file}; systemctl reload edge-health`);
}

export function evaluateRos({ ros: { domain_id, note: hint, peers, problem, subscribers, transport } }: StatusDocument): CheckResult {
  const { note, ok, warning } = resultsFor('ROS', { transport, domain_id, peers, subscribers });
  if (problem !== null) {
    const [message = '', ...remedy] = problem.split('; ');
    return warning(message, remedy.length > 0 ? remedy.join('; ') : `edge-health status; ${JOURNAL}`);
  }
  if (hint) return note(hint);
  return ok(transport === 'off' ? 'off' : `${transport}, ${peers ?? 'unknown'} peers`);
}

export function evaluateShutdown({ shutdown: { enabled, message, problem, state, step } }: StatusDocument): CheckResult {
  const { note, ok } = resultsFor('safe shutdown');
  if (state === 'in_progress') return note(`in progress: ${message ?? step ?? ''}`);
  return enabled && problem !== null ? note(`would be refused: ${problem}`) : ok('ready');
}

export const checkService: Check = async ({ config, configFile, counters, service, units }) => {
  const answer = await service;
  if (answer.kind !== 'answer') {
    const unit = installedUnit(await units, unitOfConfig(configFile));
    return [evaluateNoAnswer(answer, unit === undefined ? null : unit.ActiveState === 'active')];
  }
  const { openAlerts, seconds, status } = answer;
  return [
    evaluateAnswer(status, seconds, config.ops.check.sample_max_age_seconds),
    evaluateAlerts(status, openAlerts),
    evaluateStorage(status, counters),
    evaluateRate(status),
    evaluateConfiguration(status),
    evaluateRos(status),
    evaluateShutdown(status),
  ];
};
