import t from 'tap';
import type { OpsDocument } from '../../src/client/documents.ts';
import { parseShownUnits } from '../../src/client/systemctl-show.ts';
import { MAIN_UNIT } from '../../src/client/unit-limits.ts';
import { UNIT_PROPERTIES, type Unit } from './check.ts';
import { evaluateJobs, evaluateNotifications, evaluateScheduler } from './jobs.ts';
import { recorded } from './testing/recorded.ts';
import { installedUnit } from './units.ts';

type Job = OpsDocument['jobs'][number];

const run = (status: 'OK' | 'WARNING' | 'CRITICAL' | 'UNKNOWN', lines: string[] = []): Job['last'] => ({
  started: '2026-03-04T00:00:00.000Z',
  duration_seconds: 1,
  status,
  exit_code: 0,
  trigger: 'schedule',
  failed: status === 'CRITICAL' || status === 'UNKNOWN',
  lines,
});
const job = (name: string, last: Job['last'], schedule = '0 0 * * *'): Job => ({
  name,
  schedule,
  next: null,
  running_since: null,
  last,
  last_success: null,
  runs: 1,
  failures: 0,
  missed: 0,
  overlaps: 0,
});

t.test('reports jobs whose last run failed', async (t) => {
  const [failed, ...others] = evaluateJobs([
    job('backup_logs', run('CRITICAL', ['the disk is full', 'more'])),
    job('collect_alerts', run('WARNING')),
    job('collect_metrics', null),
    job('generate_7day_report', run('CRITICAL'), 'off'),
    job('health_check', run('CRITICAL')),
    job('generate_7day_report', { ...run('UNKNOWN', ['no rows']), trigger: 'manual' } as Job['last']),
  ]);
  t.match(failed, {
    name: 'job backup_logs',
    status: 'WARNING',
    message: 'its run of 2026-03-04T00:00:00.000Z ended with CRITICAL: the disk is full',
    remedy: 'sudo edge-health ops list; sudo edge-health ops backup_logs',
  });
  t.same(
    others.map(({ isNote, name, status }) => [name, status, isNote]),
    [
      ['job collect_alerts', 'OK', false],
      ['job collect_metrics', 'OK', false],
      ['job generate_7day_report', 'OK', true],
    ],
    'neither a run by hand, nor what is switched off, nor this check itself, which would never be well again',
  );
});

t.test('judges the state of the scheduler', async (t) => {
  const nowMs = Date.parse('2026-03-04T00:10:00Z');
  const beat = '2026-03-04T00:09:30.000Z';
  const units = parseShownUnits(recorded('systemctl-running.txt'), UNIT_PROPERTIES);
  const none = installedUnit({ kind: 'no systemd', why: 'no systemd' }, MAIN_UNIT);
  const installed = (ActiveState: string): Unit => ({ ...(installedUnit({ kind: 'units', units }, MAIN_UNIT) as Unit), ActiveState });
  t.match(evaluateScheduler({ state: 'running', started: beat, beat }, installed('active'), nowMs), { status: 'OK' });
  t.match(evaluateScheduler({ state: 'never', started: null, beat: null }, installed('inactive'), nowMs), {
    status: 'WARNING',
    remedy: 'systemctl enable --now edge-health-ops',
  });
  t.match(evaluateScheduler({ state: 'stopped', started: beat, beat }, none, nowMs), { status: 'WARNING', remedy: /edge-health ops run/ });
  t.match(evaluateScheduler({ state: 'stopped', started: beat, beat }, installed('failed'), nowMs), {
    status: 'WARNING',
    remedy: /journalctl -u edge-health-ops/,
  });
  t.match(evaluateScheduler({ state: 'running', started: beat, beat: '2026-03-04T00:05:00.000Z' }, none, nowMs), {
    status: 'WARNING',
    message: /300 s/,
  });
});

t.test('judges whether alerts reach notifications', async (t) => {
  const since = '2026-03-04T00:05:00.000Z';
  const at = (seconds: number): number => Date.parse(since) + seconds * 1000;
  const problem = '/events?events=alert: 503 close another stream';
  t.same(evaluateNotifications(undefined, at(0)), [], 'no result without a channel');
  t.match(evaluateNotifications({ alerts: 'stream', since, problem: null }, at(900)), [{ status: 'OK' }]);
  t.match(evaluateNotifications({ alerts: 'unreachable', since, problem }, at(59)), [{ status: 'OK' }], 'the service may be starting');
  t.match(evaluateNotifications({ alerts: 'unreachable', since, problem }, at(60)), [
    { status: 'WARNING', message: /no alerts received since/ },
  ]);
  t.match(evaluateNotifications({ alerts: 'polling', since, problem }, at(60)), [
    { name: 'notifications', status: 'WARNING', message: /polled since .*503/, remedy: /close other readers of \/events/ },
  ]);
});
