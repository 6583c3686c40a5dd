import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { EventReader } from '../../testkit/service/events.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { measured, nextPage, problemOf, sendRequest, startIn } from '../../testkit/service/rest.ts';

// Changes of alerts in the order in which they were recorded, as a collector requests them again and again.

const folder = temporaryFolder(t);
const machine = new MachineTree(t, 'vm-no-sensors');
const options = {
  config: { publish_frequency: 50, alerts: { raise_after_seconds: 0, clear_after_seconds: 0 } },
  arguments: machine.arguments,
};
let service = await startIn(t, folder, options);
await measured(service);

interface Collected {
  readonly changes: Alert[];
  readonly id: string;
}

/** Everything after a cursor, page by page. */
async function collect(after: string, limit = 1000): Promise<Collected> {
  const changes: Alert[] = [];
  for (let target = `/alerts?changes=true&limit=${limit}&after=${after}`; ; ) {
    const answer = await sendRequest(service, 'GET', target);
    if (answer.status !== 200) throw new Error(`${target}: ${answer.status} ${answer.body}`);
    const { count, data } = JSON.parse(answer.body) as { count: number; data: Alert[] };
    if (count !== data.length || count > limit) throw new Error(`${count} changes on a page of ${limit}`);
    changes.push(...data);
    const next = nextPage(target, answer.headers['link'] as string | undefined);
    if (next === undefined) return { changes, id: String(answer.headers['last-event-id']) };
    target = next;
  }
}

/** Raises and resolves an episode: three changes. */
async function episode(): Promise<void> {
  for (const [percent, wanted] of [
    [90, 'WARNING'],
    [99, 'CRITICAL'],
    [10, undefined],
  ] as const) {
    machine.setMemoryPercent(percent);
    await service.until<{ data: Alert[] }>('/alerts?resolved=false', ({ data }) => data[0]?.severity === wanted);
  }
}

async function restart(): Promise<void> {
  service = await startIn(t, folder, options);
  await measured(service);
}

const key = ({ alert_id, resolved, severity, timestamp }: Alert): string => `${alert_id} ${timestamp} ${severity} ${resolved}`;

t.test('each change is returned once, as it was published, whatever the page size', async (t) => {
  const contract = await Contract.of(service);
  const witness = await EventReader.open(service.url);
  t.same(await collect('0'), { changes: [], id: '0.0_0.0_0' }, 'an empty database has a cursor, too');
  const found: Alert[] = [];
  let id = '0';
  for (let n = 0; n < 4; n += 1) {
    await episode();
    const one = await collect(id, n + 1);
    found.push(...one.changes);
    id = one.id;
  }
  t.equal(found.length, 12);
  await witness.untilAlert((alert) => key(alert) === key(found[11] as Alert));
  const published = witness.alerts();
  t.same(found, published);
  t.same((await collect('0', 2)).changes, published, 'and from the beginning');
  t.same(await collect(id), { changes: [], id }, 'nothing new: the cursor stays');
  t.same((await collect(id.replace(/_0$/, '_zz'))).changes, [], 'whatever the number');
  const half = witness.received.filter(({ event }) => event === 'alert')[5]?.id as string;
  t.same((await collect(half)).changes, published.slice(6), 'an id of /events is a cursor here');
  const later = await EventReader.open(service.url, '/events', { 'Last-Event-ID': id });
  await episode();
  const { changes: after } = await collect(id);
  await later.untilAlert((alert) => key(alert) === key(after.at(-1) as Alert));
  t.same(later.alerts(), after, 'and a cursor here is an id of /events');
  for (const reader of [witness, later]) reader.close();

  t.same(await collect(`${half}&node=health_monitor`), await collect(half));
  t.equal((await sendRequest(service, 'GET', `/alerts?changes=true&after=${id}&node=nobody`)).status, 404);
  for (const target of ['/alerts?changes=true&after=0', `/alerts?changes=true&after=${id}&limit=1`])
    t.same(contract.violations('/alerts', await sendRequest(service, 'GET', target)), []);
});

t.test('parameters that cannot be combined with after are refused', async (t) => {
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
    const answer = await sendRequest(service, 'GET', `/alerts?${query}`);
    t.equal(answer.status, 400, query);
    t.match(problemOf(answer), { code: 'invalid_parameter', parameter: 'after' });
    t.same(contract.violations('/alerts', answer), []);
  }
});

t.test('an id that is ahead belongs to another database, and the problem states that', async (t) => {
  const { changes, id } = await collect('0');
  const tomorrow = (Date.now() + 86_400_000).toString(36);
  const answer = await sendRequest(service, 'GET', `/alerts?changes=true&after=${tomorrow}.1_${tomorrow}.1_0`);
  t.equal(answer.status, 410);
  t.match(problemOf(answer), { code: 'cursor_ahead', parameter: 'after', detail: /after=0/ });
  t.same((await Contract.of(service)).violations('/alerts', answer), []);
  t.same((await collect('0')).changes, changes);
  t.equal((await collect(id)).changes.length, 0, 'those given out here are not');
});

t.test('cursors survive SIGKILL and a restore of an older copy', async (t) => {
  const first = await collect('0');
  await service.end('SIGKILL');
  await restart();
  await episode();
  const second = await collect(first.id);
  t.equal(second.changes.length, 3, 'what came after the restart');
  const copy = Buffer.from(await (await service.get('/snapshot', { headers: { 'Edge-Health-Snapshot': '1' } })).arrayBuffer());
  await episode();
  const third = await collect(second.id);
  t.equal(await service.end(), 0);

  const data = join(folder, 'data');
  rmSync(data, { recursive: true });
  mkdirSync(data);
  writeFileSync(join(data, 'edge-health.db'), copy);
  await restart();
  await episode();
  const fourth = await collect(third.id);
  t.equal(fourth.changes.length, 3, 'what came after the restore');
  const all = [first, second, third, fourth].flatMap(({ changes }) => changes).map(key);
  t.equal(new Set(all).size, all.length, 'nothing comes twice');
  t.notMatch(
    (await collect('0')).changes.map(key).join('\n'),
    key(third.changes[0] as Alert),
    'the database has lost what came after the copy',
  );
});

t.test('after the clock was set back, new changes still follow the existing ones', async (t) => {
  // As if an earlier run had recorded a change an hour from now.
  await service.end();
  rmSync(join(folder, 'data'), { recursive: true });
  mkdirSync(join(folder, 'data'));
  const ahead = Date.now() + 3_600_000;
  const { db } = openDatabase(join(folder, 'data/edge-health.db'), Date.now());
  const values = ['health_monitor/cpu_percent/x', ahead, 'health_monitor', 'cpu_percent', 'WARNING', 85, 80, 1, ahead, 7];
  db.prepare('INSERT INTO alert_change VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(...values);
  db.close();
  await restart();
  const before = await collect('0');
  t.equal(before.changes.length, 1);
  await episode();
  const { changes } = await collect(before.id);
  t.equal(changes.length, 3);
  t.ok(changes.every(({ timestamp }) => Date.parse(timestamp) < ahead));
});
