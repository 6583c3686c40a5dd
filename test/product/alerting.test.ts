import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import t from 'tap';
import type { Alert } from '../../src/core/alert.ts';
import { EventReader } from '../../testkit/events.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { RunningService } from '../../testkit/service.ts';

interface AlertList {
  data: Alert[];
  count: number;
}

/** What is measured is the whole machine: other programs on it may keep it busy for a while longer. */
const PATIENCE_SECONDS = 150;

t.setTimeout(2 * PATIENCE_SECONDS * 1000);

/** Keeps every core busy until the returned function is called. */
function busy(): () => void {
  const children = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  return () => {
    for (const child of children) child.kill('SIGKILL');
  };
}

t.test('a real load raises WARNING, then CRITICAL, and is resolved after it; a kill in between loses nothing', async (t) => {
  const folder = temporaryFolder(t);
  const config = { alerts: { raise_after_seconds: 1, clear_after_seconds: 2 } };
  let service = await RunningService.start(folder, { config });
  t.teardown(() => service.end());
  const events = await EventReader.open(service.url);
  const relax = busy();
  t.teardown(relax);

  const critical = await service.until<AlertList>(
    '/alerts?resolved=false',
    ({ data }) => data.some(({ severity }) => severity === 'CRITICAL'),
    40,
  );
  const alert = critical.data.find(({ metric }) => metric === 'cpu_percent') as Alert;
  t.match(alert, { severity: 'CRITICAL', metric: 'cpu_percent', threshold: 90, resolved: false });
  t.match(alert.alert_id, /^health_monitor\/cpu_percent\/[0-9A-Z]{26}$/);
  const seen = events.alerts().filter(({ alert_id }) => alert_id === alert.alert_id);
  t.same(
    seen.map(({ severity, resolved }) => [severity, resolved]),
    [
      ['WARNING', false],
      ['CRITICAL', false],
    ],
    'subscribers saw WARNING, then CRITICAL, as one alert',
  );

  const published = events.health();
  t.equal(await service.end('SIGKILL'), 'SIGKILL');
  service = await RunningService.start(folder, { config });
  const again = await service.json<AlertList>('/alerts?resolved=false&metric=cpu_percent');
  t.same(
    again.data.map(({ alert_id, severity }) => [alert_id, severity]),
    [[alert.alert_id, 'CRITICAL']],
    'the very alert is still open after kill -9',
  );
  const history = await service.json<{ data: { timestamp: string }[] }>('/health/history?hours=1');
  const stored = history.data.map(({ timestamp }) => timestamp);
  for (const { timestamp } of published) t.equal(stored.filter((at) => at === timestamp).length, 1, `${timestamp} is stored once`);

  relax();
  const after = await service.until<AlertList>(
    '/alerts?metric=cpu_percent',
    ({ data }) => data.every(({ resolved }) => resolved),
    PATIENCE_SECONDS,
  );
  t.equal(after.data.filter(({ alert_id }) => alert_id === alert.alert_id).length, 1, 'one alert, resolved');
  const changes = await service.json<AlertList>('/alerts?metric=cpu_percent&changes=true');
  const mine = changes.data.filter(({ alert_id }) => alert_id === alert.alert_id).reverse();
  t.same([mine[0]?.severity, mine[1]?.severity, mine.at(-1)?.resolved], ['WARNING', 'CRITICAL', true], 'its changes are kept');
  t.equal(mine.filter(({ resolved }) => resolved).length, 1, 'resolved once');
});

t.test('SIGHUP applies new thresholds, and a bad file changes nothing and says why', async (t) => {
  const { writeFileSync } = await import('node:fs');
  const folder = temporaryFolder(t);
  const file = `${folder}/live.yaml`;
  const write = (warning: number | string): void =>
    writeFileSync(
      file,
      `rest: {host: 127.0.0.1, port: 0}\nstorage: {path: ${folder}/data}\nthresholds: {disk: {warning: ${warning}, critical: 99.9}}\nalerts: {raise_after_seconds: 0, clear_after_seconds: 0}\n`,
    );
  write(99.8);
  // The last --config wins.
  const service = await RunningService.start(folder, { arguments: ['--config', file] });
  t.teardown(() => service.end());
  await service.until<{ disk_percent?: number }>('/health', ({ disk_percent }) => typeof disk_percent === 'number');
  t.same(await service.json('/alerts?metric=disk_percent'), { data: [], count: 0 });

  write(0);
  service.process.kill('SIGHUP');
  const raised = await service.until<AlertList>('/alerts?metric=disk_percent', ({ count }) => count === 1);
  t.match(raised.data[0], { severity: 'WARNING', threshold: 0, resolved: false });

  write('"none"');
  service.process.kill('SIGHUP');
  const status = await service.until<{ config: { problem: string | null } }>('/status', ({ config }) => config.problem !== null);
  t.match(status.config.problem, /live\.yaml:3:\d+: thresholds\.disk\.warning: found "none"; allowed: a number from 0 to 100/);
  t.match(
    await service.json('/alerts?metric=disk_percent'),
    { data: [{ threshold: 0, resolved: false }] },
    'what was in force is in force',
  );

  write(99.8);
  service.process.kill('SIGHUP');
  await service.until<AlertList>('/alerts?metric=disk_percent', ({ data }) => data[0]?.resolved === true);
});
