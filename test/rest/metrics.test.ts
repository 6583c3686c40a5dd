import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { JOBS, STARTED, writeJobs } from '../../testkit/ops/ops-jobs.ts';
import { type StatusDocument, sendRequest, startIn } from '../../testkit/service/rest.ts';
import { ROOT } from '../../testkit/service/service.ts';

// test/system/fleet/exposition.test.ts checks /metrics with promtool.

/** The runtime of the service, which may differ from that of the tests. */
const RUNTIME = (JSON.parse(readFileSync(join(ROOT, 'node_modules/node/package.json'), 'utf8')) as { version: string }).version;

const folder = temporaryFolder(t);
const machine = new MachineTree(t, 'vm-no-sensors');
machine.setMemoryPercent(97);
const config = { node_name: 'robot_7', publish_frequency: 4, alerts: { raise_after_seconds: 0 } };
const service = await startIn(t, folder, { config, arguments: machine.arguments });
await service.until<{ data: { severity: string }[] }>('/alerts', ({ data }) => data.some(({ severity }) => severity === 'CRITICAL'));

/** Series by name and labels. */
function series(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

t.test('every line conforms to the text format: each family has a help and a type before its samples', async (t) => {
  const { body, headers } = await sendRequest(service, 'GET', '/metrics');
  t.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  t.match(body, /\n$/);
  let help = '';
  let family = '';
  for (const line of body.trimEnd().split('\n')) {
    const comment = /^# (HELP|TYPE) (edge_health_[a-z0-9_]+) (.+)$/.exec(line);
    if (comment?.[1] === 'HELP') help = comment[2] as string;
    else if (comment) {
      family = comment[2] as string;
      t.equal(family, help);
      t.match(comment[3], /^(counter|gauge)$/);
    } else {
      t.match(line, /^[a-z0-9_]+(\{[a-z_]+="[^"\\\n]*"(,[a-z_]+="[^"\\\n]*")*\})? -?[0-9.]+(e[+-]?\d+)?$/);
      t.equal(line.slice(0, family.length), family);
      t.match(line.slice(family.length), /^[{ ]/);
    }
  }
  t.notMatch(body, 'edge_health_ops_', 'without a scheduler there are no metrics of one');
});

t.test('the metrics are those of /health and /status', async (t) => {
  const status = await service.json<StatusDocument>('/status');
  const health = await service.until<HealthStatus>('/health', ({ disk_percent }) => typeof disk_percent === 'number');
  const found = series((await sendRequest(service, 'GET', '/metrics')).body);
  t.equal(found.get('edge_health_memory_usage_ratio{node="robot_7"}'), 0.97, 'percent as a ratio');
  const disk = found.get('edge_health_disk_usage_ratio{node="robot_7"}') as number;
  t.ok(Math.abs(disk - (health.disk_percent as number) / 100) < 0.01, `${disk} and ${health.disk_percent} %`);
  t.equal(found.get('edge_health_temperature_celsius{node="robot_7"}'), undefined, 'what cannot be read has no series: a gap, not a zero');
  t.equal(found.get('edge_health_status{node="robot_7",status="CRITICAL"}'), 1);
  t.equal(found.get('edge_health_status{node="robot_7",status="OK"}'), 0);
  const open = Object.values(status.open_alerts).reduce((sum, count) => sum + count, 0);
  t.equal(open, 1);
  for (const [severity, count] of Object.entries(status.open_alerts))
    t.equal(found.get(`edge_health_open_alerts{severity="${severity}"}`), count, severity);
  t.equal(found.get('edge_health_collector_success{metric="temperature"}'), 0);
  t.equal(found.get('edge_health_collector_success{metric="memory_percent"}'), 1);
  t.equal(found.get(`edge_health_build_info{version="${status.version}",node_version="${RUNTIME}"}`), 1);
  const ofNode = (severity: string): number => found.get(`edge_health_node_open_alerts{node="robot_7",severity="${severity}"}`) as number;
  t.equal(ofNode('WARNING') + ofNode('CRITICAL'), 1);
  t.equal(ofNode('ERROR'), 0);
  t.equal(found.get('edge_health_node_local{node="robot_7"}'), 1);
  t.equal(found.get('edge_health_node_stale{node="robot_7"}'), 0);
  t.equal(found.get('edge_health_memory_usage_threshold_ratio{severity="CRITICAL"}'), 0.95);
  t.equal(found.get('edge_health_temperature_threshold_celsius{severity="WARNING"}'), 70);
  t.equal(found.get('edge_health_storage_max_bytes'), status.storage.max_bytes);
  t.equal(found.get('edge_health_config_reload_success'), 1);
  t.equal(found.get('edge_health_shutdown_in_progress'), 0);
  t.equal(found.get('edge_health_ros_peers'), undefined, 'not on the graph');
  t.equal(status.ros.published, null, 'nor is anything handed to it');
  t.equal(found.get('edge_health_ros_published_messages_total{topic="health_status"}'), undefined);
  t.ok((found.get('edge_health_process_open_fds') as number) > 10);
  t.ok((found.get('edge_health_process_resident_memory_bytes') as number) > 0);
  const { host } = await service.until<StatusDocument>('/status', (now) => now.host !== null);
  const infos = [...series((await sendRequest(service, 'GET', '/metrics')).body).keys()].filter((name) =>
    name.startsWith('edge_health_host_info'),
  );
  t.equal(infos.length, 1);
  t.match(infos[0], `hostname="${host?.hostname}"`);
  t.ok((found.get('edge_health_samples_total') as number) >= status.publish.samples);
});

t.test('the scheduler and its jobs match /status', async (t) => {
  t.same((await service.json<StatusDocument>('/status')).ops, { scheduler: { state: 'never', started: null, beat: null }, jobs: [] });
  writeJobs(folder);
  const { ops } = await service.json<StatusDocument>('/status');
  t.match(ops, { scheduler: { state: 'running' }, jobs: JOBS });
  const found = series((await sendRequest(service, 'GET', '/metrics')).body);
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
  t.equal(of('last_failed'), 1);
  t.same(
    [...found].filter(([name]) => name.includes('7day_report')),
    ['runs', 'failures', 'missed_runs', 'overlaps'].map((name) => [`edge_health_ops_job_${name}_total{ops_job="generate_7day_report"}`, 0]),
    'what never ran has counts and no times',
  );
  writeJobs(folder, 'stopped');
  t.equal(series((await sendRequest(service, 'GET', '/metrics')).body).get('edge_health_ops_scheduler_up'), 0);
});

t.test('a counter never decreases while the service runs', async (t) => {
  let before = new Map<string, number>();
  let counters = 0;
  for (let n = 0; n < 20; n += 1) {
    const { body } = await sendRequest(service, 'GET', '/metrics');
    const names = [...body.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name as string);
    const now = series(body);
    counters = names.length;
    for (const name of names)
      if ((now.get(name) as number) < (before.get(name) ?? 0)) t.fail(`${name} went from ${before.get(name)} to ${now.get(name)}`);
    before = now;
  }
  t.ok(counters > 3, `${counters} counters`);
});
