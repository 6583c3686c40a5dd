import { globSync, readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { parse, stringify } from 'yaml';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { EventReader } from '../../testkit/service/events.ts';
import { type StatusDocument, startIn } from '../../testkit/service/rest.ts';

interface AlertList {
  data: Alert[];
  count: number;
}

// The machine is a recorded one, whose files the test rewrites. test/system/host/real-load.test.ts tests with the load of a real one.

const METRICS = ['cpu_percent', 'memory_percent', 'temperature'];

const folder = temporaryFolder(t);
const machine = new MachineTree(t, 'pi5');
const options = {
  config: { publish_frequency: 20, alerts: { raise_after_seconds: 0, clear_after_seconds: 0 } },
  arguments: machine.arguments,
};
let service = await startIn(t, folder, options);

function set(cpu: number, memory: number, celsius: number): void {
  machine.setCpuPercent(cpu);
  machine.setMemoryPercent(memory);
  machine.setTemperature(celsius);
}

/** Resolves when every metric has an open alert of this severity. */
async function open(severity: string): Promise<Alert[]> {
  const isOpen = ({ data }: AlertList): boolean =>
    METRICS.every((name) => data.some((alert) => alert.metric === name && alert.severity === severity));
  return (await service.until<AlertList>('/alerts?resolved=false', isOpen)).data;
}

t.test('load raises WARNING, then CRITICAL, and resolves afterwards; SIGKILL in between loses and duplicates nothing', async (t) => {
  const events = await EventReader.open(service.url);
  await events.untilCount(3);
  t.same(await service.json('/alerts'), { data: [], count: 0 }, 'no alert at the recorded load');

  set(85, 90, 75);
  const raised = await open('WARNING');
  set(95.25, 97, 87.5);
  const critical = await open('CRITICAL');
  t.same(critical.map(({ alert_id }) => alert_id).sort(), raised.map(({ alert_id }) => alert_id).sort(), 'the same episodes');
  const thresholds: Readonly<Record<string, number>> = { cpu_percent: 90, memory_percent: 95, temperature: 85 };
  for (const { metric, value, threshold } of critical) {
    t.equal(threshold, thresholds[metric as string], metric);
    // The CPU value covers a quarter of a second, in which the load may have changed.
    if (metric === 'cpu_percent') t.ok(value >= threshold && value <= 95.25, `${value} %`);
    else t.equal(value, metric === 'memory_percent' ? 97 : 87.5);
  }

  await service.end('SIGKILL');
  const published = events.received;
  service = await startIn(t, folder, options);
  const again = await service.json<AlertList>('/alerts?resolved=false');
  t.same(sorted(again.data), sorted(critical), 'the very alerts are still open after SIGKILL');
  const { data } = await service.json<{ data: object[] }>('/health/history?hours=1');
  const stored = data.map((status) => JSON.stringify(status));
  const statuses = published.filter(({ event }) => event === 'health').map(({ data: line }) => line);
  t.ok(statuses.length > 3);
  for (const line of statuses) t.equal(stored.filter((other) => other === line).length, 1, 'each published status is stored once');

  set(20, 30, 45);
  await service.until<AlertList>('/alerts?resolved=false', ({ count }) => count === 0);
  const all = await service.json<AlertList>('/alerts');
  t.same(all.data.map(({ alert_id }) => alert_id).sort(), raised.map(({ alert_id }) => alert_id).sort(), 'no other alert was raised');
  const changes = (await service.json<AlertList>('/alerts?changes=true')).data.toReversed();
  for (const { alert_id, metric } of raised) {
    t.same(
      changes.filter((change) => change.alert_id === alert_id).map(({ severity, resolved }) => [severity, resolved]),
      [
        ['WARNING', false],
        ['CRITICAL', false],
        ['CRITICAL', true],
      ],
      `${metric}: each change once`,
    );
  }
  const received = published.filter(({ event }) => event === 'alert').map(({ data: line }) => line);
  t.same(
    received,
    changes.slice(0, received.length).map((change) => JSON.stringify(change)),
    'as subscribers received them',
  );
});

t.test('a metric is switched off by a reload, and on again', async (t) => {
  const own = temporaryFolder(t);
  const service = await startIn(t, own, options);
  const [file] = globSync(`${own}/config-*.yaml`) as [string];
  const before = readFileSync(file, 'utf8');
  set(20, 30, 92);
  const [hot] = (await service.until<AlertList>('/alerts?resolved=false', ({ count }) => count === 1)).data;
  t.match(hot, { metric: 'temperature', severity: 'CRITICAL' });

  const config = parse(before) as { thresholds: object };
  writeFileSync(file, stringify({ ...config, thresholds: { ...config.thresholds, temperature: 'off' } }));
  service.process.kill('SIGHUP');
  await service.until<AlertList>('/alerts?resolved=false', ({ count }) => count === 0);
  t.match((await service.json<AlertList>('/alerts')).data[0], { alert_id: hot?.alert_id, resolved: true, threshold: 85 });
  await service.until<HealthStatus>('/health', ({ status }) => status === 'OK');
  t.equal((await service.json<HealthStatus>('/health')).temperature, 92, 'it is still measured');
  const { status, thresholds } = await service.json<StatusDocument>('/status');
  t.match({ status, thresholds }, { status: 'OK', thresholds: { temperature: null, cpu_percent: { warning: 80, critical: 90 } } });
  t.notMatch(await (await service.get('/metrics')).text(), /edge_health_temperature_threshold_celsius\{/);

  writeFileSync(file, before);
  service.process.kill('SIGHUP');
  const again = await service.until<AlertList>('/alerts?resolved=false', ({ count }) => count === 1);
  t.match(again.data, [{ metric: 'temperature', severity: 'CRITICAL' }]);
  t.not(again.data[0]?.alert_id, hot?.alert_id);
});

const sorted = (alerts: readonly Alert[]): Alert[] => alerts.toSorted((a, b) => a.alert_id.localeCompare(b.alert_id));
