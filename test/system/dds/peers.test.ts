import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';

/** The peers judge the embedded transport in the other tests; here they have to agree among themselves. */

t.setTimeout(600_000);

function lonelyHost(t: Test): Host {
  const network = new Network();
  t.teardown(() => network.dispose());
  return network.host();
}

const PAIRS = VENDORS.flatMap((publisher) => VENDORS.map((subscriber) => ({ publisher, subscriber })));

t.test('peers exchange messages', { skip: peersUnavailable() }, async (t) => {
  for (const { publisher, subscriber } of PAIRS) {
    t.test(`${publisher} to ${subscriber}: every field arrives unchanged`, async (t) => {
      const host = lonelyHost(t);
      const folder = temporaryFolder(t);
      const long = { status: 'wäre 日本 🤖 "\\ '.repeat(5000), node_name: '√'.repeat(3500), alert_id: '', metric: 'a\nb\tc\u0001' };
      const texts = Object.entries(long).flatMap(([field, text]) => {
        writeFileSync(join(folder, field), text);
        return ['--set-file', `${field}=${join(folder, field)}`];
      });
      const topics = ['--topic', '/health_status', '--topic', '/robot/alerts'];
      const listener = await Peer.start(host, subscriber, 'subscribe', topics);

      const numbers = ['--set', 'cpu_percent=0.30000000000000004', '--set', 'memory_percent=nan', '--set', 'disk_percent=-inf'];
      const count = ['--hz', '50', '--count', '3', '--await-readers', '1'];
      await Peer.start(host, publisher, 'publish', [
        '--topic',
        '/health_status',
        ...count,
        ...numbers,
        ...texts,
        '--sequence',
        'timestamp',
      ]);
      const statuses = await listener.waitForCount('sample', 3, ({ topic }) => topic === '/health_status');
      t.same(
        statuses.map(({ data }) => data),
        [1, 2, 3].map((number) => ({
          cpu_percent: 0.1 + 0.2,
          memory_percent: 'NaN',
          disk_percent: '-Infinity',
          temperature: 0,
          status: long.status,
          node_name: long.node_name,
          timestamp: String(number),
        })),
      );

      const alert = ['--set', 'value=5e-324', '--set', 'resolved=true', '--set', 'severity=ERROR', '--sequence', 'threshold'];
      const writer = await Peer.start(host, publisher, 'publish', ['--topic', '/robot/alerts', ...count, ...alert, ...texts]);
      const alerts = await listener.waitForCount('sample', 3, ({ topic }) => topic === '/robot/alerts');
      t.same(
        alerts.map(({ data }) => data),
        [1, 2, 3].map((number) => ({
          alert_id: '',
          severity: 'ERROR',
          metric: long.metric,
          value: 5e-324,
          threshold: number,
          timestamp: '',
          resolved: true,
        })),
      );
      t.equal(alerts[0]?.writer, writer.all('writer')[0]?.guid, 'and says who wrote it');
    });

    t.test(`${publisher} to ${subscriber}: a late joiner gets the last ten, a volatile one none of them`, async (t) => {
      const host = lonelyHost(t);
      const topic = ['--topic', '/health_status'];
      const writer = await Peer.start(host, publisher, 'publish', [
        ...topic,
        '--hz',
        '0',
        '--count',
        '25',
        '--stay',
        '--sequence',
        'node_name',
      ]);
      await writer.waitFor('written', ({ number }) => number === 25);
      const late = await Peer.start(host, subscriber, 'subscribe', topic);
      const samples = await late.waitForCount('sample', 10);
      t.same(
        samples.map(({ data }) => data['node_name']),
        [16, 17, 18, 19, 20, 21, 22, 23, 24, 25].map(String),
      );
      // Only now: the volatile one may also receive multicast that is meant for the other.
      const deaf = await Peer.start(host, subscriber, 'subscribe', [...topic, '--durability', 'volatile']);
      await deaf.waitFor('matched');
      t.equal(await deaf.kill(), 0, 'SIGTERM ends a peer in good order');
      t.same(deaf.all('sample'), []);
      t.equal(late.all('sample').length, 10);
    });
  }
});

t.test('peers on two hosts exchange messages over a lossy link', { skip: peersUnavailable() }, async (t) => {
  for (const { publisher, subscriber } of PAIRS.filter((pair) => pair.publisher !== pair.subscriber)) {
    t.test(`${publisher} to ${subscriber}: with reliable nothing is lost, duplicated or out of order`, async (t) => {
      const network = new Network();
      t.teardown(() => network.dispose());
      const segment = network.segment();
      const [near, far] = [network.host(), network.host()];
      segment.attach(near);
      const { link } = await segment.attachLossy(far, { seed: 11 });
      await link.set({ lossPercent: 10, duplicatePercent: 10, reorderPercent: 10, holdMs: 30 });
      const topic = ['--topic', '/health_status', '--depth', '200'];
      const reader = await Peer.start(near, subscriber, 'subscribe', topic);
      const count = ['--hz', '50', '--count', '100', '--await-readers', '1', '--sequence', 'cpu_percent', '--stay'];
      const writer = await Peer.start(far, publisher, 'publish', [...topic, ...count, '--lease', '6']);
      const samples = await reader.waitForCount('sample', 100, () => true, 120);
      t.same(
        samples.map(({ data }) => data['cpu_percent']),
        [...Array(100).keys()].map((index) => index + 1),
      );
      const { forth, back } = await link.state();
      t.ok(forth.lost > 0 && forth.duplicated > 0 && forth.reordered > 0 && back.lost > 0, 'though the wire did its worst');

      t.equal(await writer.kill('SIGKILL'), 'SIGKILL');
      await reader.waitFor('unmatched', ({ current }) => current === 0);
      t.equal(reader.all('sample').length, 100);
    });
  }
});

t.test('peers discover each other and their graph', { skip: peersUnavailable() }, async (t) => {
  for (const ros of ['humble', 'iron'] as const) {
    t.test(`${ros}: each peer reads the other's node names`, async (t) => {
      const host = lonelyHost(t);
      const observers = await Promise.all(VENDORS.map((vendor) => Peer.start(host, vendor, 'discovery')));
      await Promise.all(observers.map((observer) => observer.waitFor('reader')));
      const [cyclone, fastdds] = await Promise.all(
        VENDORS.map((vendor) => Peer.start(host, vendor, 'graph', ['--ros', ros, '--announce', `/robot/${vendor}_node`])),
      );
      if (!cyclone || !fastdds) throw new Error('there are two vendors');
      for (const [reader, writer, name] of [
        [cyclone, fastdds, 'fastdds_node'],
        [fastdds, cyclone, 'cyclone_node'],
      ] as const) {
        const { nodes, gid } = await reader.waitFor('entities');
        t.same(nodes, [{ namespace: '/robot', name, readers: [], writers: [] }]);
        t.equal(gid.length / 2, ros === 'humble' ? 24 : 16);
        const prefix = writer.all('reader')[0]?.guid.slice(0, 24);
        t.equal(gid.slice(0, 24), prefix);
        for (const observer of observers) {
          const endpoint = await observer.waitFor('endpoint', ({ kind, guid }) => kind === 'writer' && guid.startsWith(prefix as string));
          t.match(endpoint, {
            topic: 'ros_discovery_info',
            type: 'rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_',
            reliability: 'reliable',
            durability: 'transient-local',
          });
          t.match(endpoint.user_data, ros === 'humble' ? /^$/ : /^typehash=RIHS01_[0-9a-f]{64};$/);
          const { user_data } = await observer.waitFor('participant', ({ guid }) => guid.startsWith(prefix as string));
          t.equal(user_data, 'enclave=/;');
        }
      }
      await fastdds.kill();
      for (const observer of observers) {
        const prefix = fastdds.all('reader')[0]?.guid.slice(0, 24) as string;
        await observer.waitFor('endpoint_gone', ({ kind, guid }) => kind === 'writer' && guid.startsWith(prefix));
        await observer.waitFor('participant_gone', ({ guid }) => guid.startsWith(prefix));
      }
    });
  }

  t.test('a client that finds no server reports that and ends with status 3', async (t) => {
    const host = lonelyHost(t);
    for (const vendor of VENDORS) {
      const client = await Peer.start(host, vendor, 'call', ['--match-seconds', '0.5']);
      t.equal(await client.ended, 3);
      t.equal(client.all('service_missing').length, 1);
    }
  });
});
