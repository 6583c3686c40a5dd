import t from 'tap';
import type { HealthStatus } from './health-status.ts';
import type { ShutdownProgress } from './shutdown/shutdown.ts';
import { type StatusSummary, stall, summaryLine } from './supervision.ts';

const status: HealthStatus = {
  cpu_percent: 3.14,
  memory_percent: 41.6,
  disk_percent: 61.2,
  temperature: 48.51,
  status: 'OK',
  node_name: 'health_monitor',
  timestamp: '2026-01-01T00:00:00.000Z',
};
const quiet: StatusSummary = {
  status,
  openAlerts: 0,
  otherNodes: 0,
  transport: 'embedded',
  restProblem: null,
  rosProblem: null,
  restartNeeded: [],
  storageError: null,
  shutdown: null,
};
const shutdown: ShutdownProgress = {
  request_id: '01',
  state: 'in_progress',
  step: 'hooks',
  reason: 'OVERTEMP',
  requested_by: 'brain',
  action: 'poweroff',
  seconds_left: 11.2,
  message: 'running: 10-park',
  timestamp: '2026-01-01T00:00:00.000Z',
};

t.test('progress is a sample that was stored and published in time', async (t) => {
  const at = (lastSampleSeconds: number | null, period: number, now: number) => stall(lastSampleSeconds, period, now);
  t.match(at(null, 1, 5), /no sample yet/);
  t.equal(at(100, 1, 101), null);
  t.equal(at(100, 1, 103), null, 'one late sample is no stall');
  t.equal(at(100, 1, 103.1), 'the last sample is 3.1 s old');
  t.equal(at(100, 0.001, 101), null, 'at 1000 Hz a pause of a second is no stall');
  t.match(at(100, 0.001, 101.1), /1\.1 s old/);
  t.equal(at(100, 60, 220), null, 'at one sample a minute it takes minutes');
  t.match(at(100, 60, 222), /122\.0 s old/);
});

t.test('the line of systemctl status is formatted', async (t) => {
  t.match(
    summaryLine({ ...quiet, restartNeeded: ['rest.host: a needs a restart; still b', 'rest.port: 1 needs a restart; still 2'] }),
    /; restart needed for rest\.host, rest\.port$/,
  );
  t.equal(summaryLine(quiet), 'OK: CPU 3 %, memory 42 %, disk 61 %, 48.5 °C; no open alerts; ROS 2: embedded');
  t.equal(
    summaryLine({ ...quiet, status: { ...status, status: 'CRITICAL', temperature: null }, openAlerts: 1, otherNodes: 1, transport: 'off' }),
    'CRITICAL: CPU 3 %, memory 42 %, disk 61 %, temperature unavailable; 1 open alert; ROS 2: off, 1 other node',
  );
  t.match(summaryLine({ ...quiet, openAlerts: 2, otherNodes: 2 }), /; 2 open alerts; ROS 2: embedded, 2 other nodes$/);
  t.match(summaryLine({ ...quiet, restProblem: 'port 5000 is in use' }), /; REST API not listening: port 5000 is in use$/);
  t.match(summaryLine({ ...quiet, rosProblem: 'no free port' }), /; not on the ROS 2 graph: no free port$/);
  t.match(summaryLine({ ...quiet, storageError: 'database or disk is full' }), /; storage degraded: database or disk is full$/);
  t.match(summaryLine({ ...quiet, status: null }), /^starting/);
  t.equal(summaryLine({ ...quiet, shutdown }), 'SHUTTING DOWN for OVERTEMP, requested by brain, 12 s left: running: 10-park');
  t.match(summaryLine({ ...quiet, shutdown: { ...shutdown, state: 'aborted' } }), /^OK: /, 'after its end the values are shown again');
});
