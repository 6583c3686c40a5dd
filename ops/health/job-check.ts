import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import type { JobContext } from '../lib/job.ts';
import type { Check } from './check.ts';
import { SCHEDULER_UNIT, type UnitsAnswer } from './units.ts';
import { finding, fine, type Verdict } from './verdict.ts';

type Job = OpsDocument['jobs'][number];

/** A job whose last run failed is a finding; this one's own last run is what it is just repeating. */
export function judgeJobs(jobs: readonly Job[]): Verdict[] {
  return jobs
    .filter(({ name, schedule }) => name !== 'health_check' && schedule !== 'off')
    .map(({ failures, last, last_success, name, runs }) => {
      const topic = `job ${name}`;
      const measured = { last_status: last?.status ?? null, last_started: last?.started ?? null, last_success, runs, failures };
      if (last === null) return fine(topic, 'has not run yet', measured);
      if (last.status === 'OK' || last.status === 'WARNING') return fine(topic, `${last.status}, started ${last.started}`, measured);
      const said = last.lines[0] === undefined ? '' : `: ${last.lines[0]}`;
      return finding(
        topic,
        'WARNING',
        `its run of ${last.started} ended with ${last.status}${said}`,
        `edge-health ops list; edge-health ops ${name}`,
        measured,
      );
    });
}

/** The beat comes once a minute. */
const BEAT_MS = 180_000;

/** For people who run the check by hand: within the scheduler there is no doubt that it runs. */
export function judgeScheduler({ beat, state }: OpsDocument['scheduler'], units: UnitsAnswer, nowMs: number): Verdict {
  const unit = units.kind === 'units' ? units.units.find(({ id }) => id === SCHEDULER_UNIT) : undefined;
  const isInstalled = unit !== undefined && unit.load !== 'not-found';
  const measured = { state, beat, unit: isInstalled ? unit.active : null };
  const age = beat === null ? null : nowMs - Date.parse(beat);
  const start = isInstalled ? `systemctl enable --now ${SCHEDULER_UNIT.replace('.service', '')}` : 'npm run ops, or edge-health ops run';
  if (isInstalled && unit.active === 'failed') {
    const remedy = `journalctl -u edge-health-ops -n 50; systemctl restart edge-health-ops`;
    return finding('scheduler', 'WARNING', 'its unit has failed: nothing is checked, collected or backed up', remedy, measured);
  }
  if (state !== 'running')
    return finding('scheduler', 'WARNING', 'it does not run: nothing is checked, collected or backed up', start, measured);
  if (age !== null && age > BEAT_MS)
    return finding(
      'scheduler',
      'WARNING',
      `it has not been heard for ${Math.round(age / 1000)} s`,
      'systemctl restart edge-health-ops',
      measured,
    );
  return fine('scheduler', 'runs', measured);
}

/** A service that starts is not there for some seconds. */
const LINK_MS = 60_000;

/** Whether alerts reach notifications. */
export function judgeNotifications(state: OpsDocument['notifications'], nowMs: number): Verdict[] {
  if (!state) return [];
  const { alerts, problem, since } = state;
  const measured = { alerts, since, problem };
  if (alerts === 'stream' || nowMs - Date.parse(since) < LINK_MS) return [fine('notifications', 'alerts reach them', measured)];
  const remedy = 'close other readers of /events, or raise rest.max_event_streams; journalctl -u edge-health-ops -n 50';
  return alerts === 'polling'
    ? [finding('notifications', 'WARNING', `alerts are polled since ${since}: ${problem}`, remedy, measured)]
    : [
        finding(
          'notifications',
          'WARNING',
          `no alerts reach them since ${since}: ${problem}`,
          'journalctl -u edge-health-ops -n 50',
          measured,
        ),
      ];
}

/** Whether the configuration leaves it anything to do. */
function hasWork({ config }: JobContext): boolean {
  const { backup_logs, collect_alerts, collect_metrics, generate_7day_report, health_check } = config.ops;
  return [backup_logs, collect_alerts, collect_metrics, generate_7day_report, health_check].some((schedule) => schedule !== 'off');
}

export const jobCheck: Check = {
  name: 'jobs',
  seconds: 20,
  run: async ({ context, service, units }) => {
    const answer = await service;
    if (answer.kind !== 'answer') return [];
    const { jobs, notifications, scheduler } = answer.status.ops;
    const verdicts = [...judgeJobs(jobs), ...judgeNotifications(notifications, context.nowMs())];
    if (context.trigger !== 'manual' || !hasWork(context)) return verdicts;
    return [judgeScheduler(scheduler, await units, context.nowMs()), ...verdicts];
  },
};
