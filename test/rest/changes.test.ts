import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Alert } from '../../src/core/alert.ts';
import { openDatabase } from '../../src/store/database.ts';
import { EventReader } from '../../testkit/events.ts';
import { ask, Contract, measured, PretendedMachine, problemOf, startIn } from '../../testkit/rest.ts';
import { type RunningService, temporaryFolder } from '../../testkit/service.ts';

// Changes of alerts in the order in which they were recorded: what a collector asks for again and again.

const FAST = { publish_frequency: 50, alerts: { raise_after_seconds: 0, clear_after_seconds: 0 } };

interface Collected {
  readonly changes: Alert[];
  readonly id: string;
}

/** Everything after a place, page by page. */
async function collect(service: RunningService, after: string, limit = 1000): Promise<Collected> {
  const changes: Alert[] = [];
  for (let target = `/alerts?changes=true&limit=${limit}&after=${after}`; ; ) {
    const answer = await ask(service, 'GET', target);
    if (answer.status !== 200) throw new Error(`${target}: ${answer.status} ${answer.body}`);
    const { count, data } = JSON.parse(answer.body) as { count: number; data: Alert[] };
    if (count !== data.length || count > limit) throw new Error(`${count} changes on a page of ${limit}`);
    changes.push(...data);
    const next = /^<(\/[^>]*)>; rel="next"$/.exec(String(answer.headers['link'] ?? ''))?.[1];
    if (next === undefined) return { changes, id: String(answer.headers['last-event-id']) };
    target = next;
  }
}

/** Raises and resolves an episode: three changes, for a jump beyond both thresholds is told in steps. */
async function episode(service: RunningService, machine: PretendedMachine): Promise<void> {
  for (const [percent, isOpen] of [
    [99, true],
    [10, false],
  ] as const) {
    machine.setMemoryPercent(percent);
    const isDone = ({ data }: { data: Alert[] }): boolean => data.some(({ severity }) => severity === 'CRITICAL') === isOpen;
    await service.until<{ data: Alert[] }>('/alerts?resolved=false', isDone);
  }
}

function prepared(t: Test): { folder: string; machine: PretendedMachine; options: object } {
  const { path, remove } = temporaryFolder();
  t.teardown(remove);
  const machine = new PretendedMachine(path);
  return { folder: path, machine, options: { config: FAST, arguments: machine.arguments } };
}

const key = ({ alert_id, resolved, severity, timestamp }: Alert): string => `${alert_id} ${timestamp} ${severity} ${resolved}`;

t.test('each change once, as it was published, whatever the pages', async (t) => {
  const { folder, machine, options } = prepared(t);
  const service = await startIn(t, folder, options);
  await measured(service);
  const contract = await Contract.of(service);
  const witness = await EventReader.open(service.url);
  t.same(await collect(service, '0'), { changes: [], id: '0.0_0.0_0' }, 'an empty database has a place, too');
  const found: Alert[] = [];
  let id = '0';
  for (let n = 0; n < 4; n += 1) {
    await episode(service, machine);
    const one = await collect(service, id, n + 1);
    found.push(...one.changes);
    id = one.id;
  }
  const published = witness.alerts();
  t.ok(published.length >= 12);
  t.same(found, published);
  t.same((await collect(service, '0', 2)).changes, published, 'and from the beginning');
  t.same(await collect(service, id), { changes: [], id }, 'nothing new: the place stays');
  t.same((await collect(service, id.replace(/_0$/, '_zz'))).changes, [], 'whatever the number');
  const half = witness.received.filter(({ event }) => event === 'alert')[5]?.id as string;
  t.same((await collect(service, half)).changes, published.slice(6), 'an id of /events is a place here');
  const later = await EventReader.open(service.url, '/events', { 'Last-Event-ID': id });
  await episode(service, machine);
  await service.until('/health', () => later.alerts().length > 0);
  const after = later.alerts();
  t.same((await collect(service, id)).changes.slice(0, after.length), after, 'and a place here is an id of /events');
  for (const reader of [witness, later]) reader.close();

  t.same(await collect(service, `${half}&node=health_monitor`), await collect(service, half));
  t.equal((await ask(service, 'GET', `/alerts?changes=true&after=${id}&node=nobody`)).status, 404);
  for (const target of ['/alerts?changes=true&after=0', `/alerts?changes=true&after=${id}&limit=1`])
    t.same(contract.violations('/alerts', await ask(service, 'GET', target)), []);
});

t.test('only what goes together', async (t) => {
  const { folder, options } = prepared(t);
  const service = await startIn(t, folder, options);
  await measured(service);
  const contract = await Contract.of(service);
  const wrong = [
    'after=0',
    'after=0&changes=false',
    ...['severity=ERROR', 'metric=temperature', 'resolved=true', 'from=2026-01-01', 'to=2026-01-01', 'hours=1', 'cursor=MSB4'].map(
      (other) => `after=0&changes=true&${other}`,
    ),
    ...['', '1', '-1', 'x', '0.0_0.0', '0.0_0.0_0_0', '_1', `${'z'.repeat(11)}.0_0.0_0`].map((id) => `after=${id}&changes=true`),
  ];
  for (const query of wrong) {
    const answer = await ask(service, 'GET', `/alerts?${query}`);
    t.equal(answer.status, 400, query);
    t.match(problemOf(answer), { code: 'invalid_parameter', parameter: 'after' });
    t.same(contract.violations('/alerts', answer), []);
  }
});

t.test('places outlast kill -9 and a restore of an older copy', async (t) => {
  const { folder, machine, options } = prepared(t);
  let service = await startIn(t, folder, options);
  await measured(service);
  await episode(service, machine);
  const first = await collect(service, '0');
  await service.end('SIGKILL');
  service = await startIn(t, folder, options);
  await measured(service);
  await episode(service, machine);
  const second = await collect(service, first.id);
  t.ok(second.changes.length >= 3, 'what came after the restart');
  const copy = Buffer.from(await (await service.get('/snapshot')).arrayBuffer());
  await episode(service, machine);
  const third = await collect(service, second.id);
  t.equal(await service.end(), 0);

  const data = join(folder, 'data');
  rmSync(data, { recursive: true });
  mkdirSync(data);
  writeFileSync(join(data, 'edge-health.db'), copy);
  service = await startIn(t, folder, options);
  await measured(service);
  await episode(service, machine);
  const fourth = await collect(service, third.id);
  t.ok(fourth.changes.length >= 3, 'what came after the restore');
  const all = [first, second, third, fourth].flatMap(({ changes }) => changes).map(key);
  t.equal(new Set(all).size, all.length, 'and nothing twice');
  t.notMatch(
    (await collect(service, '0')).changes.map(key).join('\n'),
    key(third.changes[0] as Alert),
    'although the database has lost what came after the copy',
  );
});

t.test('an id that lies ahead is of another database, and said to be', async (t) => {
  const { folder, machine, options } = prepared(t);
  const service = await startIn(t, folder, options);
  await measured(service);
  await episode(service, machine);
  const { changes, id } = await collect(service, '0');
  const tomorrow = (Date.now() + 86_400_000).toString(36);
  const answer = await ask(service, 'GET', `/alerts?changes=true&after=${tomorrow}.1_${tomorrow}.1_0`);
  t.equal(answer.status, 410);
  t.match(problemOf(answer), { code: 'place_ahead', parameter: 'after', detail: /after=0/ });
  t.same((await Contract.of(service)).violations('/alerts', answer), []);
  t.same((await collect(service, '0')).changes, changes);
  t.equal((await collect(service, id)).changes.length, 0, 'those given out here are not');
});

t.test('a clock that was set back: what comes now still comes after what was there', async (t) => {
  const { folder, machine, options } = prepared(t);
  // As if an earlier run had recorded a change an hour from now.
  mkdirSync(join(folder, 'data'));
  const ahead = Date.now() + 3_600_000;
  const { db } = openDatabase(join(folder, 'data/edge-health.db'), Date.now());
  const values = ['health_monitor/cpu_percent/x', ahead, 'health_monitor', 'cpu_percent', 'WARNING', 85, 80, 1, ahead, 7];
  db.prepare('INSERT INTO alert_change VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(...values);
  db.close();
  const service = await startIn(t, folder, options);
  await measured(service);
  const before = await collect(service, '0');
  t.equal(before.changes.length, 1);
  await episode(service, machine);
  const { changes } = await collect(service, before.id);
  t.ok(changes.length >= 3, `${changes.length} changes after it`);
  t.ok(changes.every(({ timestamp }) => Date.parse(timestamp) < ahead));
});
