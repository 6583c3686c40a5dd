import t from 'tap';
import { type Alert, NODE_LIMIT_METRIC } from '../../src/core/alerts/alert.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { alertOf, type InProcessService, LOCAL, startInProcess, statusOf, TestClocks } from '../../testkit/service/remote-nodes.ts';
import type { StatusDocument } from '../../testkit/service/rest.ts';
import { until } from '../../testkit/wait.ts';

// Another program on the network invents nodes; robots must still be listed.

type List = { readonly data: readonly Alert[]; readonly count: number };

const receive = (service: InProcessService, node: string): void =>
  service.remoteNodes.onHealthStatus(statusOf(node, service.clocks.wallMs));

/** Receives a status of each of this many nodes that do not exist. */
function inventNodes(service: InProcessService, count: number, prefix = 'made_up'): void {
  for (let i = 0; i < count; i += 1) receive(service, `${prefix}_${i}`);
}

const remoteNames = async (service: InProcessService): Promise<string[]> =>
  (await service.json<StatusDocument>('/status')).nodes.filter(({ local }) => !local).map(({ node_name }) => node_name);

const openStaleAlerts = async (service: InProcessService): Promise<readonly Alert[]> =>
  (await service.json<List>('/alerts?metric=health_status&resolved=false&limit=10000')).data;

t.test('invented nodes give way to a robot as soon as they are stale, and are gone after a restart', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  inventNodes(first, 600);
  receive(first, 'robot');
  t.equal((await fetch(`${first.url}/health?node=robot`)).status, 404, 'for the time being there is no place');
  await first.run(100, () => {
    first.measure();
    receive(first, 'robot');
  });
  t.equal((await fetch(`${first.url}/health?node=robot`)).status, 200);
  t.equal((await remoteNames(first)).length, 512);
  t.match(first.remoteNodes.counts(), { refused: 600 - 512 + 16, evicted: 1 }, 'after 15 s one of them went, and no more than that');
  t.equal((await first.json<List>('/health/history?node=robot&hours=24')).count, 85);
  await first.stop();

  clocks.pass(10);
  const second = await startInProcess(t, folder, clocks);
  t.same(await remoteNames(second), ['robot']);
  await second.settled();
  t.same((await second.json<List>('/alerts?resolved=false')).data, [], 'nor is anything open');
  t.equal((await second.json<List>('/health/history?node=robot&hours=24')).count, 85);
  t.equal((await fetch(`${second.url}/health?node=made_up_1`)).status, 404);
});

t.test('established nodes are kept against any number of newcomers, stale or not', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const robots = Array.from({ length: 100 }, (_, i) => `robot_${i}`);
  await service.run(70, () => {
    for (const robot of robots) receive(service, robot);
  });
  await service.run(80, (second) => inventNodes(service, 500, `wave_${second}`));
  const names = await remoteNames(service);
  t.equal(names.length, 512);
  t.same(names.slice(0, 100), robots);
  t.equal(
    (await openStaleAlerts(service)).filter(({ alert_id }) => alert_id.startsWith('robot_')).length,
    32,
    'none of them received for an hour',
  );
  t.ok(service.logged.length < 800, `${service.logged.length} lines in the log`);
  for (const { name } of [{ name: 'wave_7_7' }, { name: 'wave_79_499' }])
    t.equal((await fetch(`${service.url}/health/history?node=${name}`)).status, 404, 'of what was evicted or refused nothing is kept');
});

t.test('invented nodes that publish for minutes give way to a robot that is received for twice as long', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  const run = (service: InProcessService, seconds: number, alive: (second: number) => void): Promise<void> =>
    service.run(seconds, (second) => {
      service.measure();
      alive(second);
    });
  await run(first, 70, (second) => second % 15 === 0 && inventNodes(first, 512));
  await run(first, 80, () => receive(first, 'robot'));
  await first.stop();
  clocks.pass(10);
  const second = await startInProcess(t, folder, clocks);
  t.equal((await remoteNames(second)).includes('robot'), false, 'by then it was a newcomer among 480 that were received over time');
  await run(second, 150, () => receive(second, 'robot'));
  await second.stop();
  clocks.pass(10);
  const third = await startInProcess(t, folder, clocks);
  const names = await remoteNames(third);
  t.equal(names.includes('robot'), true);
  t.equal(names.length, 480);
  await run(third, 60, () => receive(third, 'robot'));
  t.match(await third.remoteNodes.forgetStaleOnRequest('alice'), {
    ok: true,
    message: 'stale nodes forgotten: 479; open alerts resolved: 32',
  });
  // In /status the list of so many nodes may be a second old.
  await until('the others are gone', async () => (await remoteNames(third)).length === 1);
  t.same(await remoteNames(third), ['robot']);
});

t.test('a new node that becomes stale is an ERROR, for at most 32 nodes; they are forgotten after two hours', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  inventNodes(service, 100);
  await service.run(60);
  const open = await openStaleAlerts(service);
  t.equal(open.length, 32);
  t.match(open[0], { severity: 'ERROR', threshold: 32 });
  const { nodes } = await service.json<StatusDocument>('/status');
  t.equal(nodes.filter(({ stale }) => stale).length, 100, 'all of them are shown as stale');
  service.clocks.pass(7200);
  await service.run(10);
  t.same(await remoteNames(service), []);
  t.same(await openStaleAlerts(service), []);
});

t.test('a node named in the configuration is not a newcomer', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const rules = { graceSeconds: 2, forgetAfterHours: 168, expectedNodes: ['robot'] };
  const first = await startInProcess(t, folder, clocks, { rules });
  inventNodes(first, 511);
  receive(first, 'robot');
  await first.run(40, () => inventNodes(first, 100, 'more'));
  t.match(
    (await openStaleAlerts(first)).find(({ alert_id }) => alert_id.startsWith('robot/')),
    { severity: 'ERROR' },
  );
  await first.stop();
  const second = await startInProcess(t, folder, clocks, { rules });
  t.same(await remoteNames(second), ['robot']);
});

t.test('a node that comes and goes raises an alert each time at first, and then rarely; one that stays away always does', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  await service.run(3700, () => receive(service, 'robot'));
  const raised = (): number => service.published.filter(({ metric, resolved }) => metric === 'health_status' && !resolved).length;
  for (let i = 0; i < 20; i += 1) {
    await service.run(6);
    await service.run(3, () => receive(service, 'robot'));
  }
  t.equal(raised(), 10);
  await service.run(700);
  t.equal(raised(), 11);
  t.equal((await openStaleAlerts(service)).length, 1);
});

t.test('a WARNING of this node reports that the node limit is almost reached, and is resolved when it is not', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  inventNodes(first, 460);
  await first.run(1);
  const places = (): readonly Alert[] => first.published.filter(({ metric }) => metric === NODE_LIMIT_METRIC);
  t.same(places(), []);
  inventNodes(first, 2, 'more');
  await first.run(2);
  t.match(places(), [{ severity: 'WARNING', value: 462, threshold: 461, resolved: false }]);
  t.match(places()[0]?.alert_id, new RegExp(`^${LOCAL}/remote_nodes/[0-9A-Z]{26}$`));
  t.same(first.remoteNodes.openAlerts(), places(), 'it is part of the status of this node');
  const { count } = await first.json<List>('/alerts?metric=remote_nodes&resolved=false');
  t.equal(count, 1);
  await first.stop();
  const second = await startInProcess(t, folder, clocks);
  await second.settled();
  t.match(second.published, [{ alert_id: places()[0]?.alert_id, value: 0, resolved: true }]);
  t.same(second.remoteNodes.openAlerts(), []);
});

t.test('invalid node names are not loaded either', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  const bad = ['x'.repeat(65), 'a\u202eb'];
  for (const name of bad) {
    const status = statusOf(name, clocks.wallMs);
    first.store.recordHealth(status, JSON.stringify(status), clocks.wallMs);
    await first.store.recordAlert(alertOf(name, '1', clocks.wallMs));
  }
  await first.stop();
  const second = await startInProcess(t, folder, clocks);
  t.same(await remoteNames(second), []);
  await second.settled();
  t.same((await second.json<List>('/alerts?resolved=false')).data, []);
  for (const name of bad) t.equal((await fetch(`${second.url}/health/history?node=${encodeURIComponent(name)}`)).status, 404);
});
