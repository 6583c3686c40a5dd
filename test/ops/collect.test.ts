import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parse, stringify } from 'yaml';
import type { Judgement } from '../../harness/engine/judgement.ts';
import { ALERTS_FILE, type AlertRecord } from '../../ops/collect/alert-files.ts';
import { contextFor, GIVEN } from '../../ops/collect/testing/context.ts';
import { collectAlerts } from '../../ops/collect_alerts.ts';
import { collectMetrics } from '../../ops/collect_metrics.ts';
import { generateReport } from '../../ops/generate_7day_report.ts';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import { type Alert, changeKey } from '../../src/core/alerts/alert.ts';
import { parseCsvRecord } from '../../src/core/csv.ts';
import { METRICS_FILE } from '../../src/core/metrics-files.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { ROOT, RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

const EDGE_HEALTH = join(ROOT, 'bin/edge-health');

/** CPU alerts occur on a busy machine whatever the threshold, but only the test raises the memory alert. */
const cpu = { warning: 99.8, critical: 99.9 };
const ALARMED = {
  node_name: 'unit_7',
  publish_frequency: 20,
  thresholds: { cpu, memory: { warning: 0.1, critical: 0.2 } },
  alerts: { raise_after_seconds: 0, clear_after_seconds: 0, hysteresis_percent: 0 },
};
const CALM = { ...ALARMED, thresholds: { cpu, memory: { warning: 99.8, critical: 99.9 } } };

/**
 * Lowers and raises the thresholds of a running service repeatedly, so that alerts are raised and resolved, until the returned function is
 * called.
 */
function alarm(t: Test, service: RunningService, folder: string): () => void {
  const file = join(folder, readdirSync(folder).find((name) => /^config-.*yaml$/.test(name)) ?? '');
  const { ros, rest, storage } = parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  let isAlarmed = false;
  const timer = setInterval(() => {
    isAlarmed = !isAlarmed;
    writeFileSync(file, stringify({ ...(isAlarmed ? ALARMED : CALM), ros, rest, storage }));
    service.process.kill('SIGHUP');
  }, 120);
  t.teardown(() => clearInterval(timer));
  return () => clearInterval(timer);
}

async function start(t: Test, folder: string, config: Record<string, unknown>): Promise<RunningService> {
  const service = await RunningService.start(folder, { config });
  t.teardown(() => service.end());
  await service.until<{ publish?: { samples: number } }>('/status', ({ publish }) => (publish?.samples ?? 0) >= 3, 120);
  return service;
}

function linesIn(data: string, what: 'metrics' | 'alerts'): string[] {
  const folder = join(data, what);
  const names = readdirSync(folder).filter((name) => (what === 'metrics' ? METRICS_FILE : ALERTS_FILE).test(name));
  return names.sort().flatMap((name) => {
    const text = readFileSync(join(folder, name), 'utf8');
    if (text !== '' && !text.endsWith('\n')) throw new Error(`${name} ends with a torn line`);
    return text.split('\n').slice(0, -1);
  });
}

function rowsIn(data: string): Record<string, string>[] {
  const [header = '', ...rest] = linesIn(data, 'metrics');
  const rows = rest.filter((line) => line !== header); // At midnight another file begins, with the same header.
  const columns = parseCsvRecord(header) ?? [];
  return rows.map((row) => Object.fromEntries((parseCsvRecord(row) ?? []).map((cell, i) => [columns[i] ?? `column ${i}`, cell])));
}

const collectedIn = (data: string): AlertRecord[] => linesIn(data, 'alerts').map((line) => JSON.parse(line) as AlertRecord);

/** Every change that the service has, over REST. */
async function changesOf(service: RunningService): Promise<Alert[]> {
  const { data } = await service.json<{ data: Alert[] }>('/alerts?changes=true&limit=10000');
  return data;
}

/** Names and sizes of the files in a folder, which may be missing. */
function sizesIn(folder: string): string {
  if (!existsSync(folder)) return '';
  return readdirSync(folder)
    .map((name) => `${name} ${statSync(join(folder, name), { throwIfNoEntry: false })?.size}`)
    .join();
}

/** Checks that each change was collected once, up to the last one collected. */
function checkCollected(t: Test, data: string, before: readonly Alert[]): void {
  const keys = collectedIn(data).map(changeKey);
  t.equal(new Set(keys).size, keys.length, `${keys.length} changes, none twice`);
  const missing = before.filter((alert) => !keys.includes(changeKey(alert)));
  t.same(missing, [], `none of ${before.length} is missing`);
}

t.test('rows contain the values of /health, and record that the service hangs or is gone', async (t) => {
  const folder = temporaryFolder(t);
  const data = temporaryFolder(t);
  const service = await start(t, folder, { ...CALM, publish_frequency: 5 });
  const context = contextFor(data, service.url);
  for (let i = 0; i < 3; i += 1) t.match(await collectMetrics.run(context, GIVEN), { status: 'OK', document: { answered: true, rows: 1 } });
  for (const row of rowsIn(data)) {
    const from = row['sample_time'] ?? '';
    const { data: samples } = await service.json<{ data: Record<string, unknown>[] }>(`/health/history?from=${from}&limit=1`);
    const cell = (value: unknown): string => (value === null ? '' : String(value));
    const measured = Object.fromEntries(Object.entries(samples[0] ?? {}).map(([name, value]) => [name, cell(value)]));
    const { cpu_percent, disk_percent, memory_percent, node_name, sample_time, status, temperature } = row;
    t.same({ cpu_percent, memory_percent, disk_percent, temperature, status, node_name, timestamp: sample_time }, measured);
    t.match(row, { answered: 'true', local: 'true', stale: 'false', reason: '', configured_hertz: '5', storage_state: 'ok' });
  }
  const { started } = await service.json<{ started: string }>('/status');
  t.equal(rowsIn(data).at(-1)?.['service_started'], started);

  const hasty = { ...DEFAULT_CONFIG, ops: { ...DEFAULT_CONFIG.ops, timeouts: { ...DEFAULT_CONFIG.ops.timeouts, collect_metrics: 1 } } };
  service.process.kill('SIGSTOP');
  t.match(await collectMetrics.run({ ...context, config: hasty }, GIVEN), { status: 'WARNING', document: { answered: false } });
  service.process.kill('SIGCONT');
  await service.end('SIGKILL');
  t.match(await collectMetrics.run(context, GIVEN), { status: 'WARNING', lines: [/no response .*ECONNREFUSED.*systemctl status/] });
  const [hung, gone, ...more] = rowsIn(data).slice(3);
  t.match(hung, { node_name: 'health_monitor', answered: 'false', reason: 'no response within 0.8 s', samples: '', cpu_percent: '' });
  t.match(gone, { answered: 'false', reason: /ECONNREFUSED/ });
  t.same(more, []);
});

t.test('the changes of a service that is killed and started again are collected once', async (t) => {
  const folder = temporaryFolder(t);
  const data = temporaryFolder(t);
  const first = await start(t, folder, ALARMED);
  const critical = '/alerts?metric=memory_percent&severity=CRITICAL&resolved=false';
  await first.until<{ count: number }>(critical, ({ count }) => count === 1, 120);
  t.match(await collectAlerts.run(contextFor(data, first.url), GIVEN), { status: 'OK' });
  await collectMetrics.run(contextFor(data, first.url), GIVEN);
  const collected = collectedIn(data).length;
  t.ok(collected >= 1, `${collected} changes`);
  await first.end('SIGKILL');
  t.match(await collectAlerts.run(contextFor(data, first.url), GIVEN), { status: 'WARNING', document: { collected: 0 } });
  await collectMetrics.run(contextFor(data, first.url), GIVEN);
  const second = await start(t, folder, CALM);
  await second.until<{ count: number }>('/alerts?metric=memory_percent&resolved=false', ({ count }) => count === 0, 120);
  const before = await changesOf(second);
  t.match(await collectAlerts.run(contextFor(data, second.url), GIVEN), { status: 'OK' });
  checkCollected(t, data, before);
  const memory = collectedIn(data).filter(({ metric }) => metric === 'memory_percent');
  t.match(
    memory.map(({ resolved, severity }) => `${severity}${resolved ? ' resolved' : ''}`),
    ['CRITICAL', 'CRITICAL resolved'],
  );
  t.same(new Set(memory.map(({ began }) => began)), new Set([memory[0]?.timestamp]), 'one episode, from its raise');

  // A cursor ahead of everything in the database, as from another database.
  const cursor = join(data, 'alerts', 'cursor.json');
  writeFileSync(cursor, JSON.stringify({ ...JSON.parse(readFileSync(cursor, 'utf8')), cursor: 'zzzzzzzz.1_zzzzzzzz.1_0' }));
  const again = await collectAlerts.run(contextFor(data, second.url), GIVEN);
  t.match(again, { status: 'OK', lines: [/database was replaced/], document: { replayed: true } });
  checkCollected(t, data, before);
  t.match(await collectAlerts.run(contextFor(data, second.url), GIVEN), { document: { replayed: false } });

  await collectMetrics.run(contextFor(data, second.url), GIVEN);
  const report = await generateReport.run(contextFor(data, second.url), { options: { days: '0.01' }, positionals: [] });
  t.match(report, {
    status: /^(WARNING|CRITICAL)$/,
    document: {
      is_168_hour_verdict: false,
      run: { origin: 'collected', node_name: 'unit_7', how: [/^3 rows of metrics/, /changes of alerts/, /^the stored samples/] },
      notes: [/^In 1 of 3 rows the service did not respond: .*ECONNREFUSED/],
    },
  });
  const { folder: reports, judgements } = report.document as { readonly folder: string; readonly judgements: readonly Judgement[] };
  const [uptime, , , alerts] = judgements;
  t.match(uptime?.tables[0]?.rows, [[/./, /./, 'unknown', 'what ended the run before is not collected']], 'one restart');
  const value = (of: Judgement | undefined, label: string): number => of?.evidence.find((quantity) => quantity.label === label)?.value ?? 0;
  t.ok(value(alerts, 'episodes that reached CRITICAL') >= 1, 'the episode of memory; a busy machine may have had others');
  t.notOk(alerts?.tables[0]?.rows.some(([, metric]) => metric === 'memory_percent'));
  t.same(readdirSync(reports).sort(), ['junit.xml', 'report.html', 'report.json', 'report.md']);
});

t.test('collects while alerts are raised and resolved', async (t) => {
  const folder = temporaryFolder(t);
  const service = await start(t, folder, CALM);
  await t.test('programs are killed while they write', (t) => killedWhileWriting(t, service, folder));
  await t.test('a full disk is reported with the remedy, and nothing is torn or lost', { skip: whyNotMountable() ?? false }, (t) =>
    fullDisk(t, service, folder),
  );
});

async function killedWhileWriting(t: Test, service: RunningService, folder: string): Promise<void> {
  const data = temporaryFolder(t);
  const calm = alarm(t, service, folder);
  const config = join(folder, 'ops.yaml');
  writeFileSync(config, stringify({ storage: { path: data } }));
  const parameters = (name: string): string[] => ['ops', name, '--config', config, '--url', service.url];
  const contents = (): string => ['metrics', 'alerts'].map((name) => sizesIn(join(data, name))).join();
  // What remains after a kill at any single point is tested in ops/collect/alerts.properties.test.ts.
  for (const name of ['collect_alerts', 'collect_metrics', 'collect_alerts']) {
    const changes = (await changesOf(service)).length;
    await until('more alerts changed', async () => (await changesOf(service)).length > changes);
    const before = contents();
    const child = spawn(EDGE_HEALTH, parameters(name), { stdio: 'ignore' });
    const ended = once(child, 'exit');
    await until('it writes', () => contents() !== before || child.exitCode !== null);
    child.kill('SIGKILL');
    await ended;
  }
  calm();
  const before = await changesOf(service);
  t.ok(before.length >= 2, `${before.length} changes`);
  t.equal(spawnSync(EDGE_HEALTH, parameters('collect_alerts')).status, 0);
  checkCollected(t, data, before);
  const { status, stdout } = spawnSync(EDGE_HEALTH, [...parameters('collect_metrics'), '--json'], { encoding: 'utf8' });
  t.equal(status, 0);
  t.match(JSON.parse(stdout), { answered: true, rows: 1 });
  for (const row of rowsIn(data)) t.match(row, { answered: 'true', node_name: 'unit_7' });
}

async function fullDisk(t: Test, service: RunningService, folder: string): Promise<void> {
  const disk = new SmallDisk(t);
  const data = disk.folder;
  const calm = alarm(t, service, folder);
  const context = contextFor(data, service.url);
  mkdirSync(join(data, 'alerts'));
  t.match(await collectMetrics.run(context, GIVEN), { status: 'OK' });
  await collectAlerts.run(context, GIVEN);
  disk.fill();
  // The rest of the last block is used up by some rows.
  let full = await collectMetrics.run(context, GIVEN);
  const mostRows = statfsSync(data).bsize / 100;
  for (let i = 0; i < mostRows && full.status === 'OK'; i += 1) full = await collectMetrics.run(context, GIVEN);
  t.match(full, { status: 'CRITICAL', lines: [/^CRITICAL {2}no row was written: the disk of .* is full; remove what is not needed/] });
  const rows = rowsIn(data).length;
  const collected = collectedIn(data).length;
  await service.until<{ count: number }>('/alerts?changes=true', ({ count }) => count >= collected + 20, 120);
  t.match(await collectAlerts.run(context, GIVEN), { status: 'CRITICAL', lines: [/the disk of .* is full.*nothing is lost/] });
  linesIn(data, 'alerts');
  disk.free();
  calm();
  t.match(await collectMetrics.run(context, GIVEN), { status: 'OK', document: { cut_bytes: 0 } });
  t.equal(rowsIn(data).length, rows + 1);
  const before = await changesOf(service);
  t.match(await collectAlerts.run(context, GIVEN), { status: 'OK' });
  checkCollected(t, data, before);
}
