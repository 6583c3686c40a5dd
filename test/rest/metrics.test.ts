import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { ask, measured, PretendedMachine, type StatusDocument, startIn, startService } from '../../testkit/rest.ts';
import { ROOT } from '../../testkit/service.ts';

const PROMTOOL = '/usr/bin/promtool';

/** The runtime of the service, which may be another than that of the tests. */
const RUNTIME = (JSON.parse(readFileSync(join(ROOT, 'node_modules/node/package.json'), 'utf8')) as { version: string }).version;

const STARTED = '2026-03-04T12:00:00.000Z';
const last = { started: STARTED, duration_seconds: 1.5, exit_code: 2, status: 'CRITICAL', trigger: 'schedule', lines: ['CRITICAL  disk'] };
const never = {
  schedule: 'off',
  next: null,
  running_since: null,
  last: null,
  last_success: null,
  runs: 0,
  failures: 0,
  missed: 0,
  overlaps: 0,
};
const JOBS = [
  { ...never, name: 'health_check', next: STARTED, last, last_success: STARTED, runs: 7, failures: 2, missed: 3, overlaps: 1 },
  { ...never, name: 'generate_7day_report' },
];

/** As the scheduler leaves it. */
function writeJobs(folder: string, state = 'running'): void {
  const live = join(folder, 'data/ops/live');
  mkdirSync(live, { recursive: true });
  const document = { scheduler: { state, started: STARTED, beat: new Date().toISOString() }, jobs: JOBS };
  writeFileSync(join(live, 'jobs.json'), JSON.stringify(document));
}

/** Series by name and labels. */
function series(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

t.test('promtool accepts /metrics without a word', { skip: !existsSync(PROMTOOL) && 'needs the Debian package prometheus' }, async (t) => {
  const folder = temporaryFolder(t);
  const machine = new PretendedMachine(folder);
  const options = { config: { publish_frequency: 10, alerts: { raise_after_seconds: 0 } }, arguments: machine.arguments };
  const service = await startIn(t, folder, options);
  for (const moment of ['at the start', 'with an alert', 'with jobs']) {
    if (moment === 'with jobs') {
      writeJobs(folder);
      await service.until<StatusDocument>('/status', ({ host }) => host !== null);
    } else if (moment !== 'at the start') {
      machine.setMemoryPercent(99);
      await service.until<{ count: number }>('/alerts', ({ count }) => count > 0);
    }
    const { body, headers } = await ask(service, 'GET', '/metrics');
    t.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    const { status, stderr, stdout } = spawnSync(PROMTOOL, ['check', 'metrics'], { input: body, encoding: 'utf8' });
    t.equal(`${stdout}${stderr}`, '', moment);
    t.equal(status, 0);
    t.equal(body.includes('edge_health_ops_'), moment === 'with jobs', 'without a scheduler there is nothing to tell of one');
  }
  const broken = spawnSync(PROMTOOL, ['check', 'metrics'], { input: 'edge_health_x{ 1\n', encoding: 'utf8' });
  t.not(broken.status, 0, 'which it would not, were it wrong');
});

t.test('the metrics are those of /health and /status', async (t) => {
  const folder = temporaryFolder(t);
  const machine = new PretendedMachine(folder);
  machine.setMemoryPercent(97);
  const options = { config: { node_name: 'robot_7', alerts: { raise_after_seconds: 0 } }, arguments: machine.arguments };
  const service = await startIn(t, folder, options);
  await service.until<{ count: number }>('/alerts', ({ count }) => count > 0);
  const status = await service.json<StatusDocument>('/status');
  const health = await service.json<HealthStatus>('/health');
  const found = series((await ask(service, 'GET', '/metrics')).body);
  t.equal(found.get('edge_health_memory_usage_ratio{node="robot_7"}'), 0.97, 'percent as a ratio');
  t.equal(found.get('edge_health_disk_usage_ratio{node="robot_7"}'), (health.disk_percent as number) / 100);
  t.equal(found.get('edge_health_temperature_celsius{node="robot_7"}'), undefined, 'what cannot be read has no series: a gap, not a zero');
  t.equal(found.get('edge_health_status{node="robot_7",status="CRITICAL"}'), 1);
  t.equal(found.get('edge_health_status{node="robot_7",status="OK"}'), 0);
  const open = Object.values(status.open_alerts).reduce((sum, count) => sum + count, 0);
  t.equal(open, 1);
  for (const [severity, count] of Object.entries(status.open_alerts))
    t.ok(Math.abs((found.get(`edge_health_open_alerts{severity="${severity}"}`) as number) - count) <= 1, severity);
  t.equal(found.get('edge_health_collector_success{metric="temperature"}'), 0);
  t.equal(found.get('edge_health_collector_success{metric="memory_percent"}'), 1);
  t.equal(found.get(`edge_health_build_info{version="${status.version}",node_version="${RUNTIME}"}`), 1);
  const ofNode = (severity: string): number => found.get(`edge_health_node_open_alerts{node="robot_7",severity="${severity}"}`) as number;
  t.equal(ofNode('WARNING') + ofNode('CRITICAL'), 1);
  t.equal(ofNode('ERROR'), 0);
  t.equal(found.get('edge_health_node_local{node="robot_7"}'), 1);
  t.equal(found.get('edge_health_node_silent{node="robot_7"}'), 0);
  t.equal(found.get('edge_health_memory_usage_threshold_ratio{severity="CRITICAL"}'), 0.95);
  t.equal(found.get('edge_health_temperature_threshold_celsius{severity="WARNING"}'), 70);
  t.equal(found.get('edge_health_storage_max_bytes'), status.storage.max_bytes);
  t.equal(found.get('edge_health_config_reload_success'), 1);
  t.equal(found.get('edge_health_shutdown_in_progress'), 0);
  t.equal(found.get('edge_health_ros_peers'), undefined, 'not on the graph');
  t.equal(status.ros.published, null, 'nor is anything handed to it');
  t.equal(found.get('edge_health_ros_published_messages_total{topic="health_status"}'), undefined);
  t.ok((found.get('edge_health_process_open_fds') as number) > 10);
  t.ok(Math.abs((found.get('edge_health_process_resident_memory_bytes') as number) - status.process.resident_memory_bytes) < 5e6);
  const { host } = await service.until<StatusDocument>('/status', (now) => now.host !== null);
  const infos = [...series((await ask(service, 'GET', '/metrics')).body).keys()].filter((name) => name.startsWith('edge_health_host_info'));
  t.equal(infos.length, 1);
  t.match(infos[0], `hostname="${host?.hostname}"`);
  t.ok((found.get('edge_health_samples_total') as number) >= status.publish.samples);
});

t.test('the scheduler and its jobs are those of /status', async (t) => {
  const folder = temporaryFolder(t);
  const service = await startIn(t, folder, {});
  t.same((await service.json<StatusDocument>('/status')).ops, { scheduler: { state: 'never', started: null, beat: null }, jobs: [] });
  writeJobs(folder);
  const { ops } = await service.json<StatusDocument>('/status');
  t.match(ops, { scheduler: { state: 'running' }, jobs: JOBS });
  const found = series((await ask(service, 'GET', '/metrics')).body);
  const of = (name: string, labels = ''): number | undefined => found.get(`edge_health_ops_job_${name}{ops_job="health_check"${labels}}`);
  const seconds = Date.parse(STARTED) / 1000;
  t.equal(found.get('edge_health_ops_scheduler_up'), 1);
  t.same(
    ['last_run_timestamp_seconds', 'last_success_timestamp_seconds', 'next_run_timestamp_seconds', 'last_duration_seconds'].map((name) =>
      of(name),
    ),
    [seconds, seconds, seconds, 1.5],
  );
  t.same(
    ['runs_total', 'failures_total', 'missed_runs_total', 'overlaps_total'].map((name) => of(name)),
    [7, 2, 3, 1],
  );
  t.equal(of('last_status', ',status="CRITICAL"'), 1);
  t.equal(of('last_status', ',status="OK"'), 0);
  t.same(
    [...found].filter(([name]) => name.includes('7day_report')),
    ['runs', 'failures', 'missed_runs', 'overlaps'].map((name) => [`edge_health_ops_job_${name}_total{ops_job="generate_7day_report"}`, 0]),
    'what never ran has counts and no times',
  );
  writeJobs(folder, 'stopped');
  t.equal(series((await ask(service, 'GET', '/metrics')).body).get('edge_health_ops_scheduler_up'), 0);
});

t.test('a counter never goes back while the service runs', async (t) => {
  const service = await startService(t, { config: { publish_frequency: 50 } });
  await measured(service);
  let before = new Map<string, number>();
  let counters = 0;
  for (let n = 0; n < 20; n += 1) {
    const { body } = await ask(service, 'GET', '/metrics');
    const names = [...body.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name as string);
    const now = series(body);
    counters = names.length;
    for (const name of names)
      if ((now.get(name) as number) < (before.get(name) ?? 0)) t.fail(`${name} went from ${before.get(name)} to ${now.get(name)}`);
    before = now;
  }
  t.ok(counters > 3, `${counters} counters`);
});
