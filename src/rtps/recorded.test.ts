import assert from 'node:assert/strict';
import t from 'tap';
import { isEnd, readEndpoint, readParticipant } from './discovery/discovery-data.ts';
import { incompatiblePolicy, OWN_QOS } from './endpoints/qos.ts';
import { Reassembly } from './endpoints/reassembly.ts';
import { OctetBudget } from './limits.ts';
import { dissect, only, type Submessage } from './testing/dissect.ts';
import { type Recorded, recorded } from './testing/recorded.ts';
import { decode, type Layout } from './wire/cdr.ts';
import type { DataFragSubmessage } from './wire/message-reader.ts';
import { ParameterList } from './wire/parameters.ts';
import { ENTITY, entityOf, prefixOf, VENDOR } from './wire/protocol.ts';

/** Cyclone DDS 0.10.2 and Fast DDS 2.9.1 with the peers of testkit/dds/peers, and ROS 2 Jazzy's own tools with both. */
const ALL = recorded();
const DEBIAN = ['cyclone', 'fastdds'] as const;
const HEALTH_STATUS: Layout = {
  fields: [
    ['cpu_percent', 'float64'],
    ['memory_percent', 'float64'],
    ['disk_percent', 'float64'],
    ['temperature', 'float64'],
    ['status', 'string'],
    ['node_name', 'string'],
    ['timestamp', 'string'],
  ],
};

const datagrams = (all: readonly Recorded[]): Buffer[] => all.map(({ datagram }) => datagram);
const vendorOf = ({ datagram }: Recorded): number => datagram.readUInt16BE(6);

t.test('every recorded datagram is read completely', async (t) => {
  t.ok(ALL.length > 500, `${ALL.length} datagrams`);
  const unread: string[] = [];
  for (const entry of ALL) {
    try {
      if (dissect(entry.datagram).length === 0) unread.push(`${entry.scene}: nothing in ${entry.datagram.toString('hex')}`);
    } catch (error) {
      unread.push(`${entry.scene}: ${error} in ${entry.datagram.toString('hex')}`);
    }
  }
  t.same(unread, []);
});

t.test('the recordings contain every kind of submessage', async (t) => {
  const kinds: readonly Submessage['kind'][] = ['data', 'dataFrag', 'heartbeat', 'ackNack', 'gap', 'nackFrag'];
  for (const [name, vendor] of [
    ['Cyclone DDS', VENDOR.CYCLONE_DDS],
    ['Fast DDS', VENDOR.FAST_DDS],
  ] as const) {
    const found = new Set(
      ALL.filter((entry) => vendorOf(entry) === vendor).flatMap(({ datagram }) => dissect(datagram).map(({ kind }) => kind)),
    );
    for (const kind of kinds) t.ok(found.has(kind), `${kind} of ${name}`);
  }
  t.ok(only('heartbeatFrag', datagrams(ALL)).length > 0, 'heartbeatFrag of Cyclone DDS');
});

t.test('participants', async (t) => {
  for (const [scenes, vendor, leaseSeconds] of [
    [/^cyclone/, VENDOR.CYCLONE_DDS, 10],
    [/^ros2.*cyclone/, VENDOR.CYCLONE_DDS, 10],
    [/^fastdds/, VENDOR.FAST_DDS, 20],
    [/^ros2.*fastrtps/, VENDOR.FAST_DDS, 20],
  ] as const) {
    const said = only('data', datagrams(recorded(scenes))).filter(({ sender, isKey }) => entityOf(sender) === ENTITY.SPDP_WRITER && !isKey);
    const alive = said.filter(({ inlineQos }) => !isEnd(inlineQos));
    t.ok(alive.length >= 3, `${scenes}: ${alive.length} announcements`);
    for (const { payload, sender } of alive) {
      const list = payload && ParameterList.ofPayload(payload);
      const data = list && readParticipant(list, 0);
      assert(data);
      t.match(data, { prefix: prefixOf(sender), vendor, leaseSeconds, userData: 'enclave=/;' });
      for (const locators of [data.metaUnicast, data.userUnicast]) {
        t.ok(locators.length > 0);
        for (const { address, port } of locators) {
          t.match(address, /^(127\.0\.0\.1|10\.77\.\d\.\d)$/);
          t.ok(port > 1023);
        }
      }
    }
  }
});

t.test('participants that leave', async (t) => {
  for (const scenes of [/^cyclone/, /^fastdds/]) {
    const ends = only('data', datagrams(recorded(scenes))).filter(
      ({ sender, inlineQos, isKey }) => entityOf(sender) === ENTITY.SPDP_WRITER && (isKey || isEnd(inlineQos)),
    );
    t.ok(ends.length > 0, `${scenes}: ${ends.length}`);
  }
});

t.test('endpoints: topic, type, user data and QoS', async (t) => {
  for (const name of DEBIAN) {
    const said = only('data', datagrams(recorded(new RegExp(`^${name}-topic`))));
    const of = (entity: number) =>
      said
        .filter(({ sender, payload, isKey }) => entityOf(sender) === entity && payload && !isKey)
        .map(({ payload }) =>
          readEndpoint(ParameterList.ofPayload(payload as Buffer) as ParameterList, entity === ENTITY.PUBLICATIONS_WRITER),
        );
    const [writers, readers] = [of(ENTITY.PUBLICATIONS_WRITER), of(ENTITY.SUBSCRIPTIONS_WRITER)];
    t.ok(writers.length > 0 && readers.length > 0);
    for (const endpoint of [...writers, ...readers]) {
      t.match(endpoint, {
        topic: 'rt/health_status',
        type: 'edge_health_interfaces::msg::dds_::HealthStatus_',
        userData: /^typehash=RIHS01_[0-9a-f]{64};$/,
      });
    }
    const own = { ...OWN_QOS, reliable: true, durability: 1 };
    for (const { qos } of writers) t.equal(incompatiblePolicy(qos, own), null, 'a reader of ours reads it');
    const asks = new Set(readers.map(({ qos }) => `${qos.reliable ? 'reliable' : 'best effort'}, ${qos.durability}`));
    t.same([...asks].sort(), ['best effort, 0', 'reliable, 0', 'reliable, 1']);
    for (const { qos } of readers) t.equal(incompatiblePolicy(own, qos), null, 'a writer of ours satisfies it');
  }
});

t.test('samples: NaN, infinity, other alphabets, an empty text', async (t) => {
  for (const name of DEBIAN) {
    const samples = only('data', datagrams(recorded(new RegExp(`^${name}-topic`)))).filter(
      ({ sender, payload, isKey }) => (entityOf(sender) & 0xc0) === 0 && payload && !isKey,
    );
    t.ok(samples.length > 0, name);
    for (const { payload, sourceTimestampMs } of samples) {
      assert.deepEqual(decode(HEALTH_STATUS, payload as Buffer), {
        cpu_percent: 12.5,
        memory_percent: Number.NaN,
        disk_percent: Number.POSITIVE_INFINITY,
        temperature: -40.25,
        status: 'WARNING',
        node_name: 'Käfer-ロボット',
        timestamp: '',
      });
      t.ok((sourceTimestampMs ?? 0) > Date.UTC(2020, 0), 'with the time when they were written');
    }
  }
});

/** The samples of the publisher in the large scenes: numbered lines. */
function lines(octets: number): string {
  let text = '';
  for (let line = 1; text.length < octets; line += 1) text += `${line} ${'the quick brown fox jumps over the lazy dog '.repeat(4)}`;
  return text.slice(0, octets);
}

t.test('large samples in fragments, forwards and backwards', async (t) => {
  for (const name of DEBIAN) {
    for (const octets of [10_000, 100_000]) {
      const fragments = only('dataFrag', datagrams(recorded(new RegExp(`^${name}-large-${octets}$`))));
      for (const order of [fragments, fragments.toReversed()]) {
        const budget = new OctetBudget(1 << 20);
        const reassembly = new Reassembly({ take: (n) => budget.take(n), giveBack: (n) => budget.giveBack(n) });
        const wholes = order.flatMap((fragment: DataFragSubmessage) => reassembly.add(fragment) ?? []);
        t.ok(wholes.length >= 1, `${name}, ${octets}: ${fragments.length} submessages, ${wholes.length} samples`);
        t.equal(decode(HEALTH_STATUS, wholes[0]?.payload as Buffer)['node_name'], lines(octets));
      }
    }
  }
});

t.test('lost fragments were requested', async (t) => {
  for (const name of DEBIAN) {
    const asked = only('nackFrag', datagrams(recorded(new RegExp(`^${name}-lossy`))));
    t.ok(asked.length > 0, name);
    for (const { set } of asked)
      t.ok(set.base >= 1 && set.numbers.length > 0 && set.numbers.every((number) => number <= 6), JSON.stringify(set));
  }
});

t.test('gaps and acknowledgements match the samples', async (t) => {
  for (const { start, set } of only('gap', datagrams(ALL)))
    t.ok(start >= 1 && set.base >= start && set.base < 1000, `gap ${start} to ${set.base}`);
  for (const { set } of only('ackNack', datagrams(ALL))) assert.ok(set.base >= 0 && set.base < 1000 && set.numbers.length <= 256);
  for (const { first, last } of only('heartbeat', datagrams(ALL))) assert.ok(first >= 1 && last >= first - 1 && last < 1000);
});
