import t from 'tap';
import { only } from '../../rtps/testing/dissect.ts';
import { Wire } from '../../rtps/testing/memory-network.ts';
import { participantOn } from '../../rtps/testing/participants.ts';
import { recorded } from '../../rtps/testing/recorded.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import { decode, type Layout } from '../../rtps/wire/cdr.ts';
import { guidOf } from '../../rtps/wire/protocol.ts';
import { HUMBLE_PARTICIPANT_ENTITIES_INFO, PARTICIPANT_ENTITIES_INFO } from '../interfaces.generated.ts';
import { typeHashData } from './dds-names.ts';
import { NodeGraph } from './node-graph.ts';

const hex = (gid: unknown): string => Buffer.from((gid as { data: number[] }).data).toString('hex');

interface Info {
  readonly gid: unknown;
  readonly node_entities_info_seq: readonly {
    readonly node_namespace: string;
    readonly node_name: string;
    readonly reader_gid_seq: readonly unknown[];
    readonly writer_gid_seq: readonly unknown[];
  }[];
}

t.test('each reader gets gids of its size, and only the latest message', async (t) => {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const participant = participantOn(wire.host({ lan: '10.0.0.1' }), time.now);
  const other = participantOn(wire.host({ lan: '10.0.0.2' }), time.now);
  t.teardown(() => {
    participant.stop();
    other.stop();
  });
  const graph = new NodeGraph(participant, '/robot1');
  const [reader, writer] = [guidOf(participant.prefix, 0x204), guidOf(participant.prefix, 0x303)];
  const received: { info: Info; octets: number }[] = [];
  for (const [userData, layout, octets] of [
    [typeHashData(PARTICIPANT_ENTITIES_INFO), PARTICIPANT_ENTITIES_INFO, 16],
    ['', HUMBLE_PARTICIPANT_ENTITIES_INFO as Layout, 24],
  ] as const) {
    other.createReader({
      topic: 'ros_discovery_info',
      type: PARTICIPANT_ENTITIES_INFO.ddsName,
      reliable: true,
      transientLocal: true,
      depth: 1,
      userData,
      onSample: ({ data }) => received.push({ info: decode(layout, data.payload ?? Buffer.alloc(0)) as unknown as Info, octets }),
    });
  }
  graph.publish([{ name: 'before', readers: [], writers: [] }]);
  graph.publish([
    { name: 'health_monitor', readers: [], writers: [writer] },
    { name: 'threshold_monitor', readers: [reader], writers: [] },
  ]);
  await participant.start();
  await other.start();
  await time.pass(3);
  t.equal(received.length, 2);
  for (const { info, octets } of received) {
    const gid = (guid: string): string => guid.padEnd(2 * octets, '0');
    t.equal(hex(info.gid), gid(guidOf(participant.prefix, 0x1c1)));
    t.same(
      info.node_entities_info_seq.map((node) => ({
        ...node,
        reader_gid_seq: node.reader_gid_seq.map(hex),
        writer_gid_seq: node.writer_gid_seq.map(hex),
      })),
      [
        { node_namespace: '/robot1', node_name: 'health_monitor', reader_gid_seq: [], writer_gid_seq: [gid(writer)] },
        { node_namespace: '/robot1', node_name: 'threshold_monitor', reader_gid_seq: [gid(reader)], writer_gid_seq: [] },
      ],
    );
  }
});

t.test('messages of real peers have the same layout', async (t) => {
  for (const [scenes, layout, octets] of [
    [/graph-iron/, PARTICIPANT_ENTITIES_INFO, 16],
    [/graph-humble/, HUMBLE_PARTICIPANT_ENTITIES_INFO as Layout, 24],
  ] as const) {
    const said = only(
      'data',
      recorded(scenes).map(({ datagram }) => datagram),
    ).flatMap(({ payload, sender }) => {
      // Discovery's own endpoints, and keys.
      if (!payload || (Number.parseInt(sender.slice(-2), 16) & 0xc0) !== 0) return [];
      const info = decode(layout, payload) as unknown as Info;
      return info.node_entities_info_seq.map((node) => ({ ...node, gid: hex(info.gid), sender }));
    });
    t.ok(said.length >= 2, `${scenes}: ${said.length} messages`);
    for (const { gid, node_name, node_namespace, sender, writer_gid_seq } of said) {
      t.match({ node_name, node_namespace }, { node_name: 'wheel_driver', node_namespace: '/robot1' });
      t.equal(gid.length, 2 * octets);
      t.equal(gid.slice(0, 24), sender.slice(0, 24));
      for (const writer of writer_gid_seq.map(hex)) t.equal(writer.slice(0, 24), sender.slice(0, 24));
    }
  }
});
