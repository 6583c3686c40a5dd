import type { OpsDocument } from '../../src/client/documents.ts';
import { SCHEDULER_UNIT } from '../../src/client/unit-limits.ts';
import { type Check, type CheckContext, type CheckResult, resultsFor, type Unit } from './check.ts';
import { installedUnit } from './units.ts';

/** One result per scheduled job except this one, whose last run only reported what this run checks again. */
export function evaluateJobs(jobs: OpsDocument['jobs']): CheckResult[] {
  return jobs
    .filter(({ name, schedule }) => name !== 'health_check' && schedule !== 'off')
    .map(({ failures, last, last_success, name, runs }) => {
      const measured = { last_status: last?.status ?? null, last_started: last?.started ?? null, last_success, runs, failures };
      const { note, ok, warning } = resultsFor(`job ${name}`, measured);
      if (last === null) return ok('has not run yet');
      if (!last.failed) return ok(`${last.status}, started ${last.started}`);
      const line = last.lines[0] === undefined ? '' : `: ${last.lines[0]}`;
      // Who runs a job by hand sees its outcome.
      const report = last.trigger === 'manual' ? note : warning;
      return report(
        `its run of ${last.started} ended with ${last.status}${line}`,
        `sudo edge-health ops list; sudo edge-health ops ${name}`,
      );
    });
}

/** The scheduler writes its heartbeat once a minute. */
const HEARTBEAT_MS = 180_000;
const JOURNAL = 'journalctl -u edge-health-ops -n 50';

/** Used in manual runs: a scheduled run proves that the scheduler runs. */
export function evaluateScheduler({ beat, state }: OpsDocument['scheduler'], unit: Unit | undefined, nowMs: number): CheckResult {
  const { ok, warning } = resultsFor('scheduler', { state, beat, unit: unit?.ActiveState ?? null });
  const ageMs = beat === null ? 0 : nowMs - Date.parse(beat);
  const idle = 'no checks, collection or backups';
  if (unit?.ActiveState === 'failed') return warning(`its unit has failed: ${idle}`, `${JOURNAL}; systemctl restart edge-health-ops`);
  if (state !== 'running')
    return warning(`not running: ${idle}`, unit ? 'systemctl enable --now edge-health-ops' : 'npm run ops, or edge-health ops run');
  if (ageMs > HEARTBEAT_MS) return warning(`no heartbeat for ${Math.round(ageMs / 1000)} s`, 'systemctl restart edge-health-ops');
  return ok('runs');
}

/** A starting service is unreachable for some seconds. */
const LINK_MS = 60_000;

/** Whether alerts reach notifications. */
export function evaluateNotifications(state: OpsDocument['notifications'], nowMs: number): CheckResult[] {
  if (!state) return [];
  const { alerts, problem, since } = state;
  const { ok, warning } = resultsFor('notifications', { alerts, since, problem });
  if (alerts === 'stream' || nowMs - Date.parse(since) < LINK_MS) return [ok('receiving alerts')];
  if (alerts === 'unreachable') return [warning(`no alerts received since ${since}: ${problem}`, JOURNAL)];
  const remedy = `close other readers of /events, or raise rest.max_event_streams; ${JOURNAL}`;
  return [warning(`alerts have been polled since ${since}: ${problem}`, remedy)];
}

/** Whether the configuration schedules any job. */
function hasJobs({ config }: CheckContext): boolean {
  const { backup_logs, collect_alerts, collect_metrics, generate_7day_report, health_check } = config.ops;
  return [backup_logs, collect_alerts, collect_metrics, generate_7day_report, health_check].some((schedule) => schedule !== 'off');
}

export const checkJobs: Check = async (context) => {
  const answer = await context.service;
  if (answer.kind !== 'answer') return [];
  const { jobs, notifications, scheduler } = answer.status.ops;
  const results = [...evaluateJobs(jobs), ...evaluateNotifications(notifications, context.nowMs())];
  if (context.trigger !== 'manual' || !hasJobs(context)) return results;
  return [evaluateScheduler(scheduler, installedUnit(await context.units, SCHEDULER_UNIT), context.nowMs()), ...results];
};
