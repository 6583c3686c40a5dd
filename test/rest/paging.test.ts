import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { measured, nextPage, recorded, sendRequest, startService } from '../../testkit/service/rest.ts';

const machine = new MachineTree(t, 'vm-no-sensors');
const config = { publish_frequency: 100, alerts: { raise_after_seconds: 0, clear_after_seconds: 0 } };
const service = await startService(t, { config, arguments: machine.arguments });
await measured(service);
const contract = await Contract.of(service);

interface Page<T> {
  readonly data: T[];
  readonly count: number;
}

/** Follows the Link headers to the end; each page is compared with the document. `between`: called after each page. */
async function everyPage<T>(target: string, limit: number, between?: () => Promise<unknown>): Promise<T[][]> {
  const pages: T[][] = [];
  let next: string | undefined = `${target}${target.includes('?') ? '&' : '?'}limit=${limit}`;
  while (next !== undefined) {
    const answer = await sendRequest(service, 'GET', next);
    const violations = contract.violations(target.split('?')[0] as string, answer);
    if (answer.status !== 200 || violations.length > 0) throw new Error(`${next}: ${answer.status} ${violations.join('; ')}`);
    const { data, count } = JSON.parse(answer.body) as Page<T>;
    if (count !== data.length) throw new Error(`${next}: count is ${count} for ${data.length} elements`);
    pages.push(data);
    await between?.();
    const link = answer.headers['link'] as string | undefined;
    next = nextPage(target, link);
    if (answer.headers['truncated'] !== String(link !== undefined)) throw new Error(`truncated is ${answer.headers['truncated']}`);
    if (pages.length > 2000) throw new Error('the pages do not end');
  }
  return pages;
}

/** Raises and resolves this many episodes. */
async function episodes(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const resolved = async (wanted: boolean): Promise<void> => {
      await service.until<Page<Alert>>(`/alerts?resolved=${wanted}`, ({ data }) => data.length === (wanted ? n + 1 : 1));
    };
    machine.setMemoryPercent(90);
    await resolved(false);
    machine.setMemoryPercent(10);
    await resolved(true);
  }
}

const EPISODES = 12;
await episodes(EPISODES);

t.test('the pages of a history return every sample exactly once, in both orders, while new ones arrive', async (t) => {
  await recorded(service, 120);
  const all = (await service.json<Page<HealthStatus>>('/health/history?limit=10000')).data;
  const [from, to] = [all[10]?.timestamp as string, all[100]?.timestamp as string];
  // At 100 Hz two samples may share a millisecond.
  const wanted = all.filter(({ timestamp }) => timestamp >= from && timestamp < to);
  for (const limit of [1, 7, 50, 89, 90, 91, 10_000]) {
    const ascending = await everyPage<HealthStatus>(`/health/history?from=${from}&to=${to}`, limit);
    t.same(ascending.flat(), wanted, `in pages of ${limit}`);
    t.ok(
      ascending.every(({ length }) => length <= limit),
      'no page is longer than asked',
    );
    t.ok(
      ascending.slice(0, -1).every(({ length }) => length > 0),
      'no page but the last is empty',
    );
    const descending = await everyPage<HealthStatus>(`/health/history?from=${from}&to=${to}&order=desc`, limit);
    t.same(descending.flat(), wanted.toReversed(), `in pages of ${limit}, newest first`);
  }
});

t.test('a range without an end is fixed by its first page', async (t) => {
  for (const order of ['asc', 'desc']) {
    const sampled: string[] = [];
    // After each page at least one further sample is taken. One taken before may be recorded only now, and belongs to the range.
    const another = async (): Promise<void> => {
      const before = new Date().toISOString();
      sampled.push((await service.until<HealthStatus>('/health', ({ timestamp }) => timestamp > before)).timestamp);
    };
    const found = (await everyPage<HealthStatus>(`/health/history?hours=1&order=${order}`, 25, another)).flat();
    const newest = found
      .map(({ timestamp }) => timestamp)
      .toSorted()
      .at(-1) as string;
    const to = new Date(Date.parse(newest) + 1).toISOString();
    const { data } = await service.json<Page<HealthStatus>>(`/health/history?hours=1&limit=10000&order=${order}&to=${to}`);
    t.same(found, data, 'nothing is missing, nothing comes twice');
    t.ok(sampled.length > 3, `${sampled.length} pages`);
    t.ok(newest < (sampled[0] as string), 'what came after the first page is not in it');
  }
});

t.test('pages of averages and of CSV are consecutive as well', async (t) => {
  const whole = await service.until<Page<HealthStatus>>('/health/history?step=1s', ({ count }) => count > 4);
  const until = whole.data.at(-1)?.timestamp as string;
  const target = `/health/history?step=1s&from=${whole.data[0]?.timestamp}&to=${until}`;
  const wanted = (await service.json<Page<HealthStatus>>(target)).data;
  t.ok(wanted.length > 2);
  t.same((await everyPage<HealthStatus>(target, 1)).flat(), wanted);
  t.same((await everyPage<HealthStatus>(`${target}&order=desc`, 2)).flat(), wanted.toReversed());

  const csv: string[] = [];
  let next: string | undefined = `${target}&limit=2`;
  while (next !== undefined) {
    const { body, headers } = await sendRequest(service, 'GET', next, { Accept: 'text/csv' });
    csv.push(...body.trimEnd().split('\r\n').slice(1));
    next = nextPage(next, headers['link'] as string | undefined);
  }
  t.same(
    csv.map((line) => line.split(',').at(-1)),
    wanted.map(({ timestamp }) => timestamp),
  );
});

t.test('the pages of /alerts return every alert exactly once, newest first', async (t) => {
  const targets = [
    '/alerts',
    '/alerts?hours=1',
    '/alerts?resolved=true',
    '/alerts?severity=WARNING',
    '/alerts?metric=memory_percent&node=health_monitor',
    '/alerts?changes=true',
    '/alerts?changes=true&resolved=false&hours=1',
  ];
  for (const target of targets) {
    const { data } = await service.json<Page<Alert>>(target);
    t.ok(data.length >= EPISODES, `${target} has ${data.length}`);
    t.same(
      data.map(({ timestamp }) => timestamp),
      data
        .map(({ timestamp }) => timestamp)
        .toSorted()
        .toReversed(),
      'newest first',
    );
    t.equal(new Set(data.map((alert) => JSON.stringify(alert))).size, data.length, 'none twice');
    for (const limit of [1, 5, data.length, 10_000])
      t.same((await everyPage<Alert>(target, limit)).flat(), data, `${target} in pages of ${limit}`);
  }
  const changes = (await service.json<Page<Alert>>('/alerts?changes=true')).data;
  t.equal(changes.length, 2 * EPISODES, 'each was raised and resolved');
  t.equal(new Set(changes.map(({ alert_id }) => alert_id)).size, EPISODES, 'as one alert');
});

t.test('alerts are filtered by the parameters', async (t) => {
  const of = async (query: string): Promise<Alert[]> => (await service.json<Page<Alert>>(`/alerts?${query}`)).data;
  t.equal((await of('resolved=true')).length, EPISODES);
  t.same(await of('resolved=false'), []);
  t.same(await of('severity=CRITICAL'), []);
  t.same(await of('metric=cpu_percent'), []);
  t.same(await of('from=2020-01-01&to=2020-01-02'), []);
  machine.setMemoryPercent(99);
  await service.until<Page<Alert>>('/alerts?severity=CRITICAL', ({ count }) => count === 1);
  const [open] = await of('resolved=false');
  t.match(open, { severity: 'CRITICAL', metric: 'memory_percent', value: 99, threshold: 95, resolved: false });
  t.same((await of(''))[0], open, 'the newest is first');
  const { timestamp } = open as Alert;
  const since = (await service.until<HealthStatus>('/health', (status) => status.timestamp > timestamp)).timestamp;
  t.same(await of(`from=${since}`), [open], 'an alert belongs to every range in which it is open');
});
