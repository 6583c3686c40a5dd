import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import t from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { ask, measured, PretendedMachine, type StatusDocument, startIn, startService } from '../support/rest.ts';
import { temporaryFolder } from '../support/service.ts';

const PROMTOOL = '/usr/bin/promtool';

/** Series by name and labels. */
function series(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

t.test('promtool accepts /metrics without a word', { skip: !existsSync(PROMTOOL) && 'needs the Debian package prometheus' }, async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const machine = new PretendedMachine(folder.path);
  const options = { config: { publish_frequency: 10, alerts: { raise_after_seconds: 0 } }, arguments: machine.arguments };
  const service = await startIn(t, folder.path, options);
  for (const moment of ['at the start', 'with an alert']) {
    if (moment !== 'at the start') {
      machine.setMemoryPercent(99);
      await service.until<{ count: number }>('/alerts', ({ count }) => count > 0);
    }
    const { body, headers } = await ask(service, 'GET', '/metrics');
    t.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    const { status, stderr, stdout } = spawnSync(PROMTOOL, ['check', 'metrics'], { input: body, encoding: 'utf8' });
    t.equal(`${stdout}${stderr}`, '', moment);
    t.equal(status, 0);
  }
  const broken = spawnSync(PROMTOOL, ['check', 'metrics'], { input: 'edge_health_x{ 1\n', encoding: 'utf8' });
  t.not(broken.status, 0, 'which it would not, were it wrong');
});

t.test('the metrics are those of /health and /status', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const machine = new PretendedMachine(folder.path);
  machine.setMemoryPercent(97);
  const options = { config: { node_name: 'robot_7', alerts: { raise_after_seconds: 0 } }, arguments: machine.arguments };
  const service = await startIn(t, folder.path, options);
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
  t.equal(found.get(`edge_health_build_info{version="${status.version}"}`), 1);
  t.ok((found.get('edge_health_samples_total') as number) >= status.publish.samples);
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
