import t, { type Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import { diagnosticArray } from '../../../src/ros/diagnostics.ts';
import { ALERT, asPeersSay, CONTEXT, HEALTH, PROGRESS, TEXTS } from '../../../testkit/dds/contents.ts';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { Peer, type PeerEvent, peersUnavailable, VENDORS, type Vendor } from '../../../testkit/dds/peers.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';

/** Tests the topics of the embedded transport, as programs on Cyclone DDS and on Fast DDS see them, and as it sees theirs. */

t.jobs = 3;
t.setTimeout(600_000);

const LASTING_TOPICS = ['/health_status', '/alerts', '/shutdown_status'] as const;
const TIMESTAMP = HEALTH.timestamp;
/** Under load a discovery may take its time; no test result depends on it. */
const TIMEOUT_SECONDS = 120;

function lonelyHost(t: Test): Host {
  const network = new Network();
  t.teardown(() => network.dispose());
  return network.host();
}

const listenTo = (host: Host, vendor: Vendor, topics: readonly string[], ...options: string[]): Promise<Peer> =>
  Peer.start(host, vendor, 'subscribe', [...topics.flatMap((topic) => ['--topic', topic]), ...options]);

/** Waits for this many samples of a topic, and returns them as they arrived. */
async function samplesOf(peer: Peer, topic: string, count: number): Promise<Readonly<Record<string, unknown>>[]> {
  const samples = await peer.waitForCount('sample', count, (sample) => sample.topic === topic, TIMEOUT_SECONDS);
  return samples.map(({ data }) => data);
}

for (const vendor of VENDORS) {
  const skip = peersUnavailable();

  t.test(`${vendor}: every field of every message that the node publishes arrives unchanged`, { skip }, async (t) => {
    const host = lonelyHost(t);
    const node = await GraphNode.start(host);
    const peer = await listenTo(host, vendor, LASTING_TOPICS);

    const statuses = TEXTS.map((text, i): HealthStatus => {
      const status = (['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'] as const)[i % 4] ?? 'OK';
      return { ...HEALTH, cpu_percent: i, status, node_name: text, timestamp: `${text}${TIMESTAMP}` };
    });
    for (const status of statuses) node.publishHealth(status);
    t.strictSame(await samplesOf(peer, '/health_status', statuses.length), statuses.map(asPeersSay));

    const alerts = TEXTS.map((text, i): Alert => {
      const severity = (['WARNING', 'ERROR', 'CRITICAL'] as const)[i % 3] ?? 'ERROR';
      return { ...ALERT, alert_id: text, severity, metric: `${text}!`, timestamp: `?${text}`, resolved: i % 2 === 0, value: -i };
    });
    for (const alert of [ALERT, ...alerts]) node.publishAlert(alert);
    t.strictSame(await samplesOf(peer, '/alerts', alerts.length + 1), [ALERT, ...alerts].map(asPeersSay));

    // A single list is kept: a late joiner gets what is open, however often it has changed.
    const open = Array.from({ length: 512 }, (_, i): Alert => ({ ...ALERT, resolved: false, metric: `${TEXTS[i % 3]}${i}` }));
    for (const list of [[], open.slice(0, 1), open]) node.publishOpenAlerts(list, TIMESTAMP);
    const late = await listenTo(host, vendor, ['/open_alerts'], '--depth', '1');
    const stamp = { sec: Math.floor(Date.parse(TIMESTAMP) / 1000), nanosec: 89_000_000 };
    t.strictSame(await samplesOf(late, '/open_alerts', 1), [{ stamp, node_name: 'health_monitor', alerts: open }]);

    const texts = TEXTS.map((message) => ({ ...PROGRESS, request_id: `${message}1`, requested_by: message, message }));
    for (const progress of [PROGRESS, ...texts]) node.publishShutdown(progress);
    t.strictSame(await samplesOf(peer, '/shutdown_status', texts.length + 1), [PROGRESS, ...texts].map(asPeersSay));

    // /diagnostics is volatile, and published at most once a second: until one arrives the node may not have discovered the peer.
    const viewer = await listenTo(host, vendor, ['/diagnostics'], '--durability', 'volatile');
    const published: HealthStatus[] = [];
    const deadline = Date.now() + TIMEOUT_SECONDS * 1000;
    while (viewer.all('sample').length === 0 && Date.now() < deadline) {
      const text = TEXTS[published.length % TEXTS.length] ?? '';
      published.push({ ...HEALTH, cpu_percent: published.length, node_name: `health_monitor${text}` });
      node.publishHealth(published.at(-1) as HealthStatus);
      await new Promise((later) => setTimeout(later, 200));
    }
    const [diagnostics] = (await samplesOf(viewer, '/diagnostics', 1)) as { status: { values: { key: string; value: string }[] }[] }[];
    const cpu = diagnostics?.status[0]?.values.find(({ key }) => key === 'cpu_percent')?.value;
    t.strictSame(diagnostics, diagnosticArray(published[Number(cpu)] as HealthStatus, CONTEXT));
    t.same(peer.all('lost'), []);
  });

  t.test(`${vendor}: every field that a peer publishes arrives unchanged, whatever its QoS and namespace`, { skip }, async (t) => {
    const host = lonelyHost(t);
    const node = await GraphNode.start(host);
    const status = { memory_percent: 'nan', disk_percent: '-inf', temperature: -40.25, status: 'CRITICAL', timestamp: TIMESTAMP };
    const alert = { severity: 'ERROR', metric: 'disk.root-1', value: 5e-324, resolved: true, timestamp: TIMESTAMP };
    const settings = (fields: object): string[] => Object.entries(fields).flatMap(([field, value]) => ['--set', `${field}=${value}`]);
    const count = 20;
    const numbers = (from: unknown): number[] => Array.from({ length: count }, (_, i) => Number(from) + i);
    const publish = async (reliability: string, durability: string): Promise<void> => {
      const name = `${reliability}/${durability}/${'é𠮷日'.repeat(10)}`;
      // Longer than a message may be: it is sent in fragments. (Fast DDS would also receive no more than that at a time.)
      const alertId = `${reliability}/${durability}/${alert.metric}/${'日'.repeat(460)}`;
      const qos = ['--reliability', reliability, '--durability', durability, '--max-message-bytes', '1472'];
      const options = [...qos, '--hz', '20', '--await-readers', '1'];
      const statusOptions = [...options, ...settings({ ...status, node_name: name }), '--sequence', 'cpu_percent'];
      const alertOptions = [...options, ...settings({ ...alert, alert_id: alertId }), '--sequence', 'threshold'];
      const publishers = await Promise.all([
        Peer.start(host, vendor, 'publish', ['--topic', '/health_status', ...statusOptions]),
        Peer.start(host, vendor, 'publish', ['--topic', '/robot7/alerts', ...alertOptions]),
      ]);
      const received = await node.waitForCount('health', count, (event) => event.status.node_name === name, TIMEOUT_SECONDS);
      // The first samples of a best-effort writer may come before it is discovered; a reliable one must deliver all.
      const from = reliability === 'reliable' ? 1 : received[0]?.status.cpu_percent;
      t.strictSame(
        received.map((event) => event.status),
        numbers(from).map((number) => ({ ...status, memory_percent: null, disk_percent: null, node_name: name, cpu_percent: number })),
      );
      const raised = await node.waitForCount('alert', count, (event) => event.alert.alert_id === alertId, TIMEOUT_SECONDS);
      t.strictSame(
        raised.map((event) => event.alert),
        numbers(reliability === 'reliable' ? 1 : raised[0]?.alert.threshold).map((number) => ({
          ...alert,
          alert_id: alertId,
          threshold: number,
        })),
      );
      for (const publisher of publishers) {
        const { current } = publisher.all('matched').at(-1) as PeerEvent<'matched'>;
        const gone = publisher.all('unmatched').at(-1)?.current ?? current;
        t.equal(Math.min(current, gone), 1, `${name}: one subscription`);
        if (reliability === 'reliable') t.same(publisher.all('incompatible'), [], `${name}: nothing to warn of`);
      }
      await Promise.all(publishers.map((publisher) => publisher.kill()));
    };
    // In this order: the last one would also match the readers that were created for the others.
    await publish('reliable', 'volatile');
    await Promise.all([publish('best-effort', 'volatile'), publish('best-effort', 'transient-local')]);
    await publish('reliable', 'transient-local');
    const reported = [...node.all('health').map(({ status }) => status), ...node.all('alert').map(({ alert }) => alert)];
    t.equal(new Set(reported.map((message) => JSON.stringify(message))).size, reported.length, 'each of them once');
    t.equal((await node.details()).refused, 0);
  });
}

t.test('late joiners get the last ten statuses, volatile readers only new ones', { skip: peersUnavailable() }, async (t) => {
  const host = lonelyHost(t);
  const node = await GraphNode.start(host);
  let number = 0;
  const publish = (): void => {
    number += 1;
    node.publishHealth({ ...HEALTH, cpu_percent: number });
    node.publishAlert({ ...ALERT, value: number });
  };
  while (number < 25) publish();
  const topics = ['/health_status', '/alerts'];
  for (const vendor of VENDORS) {
    const before = await node.details();
    const late = await listenTo(host, vendor, topics);
    const deaf = await listenTo(host, vendor, topics, '--durability', 'volatile');
    await Promise.all(topics.map((topic) => samplesOf(late, topic, 10)));
    await node.detailsUntil(({ subscribers }) => subscribers === (before.subscribers ?? 0) + 2);
    // What is published now shows that both are matched, and that nothing else was still on its way.
    publish();
    for (const [topic, field] of [
      ['/health_status', 'cpu_percent'],
      ['/alerts', 'value'],
    ] as const) {
      const numbers = async (peer: Peer, count: number): Promise<unknown[]> =>
        (await samplesOf(peer, topic, count)).map((data) => data[field]);
      t.same(
        await numbers(late, 11),
        Array.from({ length: 11 }, (_, i) => number - 10 + i),
        `${vendor} ${topic}`,
      );
      t.same(await numbers(deaf, 1), [number]);
    }
    for (const peer of [late, deaf]) t.equal(peer.all('sample').length, peer === late ? 22 : 2);
  }
});

t.test(
  'invalid messages of other programs are refused, and the valid ones that follow them are not',
  { skip: peersUnavailable() },
  async (t) => {
    const host = lonelyHost(t);
    const node = await GraphNode.start(host, { localNode: 'brain' });
    const good = ['--set', 'status=OK', '--set', `timestamp=${TIMESTAMP}`, '--set', 'temperature=1'];
    for (const vendor of VENDORS) {
      const before = await node.details();
      const refused = [
        ['--set', `node_name=${'x'.repeat(10_240)}`, ...good],
        ['--set', 'node_name=a\nb', ...good],
        ['--set', 'node_name=a', '--set', 'status=FINE', '--set', `timestamp=${TIMESTAMP}`],
        ['--set', 'node_name=a', '--set', 'status=OK', '--set', 'timestamp=yesterday'],
        ['--set', 'node_name=a', ...good, '--set', 'memory_percent=1e300'],
      ];
      const once = ['--topic', '/health_status', '--count', '1', '--await-readers', '1', '--stay'];
      const refusing = await Promise.all(refused.map((fields) => Peer.start(host, vendor, 'publish', [...once, ...fields])));
      await node.detailsUntil((details) => details.refused === before.refused + refused.length);
      const name = `${vendor}-good`;
      const publisher = await Peer.start(host, vendor, 'publish', [...once, ...good, '--set', `node_name=${name}`]);
      await node.waitFor('health', ({ status }) => status.node_name === name);
      t.same(
        node.all('health').map(({ status }) => status.node_name),
        VENDORS.slice(0, VENDORS.indexOf(vendor) + 1).map((other) => `${other}-good`),
      );
      await Promise.all([publisher, ...refusing].map((peer) => peer.kill()));
    }
    const lines = node.all('log').filter(({ level }) => level !== 'debug');
    t.equal(lines.length, 1, 'one line for all of them, for a while');
    t.match(lines[0], {
      level: 'warning',
      message: 'message refused',
      fields: { topic: 'rt/health_status', reason: /allowed: .*\(from 127\.0\.0\.1\)/ },
    });
  },
);

t.test(
  'another monitor of the same name is reported, and its statuses are not taken for those of others',
  { skip: peersUnavailable() },
  async (t) => {
    const host = lonelyHost(t);
    const node = await GraphNode.start(host, { localNode: 'brain' });
    t.equal((await node.details()).problem, null);
    const fields = ['node_name=brain', 'status=OK', `timestamp=${TIMESTAMP}`].flatMap((field) => ['--set', field]);
    await Peer.start(host, 'cyclone', 'publish', ['--topic', '/health_status', '--hz', '10', ...fields]);
    const { problem } = await node.detailsUntil((details) => details.problem !== null);
    t.match(problem, /another monitor .* brain.*node_name/);
    t.equal(node.all('log').filter(({ level, message }) => level === 'warning' && /same name/.test(message)).length, 1);
    t.same(node.all('health'), []);
  },
);
