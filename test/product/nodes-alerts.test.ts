import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { DAY_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { EventReader } from '../../testkit/service/events.ts';
import { alertOf, type InProcessService, LOCAL, startInProcess, statusOf, TestClocks } from '../../testkit/service/remote-nodes.ts';
import { nextPage } from '../../testkit/service/rest.ts';

type List = { data: Alert[]; count: number };

async function take(service: InProcessService, ...alerts: Alert[]): Promise<void> {
  for (const alert of alerts) service.remoteNodes.onAlert(alert);
  await service.settled();
}

/** Changes received by a reader of alerts only. */
async function received(reader: EventReader, count: number): Promise<Alert[]> {
  await reader.untilCount(count);
  return reader.alerts();
}

const openIds = async (service: InProcessService): Promise<string[]> =>
  (await service.json<List>('/alerts?resolved=false')).data.map(({ alert_id }) => alert_id).sort();

t.test('alerts of other nodes are stored and served, each change once, and are not published again', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  // Only nodes that were received over some time are known after a restart.
  await first.run(70, () => first.remoteNodes.onHealthStatus(statusOf('arm', clocks.wallMs)));
  const reader = await first.events('/events?events=alert');
  const now = clocks.wallMs;
  // The robot's clock is half an hour behind.
  const raised = alertOf('arm', '1', now - 1_800_000);
  const worse = alertOf('arm', '1', now - 1_799_000, { severity: 'CRITICAL', value: 95, threshold: 90 });
  const over = alertOf('arm', '2', now - 1_700_000, { metric: 'temperature', alert_id: 'arm/temperature/2', resolved: true });
  await take(first, raised, raised, worse, worse, raised, over);
  t.same((await first.json<List>('/alerts?node=arm&changes=true')).data, [over, worse, raised]);
  t.same(await first.json('/alerts?node=arm&resolved=false'), { data: [worse], count: 1 });
  t.same(await received(reader, 3), [raised, worse, over]);
  t.same(first.published, []);
  t.match(first.remoteNodes.counts(), { alerts: 3, alerts_refused: 0 });
  await first.stop();

  clocks.pass(60);
  const second = await startInProcess(t, folder, clocks);
  const again = await second.events('/events?events=alert');
  const end = alertOf('arm', '1', now, { severity: 'CRITICAL', value: 70, threshold: 90, resolved: true });
  // The history of the writer, which treats the restarted service as a new reader.
  await take(second, raised, worse, over, end);
  t.same(await received(again, 1), [end], 'what was known is not reported again');
  t.same(await openIds(second), []);
  await take(second, raised, worse);
  t.same(await openIds(second), [], 'and what is over stays over');
  t.equal((await second.json<List>('/alerts?node=arm&changes=true')).count, 4);
});

t.test('alerts of another node about stale nodes, or about this node, are ignored', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const now = service.clocks.wallMs;
  await take(
    service,
    alertOf('leg', '1', now, { metric: 'health_status', severity: 'ERROR', alert_id: 'leg/health_status/1' }),
    alertOf(LOCAL, '2', now),
  );
  t.equal((await service.json<List>('/alerts')).count, 0);
});

t.test('a missed resolution is replaced by the next episode; alerts of another kind or node stay open', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const now = service.clocks.wallMs;
  const unread = alertOf('arm', 'e', now, { severity: 'ERROR' });
  const battery = ['cell_1', 'cell_2'].map((id) => alertOf('arm', id, now, { metric: 'battery', alert_id: `arm/battery/${id}` }));
  await take(service, alertOf('arm', '1', now), unread, alertOf('leg', '1', now), ...battery, alertOf('arm', '2', now + 60_000));
  t.same(await openIds(service), [
    'arm/battery/cell_1',
    'arm/battery/cell_2',
    'arm/cpu_percent/2',
    'arm/cpu_percent/e',
    'leg/cpu_percent/1',
  ]);
  t.match((await service.json<List>('/alerts?node=arm&resolved=true')).data, [{ alert_id: 'arm/cpu_percent/1', severity: 'WARNING' }]);
});

t.test('an alert with an impossible time gets the time of its arrival', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const reader = await service.events('/events?events=alert');
  await take(service, alertOf('arm', '1', service.clocks.wallMs + 400 * DAY_MS), alertOf('arm', '1', 0, { resolved: true }));
  t.match(
    (await received(reader, 2)).map(({ timestamp, resolved }) => [Date.parse(timestamp), resolved]),
    [
      [service.clocks.wallMs, false],
      [service.clocks.wallMs, true],
    ],
  );
  t.same(await openIds(service), []);
});

t.test('the longest possible names are listed page by page', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const node = `/${'機'.repeat(63)}`;
  const ids = Array.from({ length: 3 }, (_, i) => `${node}/battery/${'x'.repeat(200)}${i}`);
  await take(service, ...ids.map((alert_id) => alertOf(node, '', service.clocks.wallMs, { metric: 'battery', alert_id })));
  const found: string[] = [];
  for (let path: string | undefined = `/alerts?limit=1&node=${encodeURIComponent(node)}`; path; ) {
    const response: Response = await fetch(service.url + path);
    t.equal(response.status, 200);
    found.push(...((await response.json()) as List).data.map(({ alert_id }) => alert_id));
    path = nextPage(path, response.headers.get('link'));
  }
  t.same(found.sort(), ids);
});

t.test('floods stay bounded: nodes, statuses, open alerts, changes of alerts, log lines', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const { clocks, remoteNodes } = service;
  const SECONDS = 10;
  const good = (): void => remoteNodes.onHealthStatus(statusOf('good', clocks.wallMs, { cpu_percent: clocks.seconds % 10 }));
  let n = 0;
  good();
  await service.run(SECONDS, (second) => {
    for (let i = 0; i < 3000; i += 1) {
      n += 1;
      // Ten names beyond all limits, and a constant supply of new ones.
      remoteNodes.onHealthStatus(
        statusOf(`flood_${i % 10}`, clocks.wallMs + (i % 900), { cpu_percent: n % 1e6, memory_percent: n * 7919 }),
      );
      if (second < 2) remoteNodes.onHealthStatus(statusOf(`name_${n}`, clocks.wallMs));
      remoteNodes.onAlert(
        alertOf(`flood_${i % 10}`, String(n), clocks.wallMs, { metric: 'battery', alert_id: `flood_${i % 10}/battery/${n}` }),
      );
    }
    for (let i = 0; i < 3000; i += 1) remoteNodes.onHealthStatus(statusOf('one', clocks.wallMs + (i % 1000), { cpu_percent: i }));
    if (second < SECONDS - 2) good();
  });
  const status = await service.json<{ nodes: unknown[]; remote: Record<string, number> }>('/status');
  t.equal(status.nodes.length, 513, 'this node and 512 others');
  const { remote } = status;
  t.ok((remote['statuses'] as number) <= SECONDS * 5000 + 5000 + 513 * 20 * (SECONDS + 1), `${remote['statuses']} taken`);
  t.ok((remote['refused'] as number) > SECONDS * 1000, `${remote['refused']} refused`);
  t.ok((await service.json<List>('/alerts?resolved=false&limit=10000')).count <= 1024 + 2);
  t.ok((remote['alerts'] as number) <= 500 + SECONDS * 5 + SECONDS, `${remote['alerts']} changes`);
  t.ok(service.logged.length < 512 + 500 + 200 + 10, `${service.logged.length} lines`);
  const own = service.published.filter(({ alert_id }) => alert_id.startsWith('good/'));
  t.equal(own.length, 0, 'the flood suppressed no alert');
  await service.run(10);
  t.match(
    service.published.filter(({ alert_id }) => alert_id.startsWith('good/')),
    [{ severity: 'ERROR' }],
    'who falls silent is noticed in it',
  );
});
