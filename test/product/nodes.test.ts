import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Aggregate } from '../../src/core/ports.ts';
import { HOUR_MS, isoUtc } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { alertOf, type InProcessService, LOCAL, startInProcess, statusOf, TestClocks } from '../../testkit/service/remote-nodes.ts';
import type { StatusDocument } from '../../testkit/service/rest.ts';

type List<T> = { data: T[]; count: number };

/** `offsetMs`: how far the clock of the other robot is off. */
const receive = (service: InProcessService, node: string, offsetMs = 0, more: Partial<HealthStatus> = {}): HealthStatus => {
  const status = statusOf(node, service.clocks.wallMs + offsetMs, more);
  service.remoteNodes.onHealthStatus(status, { participant: node, address: '10.0.0.2' });
  return status;
};

/** Seconds until a node that is received once a second is established. */
const ESTABLISHING = 70;

const nodeIn = (document: StatusDocument, name: string): StatusDocument['nodes'][number] | undefined =>
  document.nodes.find(({ node_name }) => node_name === name);

t.test('one appliance shows every robot: current, history, aggregates, alerts, metrics, by its own clock', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const sent: HealthStatus[] = [];
  await service.run(30, (second) => {
    service.measure();
    sent.push(receive(service, 'arm', -3 * HOUR_MS, { cpu_percent: second, temperature: 50.25 }));
    if (second % 10 === 0) receive(service, '/fleet/cart', 2 * HOUR_MS, { status: 'CRITICAL', cpu_percent: 99 });
  });
  const status = await service.json<StatusDocument>('/status');
  t.same(
    status.nodes.map(({ node_name }) => node_name),
    [LOCAL, 'arm', '/fleet/cart'],
  );
  t.match(nodeIn(status, 'arm'), {
    local: false,
    status: 'OK',
    age_seconds: 1,
    period_seconds: 1,
    stale: false,
    timestamp: sent.at(-1)?.timestamp,
  });
  t.match(nodeIn(status, '/fleet/cart'), { status: 'CRITICAL', period_seconds: 10, stale: false, age_seconds: 10 });
  t.match(nodeIn(status, LOCAL), { local: true, stale: false, period_seconds: 1 });
  t.equal(nodeIn(status, 'arm')?.clock_ahead_seconds, null);
  t.equal(nodeIn(status, '/fleet/cart')?.clock_ahead_seconds, 7200, 'a clock that is ahead is marked');
  t.match(status.remote, { statuses: 33, duplicates: 0, refused: 0 });

  t.same(await service.json('/health?node=arm'), sent.at(-1), 'its current status');
  t.match(await service.json('/health'), { node_name: LOCAL }, 'without a name this machine’s');
  const first = sent[0]?.timestamp as string;
  const history = await service.json<List<HealthStatus>>(`/health/history?node=arm&from=${first}`);
  t.same(history.data, sent, 'its history under its own time stamps');
  const to = isoUtc(Date.parse(sent.at(-1)?.timestamp as string) + 1000);
  const aggregate = await service.json<Aggregate>(`/health/aggregate?node=arm&from=${first}&to=${to}`);
  t.match(aggregate, { samples_received: 30, samples_expected: 30, longest_gap_seconds: 1, metrics: { cpu_percent: { min: 0, max: 29 } } });
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  t.match(metrics, 'edge_health_temperature_celsius{node="arm"} 50.25');
  t.match(metrics, 'edge_health_status{node="/fleet/cart",status="CRITICAL"} 1');
  t.match(metrics, 'edge_health_node_stale{node="arm"} 0');
  t.equal((await fetch(`${service.url}/health?node=nobody`)).status, 404);
  t.same(service.published, [], 'nothing of it goes out again');
});

t.test('repeated statuses are stored once, also after a restart; overtaken ones are stored in order', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  await first.run(ESTABLISHING, () => receive(first, 'arm'));
  const start = clocks.wallMs;
  const all = Array.from({ length: 40 }, (_, i) => statusOf('arm', start + i * 1000));
  const order = [0, 1, 2, 4, 3, 5, 6, 6, 5, 7, 8, 9];
  for (const at of order) first.remoteNodes.onHealthStatus(all[at] as HealthStatus);
  t.match(first.remoteNodes.counts(), { statuses: ESTABLISHING + 10, duplicates: 2, late: 1 });
  await first.stop();
  clocks.pass(10);

  const second = await startInProcess(t, folder, clocks);
  const history = async (): Promise<HealthStatus[]> =>
    (await second.json<List<HealthStatus>>(`/health/history?node=arm&from=${isoUtc(start)}`)).data;
  // The last ten of the writer, and what it published while this service was down.
  for (const status of all.slice(0, 20)) second.remoteNodes.onHealthStatus(status);
  t.same(await history(), all.slice(0, 20));
  t.match(second.remoteNodes.counts(), { statuses: 10, duplicates: 10 });
  t.equal((await second.json<StatusDocument>('/status')).nodes.find(({ node_name }) => node_name === 'arm')?.period_seconds, 1);
});

t.test('a node without data does not hide one in danger, in any order of appearance', async (t) => {
  for (const nodes of [
    ['burning', 'silent'],
    ['silent', 'burning'],
  ]) {
    const service = await startInProcess(t, temporaryFolder(t));
    await service.run(3, () => {
      service.measure();
      for (const node of nodes) receive(service, node, 0, node === 'burning' ? { status: 'CRITICAL', temperature: 99 } : {});
    });
    await service.run(10, () => {
      service.measure();
      receive(service, 'burning', 0, { status: 'CRITICAL', temperature: 99 });
    });
    const document = await service.json<StatusDocument>('/status');
    t.match(nodeIn(document, 'silent'), { status: 'UNKNOWN', stale: true });
    t.equal(document.status, 'CRITICAL');
    service.remoteNodes.onAlert(alertOf('burning', '1', service.clocks.wallMs, { severity: 'CRITICAL' }));
    await service.run(10, () => service.measure());
    const silent = await service.json<StatusDocument>('/status');
    t.match(
      nodeIn(silent, 'burning'),
      { status: 'CRITICAL', stale: true },
      'nor is it hidden when its own data stop, while its alert is open',
    );
    t.equal(silent.status, 'CRITICAL');
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    t.match(metrics, 'edge_health_status{node="burning",status="CRITICAL"} 1');
    t.notMatch(metrics, /edge_health_temperature_celsius\{node="(burning|silent)"/, 'old values are not exported as current ones');
  }
});

t.test('without a network, nodes of other hosts are not judged; they are some time after its return', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const { clocks, remoteNodes } = service;
  const send = (name: string, address: string): void =>
    remoteNodes.onHealthStatus(statusOf(name, clocks.wallMs), { participant: name, address, appliance: null });
  await service.run(20, () => {
    send('arm', '10.0.0.2');
    send('cart', '127.0.0.1');
  });
  service.isOffline = true;
  await service.run(60);
  t.match(
    service.published,
    [/^cart\//].map((alert_id) => ({ alert_id })),
    'one on this host is',
  );
  t.equal(service.published.length, 1);
  service.isOffline = false;
  await service.run(4);
  t.equal(service.published.length, 1);
  await service.run(20);
  t.match(service.published[1], { alert_id: /^arm\//, resolved: false });
});

t.test('a node that stops is an ERROR within three periods and the grace, and resolves when it returns', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const reader = await service.events('/events?events=alert');
  await service.run(20, () => receive(service, 'arm', -HOUR_MS));
  t.same(service.published, []);
  await service.run(10);
  const open = await service.json<List<Alert>>('/alerts?node=arm&resolved=false');
  t.equal(open.count, 1);
  const alert = open.data[0] as Alert;
  t.match(alert, { severity: 'ERROR', metric: 'health_status', threshold: 5, resolved: false });
  t.match(alert.alert_id, /^arm\/health_status\/[0-9A-Z]{26}$/);
  t.ok(alert.value > 5 && alert.value <= 6.5, `${alert.value} s`);
  t.same(service.published, open.data, 'it goes out like the alerts of this machine');
  const stale = await service.json<StatusDocument>('/status');
  t.match(nodeIn(stale, 'arm'), { stale: true, status: 'UNKNOWN', age_seconds: 11 });
  t.equal(stale.open_alerts.ERROR, 1);
  t.equal(stale.status, 'ERROR', 'the worst of all nodes and open alerts');

  await service.run(1, () => receive(service, 'arm', -HOUR_MS));
  t.equal(service.published.length, 1, 'one status may be a last one');
  await service.run(1, () => receive(service, 'arm', -HOUR_MS));
  t.match(service.published.slice(1), [{ alert_id: alert.alert_id, resolved: true, value: 0 }]);
  await service.run(3, () => receive(service, 'arm', -HOUR_MS));
  const back = await service.json<StatusDocument>('/status');
  t.match(nodeIn(back, 'arm'), { stale: false, status: 'OK' });
  t.equal(back.open_alerts.ERROR, 0);
  await reader.untilCount(2);
  t.same(reader.alerts(), service.published, 'readers received both');
  reader.close();
});

t.test('a restart neither loses, duplicates nor silently clears the alert, and the nodes from before are expected', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  await first.run(ESTABLISHING + 20, (second) => {
    receive(first, 'arm');
    receive(first, 'leg');
    if (second < ESTABLISHING) receive(first, 'eye');
  });
  const raised = first.published[0] as Alert;
  t.match(raised, { alert_id: /^eye\// });
  await first.stop();
  clocks.pass(60);

  const second = await startInProcess(t, folder, clocks);
  t.same((await second.json<List<Alert>>('/alerts?resolved=false')).data, [raised], 'still open');
  t.match(
    (await second.json<StatusDocument>('/status')).nodes.map(({ node_name, stale, timestamp }) => [node_name, stale, timestamp]),
    [
      [LOCAL, false, null],
      ['arm', false, null],
      ['leg', false, null],
      ['eye', true, null],
    ],
  );
  await second.run(30, () => receive(second, 'arm'));
  t.match(second.published, [{ alert_id: /^leg\/health_status\//, threshold: 5 }], 'leg never came back; eye is not raised again');
  await second.run(5, () => {
    receive(second, 'arm');
    receive(second, 'eye');
  });
  t.match(second.published.slice(1), [{ alert_id: raised.alert_id, resolved: true }]);
  await second.stop();

  const third = await startInProcess(t, folder, clocks);
  t.match((await third.json<List<Alert>>('/alerts?resolved=false')).data, [{ alert_id: /^leg\// }]);
});

t.test('a node stale for long is forgotten: its alerts are resolved, and its history stays', async (t) => {
  const folder = temporaryFolder(t);
  const rules = { graceSeconds: 2, forgetAfterHours: 0.1, expectedNodes: [] };
  const service = await startInProcess(t, folder, new TestClocks(), { rules });
  await service.run(ESTABLISHING, () => receive(service, 'arm'));
  service.remoteNodes.onAlert(alertOf('arm', '1', service.clocks.wallMs));
  await service.run(30);
  t.equal((await service.json<List<Alert>>('/alerts?node=arm&resolved=false')).count, 2);
  await service.run(400);
  t.equal((await service.json<List<Alert>>('/alerts?node=arm&resolved=false')).count, 0);
  const status = await service.json<StatusDocument>('/status');
  t.same(status.open_alerts, { WARNING: 0, ERROR: 0, CRITICAL: 0 });
  t.equal(nodeIn(status, 'arm'), undefined, 'no longer one of the nodes');
  t.equal((await service.json<List<HealthStatus>>('/health/history?node=arm&hours=24')).count, ESTABLISHING);
  t.ok(service.logged.some(({ message, fields }) => message.startsWith('remote node forgotten') && fields['node'] === 'arm'));
  await service.run(3, () => receive(service, 'arm'));
  t.match(nodeIn(await service.json<StatusDocument>('/status'), 'arm'), { stale: false, status: 'OK' }, 'and it may come back');
});

t.test('this machine is not missed under its former name, and no node is missed while observation is off', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  await first.run(ESTABLISHING, () => {
    first.measure();
    receive(first, 'arm');
  });
  await first.store.recordAlert(alertOf(LOCAL, '1', clocks.wallMs));
  await first.stop();
  const renamed = await startInProcess(t, folder, clocks, { localNode: 'pi_7' });
  t.same((await renamed.json<List<Alert>>('/alerts?resolved=false')).data, [], 'what was open under the old name is over');
  await renamed.run(60, () => renamed.measure());
  t.match(renamed.published, [{ alert_id: /^arm\// }], 'but another node is missed');
  t.equal((await renamed.json<List<HealthStatus>>(`/health/history?node=${LOCAL}&hours=24`)).count, ESTABLISHING);
  await renamed.stop();
  const off = await startInProcess(t, folder, clocks, { localNode: 'pi_7', isOn: false });
  await off.run(60);
  t.equal((await off.json<List<Alert>>('/alerts?resolved=false')).count, 0);
  t.same(
    (await off.json<StatusDocument>('/status')).nodes.map(({ node_name }) => node_name),
    ['pi_7'],
  );
});

t.test('a node that leaves is no failure, also after restarts, until it is received again', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  await first.run(ESTABLISHING, () => receive(first, 'arm'));
  const leftMs = clocks.wallMs;
  first.remoteNodes.onPublisherGone('arm', 'arm', true);
  first.remoteNodes.onPublisherGone('nobody', 'nobody', true);
  await first.run(60);
  t.same(first.published, []);
  t.match(nodeIn(await first.json<StatusDocument>('/status'), 'arm'), { left: isoUtc(leftMs), stale: false, status: 'UNKNOWN' });
  await first.stop();
  clocks.pass(60);

  const second = await startInProcess(t, folder, clocks);
  await second.run(60);
  t.same(second.published, [], 'a restart does not expect it');
  t.match(nodeIn(await second.json<StatusDocument>('/status'), 'arm'), { left: isoUtc(leftMs), stale: false });
  await second.run(5, () => receive(second, 'arm'));
  t.match(nodeIn(await second.json<StatusDocument>('/status'), 'arm'), { left: null, stale: false, status: 'OK' });
  await second.run(20);
  t.match(
    second.published,
    [{ alert_id: /^arm\/health_status\//, severity: 'ERROR', resolved: false }],
    'when it vanishes then, that is an ERROR',
  );
  second.remoteNodes.onPublisherGone('arm', 'arm', true);
  await second.settled();
  t.match(second.published.slice(1), [{ alert_id: second.published[0]?.alert_id, resolved: true }], 'one that was stale and leaves');
  await second.stop();

  const third = await startInProcess(t, folder, clocks);
  await third.run(60);
  t.same(third.published, [], 'what a run knew at its end is kept');
  await third.remoteNodes.forget('arm', 'of the test');
  t.equal((await third.json<StatusDocument>('/status')).nodes.length, 1);
});

t.test('a node whose publisher the transport cannot identify leaves like any other', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t), new TestClocks());
  const send = (): void => service.remoteNodes.onHealthStatus(statusOf('arm', service.clocks.wallMs), null);
  await service.run(ESTABLISHING, send);
  service.remoteNodes.onPublisherGone('arm', null, true);
  service.remoteNodes.onPublisherGone(LOCAL, null, true);
  await service.run(60);
  t.same(service.published, []);
  await service.run(5, send);
  await service.run(20);
  t.match(service.published, [{ alert_id: /^arm\/health_status\//, resolved: false }], 'when it vanishes then, that is an ERROR');
});

t.test('an expected node that leaves is an ERROR, also when the list changes afterwards', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const rules = { graceSeconds: 2, forgetAfterHours: 168, expectedNodes: ['arm'] };
  const service = await startInProcess(t, folder, clocks, { rules });
  await service.run(ESTABLISHING, () => {
    receive(service, 'arm');
    receive(service, 'leg');
  });
  for (const node of ['arm', 'leg']) service.remoteNodes.onPublisherGone(node, node, true);
  await service.run(20);
  t.match(service.published, [{ alert_id: /^arm\//, severity: 'ERROR', resolved: false }]);
  const { nodes } = await service.json<StatusDocument>('/status');
  t.ok(
    nodes.filter(({ local }) => !local).every(({ left }) => left !== null),
    'and it is shown as left all the same',
  );
  service.remoteNodes.setRules({ ...rules, expectedNodes: ['leg'] });
  await service.run(20);
  t.match(service.published.slice(1), [
    { alert_id: /^arm\//, resolved: true },
    { alert_id: /^leg\//, resolved: false },
  ]);
  await service.stop();

  const again = await startInProcess(t, folder, clocks, { rules: { ...rules, expectedNodes: ['arm', 'leg'] } });
  await again.run(60);
  t.match(again.published, [{ alert_id: /^arm\//, resolved: false }], 'expected after a restart, too');
});

t.test('statuses of a wrong clock get the time of their arrival, which is reported once; a clock that is set is followed', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const { wallMs: start } = service.clocks;
  const offsets = { future: 26 * HOUR_MS, minutes: 61_000, past: Date.UTC(1970, 0, 2) - start, last: Date.UTC(9999, 11, 31) - start };
  await service.run(5, () => {
    for (const [node, offset] of Object.entries(offsets)) receive(service, node, offset);
    receive(service, 'set', service.clocks.wallMs < start + 3000 ? 0 : -5 * HOUR_MS);
  });
  const status = await service.json<StatusDocument>('/status');
  const arrivals = Array.from({ length: 5 }, (_, second) => isoUtc(start + second * 1000));
  for (const node of Object.keys(offsets)) {
    t.match(nodeIn(status, node), { status: 'OK', stale: false, period_seconds: 1, timestamp: arrivals[4] }, node);
    const { data } = await service.json<List<HealthStatus>>(`/health/history?node=${node}&hours=100`);
    t.same(
      data.map(({ timestamp }) => timestamp),
      arrivals,
      node,
    );
  }
  t.match(
    status.nodes.map((node) => node.clock_ahead_seconds),
    [null, 93_600, 61, null, Math.round(offsets.last / 1000), null],
  );
  t.equal((await service.json<List<HealthStatus>>('/health/history?node=set&hours=100')).count, 5);
  t.equal(service.logged.filter(({ message }) => message.includes('clock is wrong')).length, 4);
  await service.run(10);
  t.equal(service.published.length, 5, 'their stale statuses are reported all the same');
});

t.test('statuses dated ahead displace nothing: what the node sends afterwards is current, and newest in its history', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  await service.run(ESTABLISHING, () => receive(service, 'arm'));
  await service.run(5, () => {
    receive(service, 'arm', 50 * 60_000, { cpu_percent: 99 });
    receive(service, 'arm', 0, { cpu_percent: 1 });
  });
  t.match(await service.json('/health?node=arm'), { cpu_percent: 1 });
  const { data } = await service.json<List<HealthStatus>>('/health/history?node=arm&hours=100&order=desc&limit=1');
  t.match(data, [{ timestamp: isoUtc(service.clocks.wallMs - 1000) }]);
  t.equal(nodeIn(await service.json<StatusDocument>('/status'), 'arm')?.period_seconds, 1);
});

t.test('what a writer with a wrong clock repeats is stored once', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  for (let i = 0; i < 10; i += 1) receive(service, 'past', Date.UTC(1970, 0, 2) - service.clocks.wallMs + i * 1000);
  t.equal((await service.json<List<HealthStatus>>('/health/history?node=past&hours=100')).count, 1);
  t.match(service.remoteNodes.counts(), { statuses: 10, not_stored: 9 });
});

t.test('open alerts of a database that is opened late continue, unless they were raised meanwhile', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  await service.run(10, () => receive(service, 'arm'));
  await service.run(10);
  const mine = service.published[0] as Alert;
  const old = (node: string): Alert =>
    alertOf(node, '', service.clocks.wallMs - HOUR_MS, {
      alert_id: `${node}/health_status/01`,
      metric: 'health_status',
      severity: 'ERROR',
      value: 6,
      threshold: 5,
    });
  const cpu = alertOf('leg', '1', service.clocks.wallMs - HOUR_MS);
  const found = [old('arm'), old('leg'), cpu, alertOf(LOCAL, '1', service.clocks.wallMs)];
  const recent = [{ ms: service.clocks.wallMs - 60_000, print: 0 }];
  for (const alert of found) {
    await service.store.recordAlert(alert);
    service.live.setAlert(alert);
  }
  service.remoteNodes.adopt(found, [
    { name: 'leg', firstSeenMs: service.clocks.wallMs - 2 * HOUR_MS, lastSeenMs: service.clocks.wallMs - HOUR_MS, recent },
    { name: 'eye', firstSeenMs: service.clocks.wallMs - 2 * HOUR_MS, lastSeenMs: service.clocks.wallMs - HOUR_MS, recent },
  ]);
  await service.settled();
  t.match(service.published.slice(1), [{ alert_id: 'arm/health_status/01', resolved: true }], 'the duplicate is closed');
  await service.run(60, () => receive(service, 'leg'));
  t.match(
    service.published.slice(2).map(({ alert_id, resolved }) => [alert_id.split('/').slice(0, 2).join('/'), resolved]),
    [
      ['leg/health_status', true],
      ['eye/health_status', false],
    ],
    'one goes on until its node is received; who was received lately is expected',
  );
  const open = (await service.json<List<Alert>>('/alerts?resolved=false')).data.map(({ alert_id }) => alert_id);
  t.ok(open.includes(mine.alert_id) && open.includes(cpu.alert_id));
  await service.run(1, () => service.remoteNodes.onAlert({ ...cpu, timestamp: isoUtc(service.clocks.wallMs), resolved: true }));
  t.notOk((await service.json<List<Alert>>('/alerts?resolved=false')).data.some(({ alert_id }) => alert_id === cpu.alert_id));
});
