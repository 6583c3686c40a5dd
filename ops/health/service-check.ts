import { type Alert, nodeOfAlertId, SEVERITIES, type Severity } from '../../src/core/alert.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import type { Check } from './check.ts';
import type { Counters } from './memory.ts';
import type { ServiceAnswer } from './service.ts';
import { type UnitsAnswer, unitOfConfig } from './units.ts';
import { finding, fine, note, type Verdict } from './verdict.ts';

const SLOW_SECONDS = 3;
const NAMED_ALERTS = 3;
/** The rate is measured over a minute; before, it says little. */
const RATE_AFTER_SECONDS = 120;
const LEAST_OF_RATE = 0.99;

/** Whether systemd believes the service to run; null: it does not know it. */
export function isUnitActive(units: UnitsAnswer, name: string): boolean | null {
  const unit = units.kind === 'units' ? units.units.find(({ id }) => id === name) : undefined;
  return unit === undefined || unit.load === 'not-found' ? null : unit.active === 'active';
}

export function judgeSilence(answer: Exclude<ServiceAnswer, { kind: 'answer' }>, unitActive: boolean | null): Verdict {
  if (answer.kind === 'refused' && (answer.httpStatus === 401 || answer.httpStatus === 403))
    return finding('service', 'UNKNOWN', `it wants a token (${answer.why})`, 'set rest.token_file to a file that this user may read');
  if (answer.kind === 'refused')
    return finding('service', 'CRITICAL', `it cannot tell its status (${answer.why})`, 'journalctl -u edge-health -n 50');
  if (unitActive === true) {
    const remedy = 'compare rest.host and rest.port with journalctl -u edge-health -n 50; systemctl restart edge-health';
    return finding('service', 'CRITICAL', `its unit is active, but it does not answer (${answer.why})`, remedy);
  }
  const remedy =
    unitActive === false ? 'see its unit: systemctl status edge-health' : 'start it, or compare --url, rest.host and rest.port';
  return finding('service', 'CRITICAL', `it does not answer (${answer.why})`, remedy);
}

/** That it answers, and measures. */
export function judgeAnswer(status: StatusDocument, seconds: number, maxAgeSeconds: number): Verdict {
  const local = status.nodes.find((node) => node.local);
  const age = local?.age_seconds ?? null;
  const milliseconds = Math.round(seconds * 1000);
  const measured = {
    answer_milliseconds: milliseconds,
    sample_age_seconds: age,
    version: status.version,
    uptime_seconds: status.uptime_seconds,
  };
  const remedy = 'journalctl -u edge-health -n 50; systemctl restart edge-health';
  if (age === null && status.uptime_seconds <= maxAgeSeconds) return fine('service', 'has only just started', measured);
  if (age === null || age > maxAgeSeconds) {
    const what =
      age === null
        ? `it has taken no sample since its start ${Math.round(status.uptime_seconds)} s ago`
        : `its last sample is ${age.toFixed(1)} s old`;
    return finding('service', 'CRITICAL', `${what}; at most ${maxAgeSeconds} s are allowed`, remedy, measured);
  }
  if (seconds > SLOW_SECONDS)
    return finding(
      'service',
      'WARNING',
      `it took ${seconds.toFixed(1)} s to answer`,
      'see what burdens this machine: top, iotop',
      measured,
    );
  if (local?.status === 'UNKNOWN')
    return finding('service', 'WARNING', 'nothing can be measured', 'edge-health sensors, and collectors in /status', measured);
  return fine('service', `answers in ${milliseconds} ms, last sample ${age.toFixed(1)} s old`, measured);
}

function named(alerts: readonly Alert[] | null, severities: readonly Severity[]): string {
  const matching = (alerts ?? []).filter(({ severity }) => severities.includes(severity));
  const texts = matching
    .slice(0, NAMED_ALERTS)
    .map(({ alert_id, metric, threshold, value }) => `${nodeOfAlertId(alert_id)} ${metric} ${value} (${threshold} allowed)`);
  return texts.length === 0 ? '' : `, such as ${texts.join(', ')}`;
}

export function judgeAlerts({ open_alerts }: StatusDocument, open: readonly Alert[] | null): Verdict {
  const { CRITICAL, ERROR, WARNING } = open_alerts;
  const measured = { critical: CRITICAL, error: ERROR, warning: WARNING };
  const remedy = 'see /alerts or the dashboard';
  const worst = SEVERITIES.findLast((severity) => open_alerts[severity] > 0);
  if (!worst) return fine('alerts', 'none open', measured);
  const counts = SEVERITIES.filter((severity) => open_alerts[severity] > 0).map((severity) => `${open_alerts[severity]} ${severity}`);
  const status = worst === 'WARNING' ? 'WARNING' : 'CRITICAL';
  return finding('alerts', status, `${counts.toReversed().join(', ')} open${named(open, [worst])}`, remedy, measured);
}

export function judgeStorage({ gathered, storage, started }: StatusDocument, counters: Counters): Verdict {
  const lost = counters.grown('lost samples', started, storage.samples_lost);
  const notStored = counters.grown('alerts not stored', started, gathered?.alerts_not_stored ?? 0);
  const measured = {
    state: storage.state,
    size_bytes: storage.size_bytes,
    samples_pending: storage.samples_pending,
    samples_lost: storage.samples_lost,
  };
  if (storage.state === 'degraded')
    return finding(
      'storage',
      'CRITICAL',
      `degraded since ${storage.since ?? 'its start'}: ${storage.error ?? 'not writable'}`,
      `look at the disk of ${storage.path}: df, dmesg`,
      measured,
    );
  if (lost > 0)
    return finding(
      'storage',
      'WARNING',
      `${lost} samples were lost since the last check`,
      `look at the disk of ${storage.path}: dmesg`,
      measured,
    );
  if (notStored > 0)
    return finding(
      'storage',
      'WARNING',
      `${notStored} changes of alerts of other nodes came when what they may write in a day was spent; they are shown, but not stored`,
      'see in /alerts which nodes they name',
      measured,
    );
  const [aside] = storage.set_aside;
  if (aside !== undefined)
    return finding(
      'storage',
      'WARNING',
      `a damaged database was set aside: ${aside}`,
      'restore it with edge-health ops restore_backup if it matters, then remove that file',
      measured,
    );
  return fine(
    'storage',
    `${storage.state}, ${(storage.size_bytes / 1e6).toFixed(1)} of ${Math.round(storage.max_bytes / 1e6)} MB`,
    measured,
  );
}

export function judgeRate({ publish, uptime_seconds }: StatusDocument): Verdict {
  const { configured_hertz: configured, measured_hertz: found } = publish;
  const measured = { configured_hertz: configured, measured_hertz: found, missed: publish.missed };
  if (found === null || uptime_seconds < RATE_AFTER_SECONDS)
    return fine('publish rate', 'measured from two minutes after the start on', measured);
  const percent = (100 * found) / configured;
  const message = `${found} Hz, ${percent.toFixed(1)} % of ${configured} Hz`;
  if (found >= LEAST_OF_RATE * configured) return fine('publish rate', message, measured);
  return finding('publish rate', 'WARNING', message, 'see what burdens this machine: top; or lower publish_frequency', measured);
}

export function judgeConfiguration({ config }: StatusDocument): Verdict {
  if (config.problem === null) return fine('configuration', `in force since ${config.loaded}`, { file: config.file });
  const remedy = `edge-health check-config ${config.file}; systemctl reload edge-health`;
  return finding('configuration', 'WARNING', `the last reload changed nothing: ${config.problem}`, remedy, { file: config.file });
}

export function judgeRos({ ros }: StatusDocument): Verdict {
  const measured = { transport: ros.transport, domain_id: ros.domain_id, peers: ros.peers, subscribers: ros.subscribers };
  if (ros.problem !== null) return finding('ROS', 'WARNING', ros.problem, 'edge-health status; journalctl -u edge-health -n 50', measured);
  return fine('ROS', ros.transport === 'off' ? 'off' : `${ros.transport}, ${ros.peers ?? 'unknown'} peers`, measured);
}

export function judgeShutdown({ shutdown }: StatusDocument): Verdict {
  if (shutdown.state === 'in_progress') return note('safe shutdown', `in progress: ${shutdown.message ?? shutdown.step ?? ''}`);
  return shutdown.enabled && shutdown.problem !== null
    ? note('safe shutdown', `would be refused: ${shutdown.problem}`)
    : fine('safe shutdown', 'ready');
}

export const serviceCheck: Check = {
  name: 'service',
  seconds: 20,
  run: async ({ context, counters, service, units }) => {
    const answer = await service;
    if (answer.kind !== 'answer') return [judgeSilence(answer, isUnitActive(await units, unitOfConfig(context.configFile)))];
    const { status } = answer;
    return [
      judgeAnswer(status, answer.seconds, context.config.ops.check.sample_max_age_seconds),
      judgeAlerts(status, answer.open),
      judgeStorage(status, counters),
      judgeRate(status),
      judgeConfiguration(status),
      judgeRos(status),
      judgeShutdown(status),
    ];
  },
};
