import t from 'tap';
import { LIST_PARAMETERS, SAFE_SHUTDOWN } from '../../../src/ros/interfaces.generated.ts';
import { endOfInstance } from '../../../src/rtps/discovery/discovery-data.ts';
import { LIMITS } from '../../../src/rtps/limits.ts';
import { ForgedParticipant } from '../../../src/rtps/testing/forged-participant.ts';
import { entity, message, sn, submessage, u16, u32 } from '../../../src/rtps/testing/octets.ts';
import { ENTITY, entityOf, ports } from '../../../src/rtps/wire/protocol.ts';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { type Host, Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { RawProgram } from '../../../testkit/network/raw-program.ts';

/**
 * The embedded transport over UDP, and an attacker that sends in the name of others: what reaches a victim that never sent a datagram, and
 * what happens to a real participant.
 */

const [META, USER] = [ports.metaUnicast(0, 0), ports.userUnicast(0, 0)];
const HEALTH = { topic: 'rt/health_status', type: 'edge_health_interfaces::msg::dds_::HealthStatus_' };
const ATTACK_SECONDS = 20;
/** The port of a participant that the victim could have. */
const VICTIM_PORT = 7410;
/** The writer of the health statuses is the second endpoint of a node. */
const HEALTH_WRITER = 0x203;

const pause = (seconds: number): Promise<void> => new Promise((later) => setTimeout(later, seconds * 1000));

type Attack = (forged: (number?: number) => ForgedParticipant, send: (datagram: Buffer, port?: number) => void) => Generator<void>;

/** What is sent in the name of a victim; a generator pauses for a tenth of a second between two datagrams. */
const ATTACKS: Readonly<Record<string, Attack>> = {
  *'one announcement'(forged, send) {
    send(forged().announcement());
    yield;
  },
  *'one announcement, with an acknowledgement'(forged, send) {
    const answer = forged().acknowledgement(ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER, 1);
    send(Buffer.concat([forged().announcement('', 300), answer.subarray(20)]));
    yield;
  },
  *'256 readers'(forged, send) {
    const it = forged();
    send(it.announcement('', 300));
    send(it.acknowledgement(ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER, 1));
    for (let key = 1; key <= 256; key += 1) send(it.endpoint(false, key, HEALTH));
    for (let i = 0; i < 6; i += 1) {
      for (let tenth = 0; tenth < 30; tenth += 1) yield;
      send(it.announcement('', 300));
    }
  },
  *heartbeats(forged, send) {
    const it = forged();
    send(it.announcement());
    send(it.endpoint(true, 1, HEALTH));
    for (let i = 0; i < 180; i += 1) {
      for (const writer of [ENTITY.PUBLICATIONS_WRITER, ENTITY.SUBSCRIPTIONS_WRITER, 0x103])
        send(it.heartbeat(writer, 1 + (i % 5), 100 + i));
      yield;
    }
  },
  *'requests for all data and fragments'(forged, send) {
    const it = forged();
    send(it.announcement());
    send(it.endpoint(false, 1, HEALTH));
    for (let i = 0; i < 180; i += 1) {
      send(it.request(ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER, 1 + (i % 3)));
      send(it.request(0x104, HEALTH_WRITER, 1), USER);
      send(
        message(it.prefix, submessage(0x12, [entity(0x104), entity(HEALTH_WRITER), sn(1), u32(1), u32(32), u32(0xffffffff), u32(i)])),
        USER,
      );
      yield;
    }
  },
  *fragments(forged, send) {
    const it = forged();
    send(it.announcement());
    send(it.endpoint(true, 1, HEALTH));
    for (let i = 1; i <= 180; i += 1) {
      const fragment = [u16(0), u16(28), entity(0), entity(0x103), sn(i), u32(1), u16(1), u16(8), u32(4096), Buffer.alloc(8)];
      send(message(it.prefix, submessage(0x16, fragment)), USER);
      send(it.heartbeat(0x103, 1, i), USER);
      yield;
    }
  },
  *'many participants'(forged, send) {
    for (let number = 0; number < 180; number += 1) {
      send(forged(number).announcement());
      send(forged(number).endpoint(false, 1, HEALTH));
      yield;
    }
  },
  *'service requests'(forged, send) {
    const it = forged();
    const services = [
      ['safe_shutdown', SAFE_SHUTDOWN],
      ['health_monitor/list_parameters', LIST_PARAMETERS],
    ] as const;
    send(it.announcement());
    for (let i = 0; i < 180; i += 1) {
      for (const [index, [name, { request, response }]] of services.entries()) {
        const key = 2 * index + 1;
        if (i % 30 === 0) {
          send(it.endpoint(true, key, { topic: `rq/${name}Request`, type: request.ddsName, userData: 'clientid=1;' }));
          send(it.endpoint(false, key + 1, { topic: `rr/${name}Reply`, type: response.ddsName, userData: 'clientid=1;' }));
        }
        send(it.data((key << 8) | 3, Buffer.concat([Buffer.from([0, 1, 0, 0]), Buffer.alloc(64)])), USER);
      }
      yield;
    }
  },
};

interface Counted {
  readonly datagrams: number;
  readonly octets: number;
}

t.test('attackers on the network have limited effects', { skip: networkUnavailable() }, async (t) => {
  t.setTimeout(120_000);
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [brain, friends, attacker, victims] = [network.host(), network.host(), network.host(), network.host()];
  const { address } = segment.attach(brain);
  const friendAddress = segment.attach(friends).address;
  const attackerAddress = segment.attach(attacker).address;
  const place = segment.attach(victims);
  // Each attack has a victim of its own, once from the attacker's address and once from the victim's.
  const targets = Object.entries(ATTACKS).flatMap(([what, attack], i) =>
    [false, true].map((isSpoofed) => ({ what, attack, isSpoofed, victim: segment.address(100 + 2 * i + (isSpoofed ? 1 : 0)) })),
  );
  for (const { victim } of targets) victims.ip('address', 'add', `${victim}/24`, 'dev', place.name);
  const node = await GraphNode.start(brain);
  const friend = await GraphNode.start(friends, { namespace: '/friend', localNode: 'friend' });
  node.stream({ hz: 5, count: 0, nodeName: 'brain' });
  friend.stream({ hz: 5, count: 0, nodeName: 'friend' });
  await friend.waitFor('health', ({ status }) => status.node_name === 'brain', 30);
  await node.waitFor('health', ({ status }) => status.node_name === 'friend', 30);
  const counter = new RawProgram(victims, 'count', address);
  await counter.read();
  const sender = new RawProgram(attacker, 'send');

  const spent = new Map<string, { datagrams: number; octets: number }>();
  const running = targets.map(({ attack, isSpoofed, victim }, i) => {
    const own = { datagrams: 0, octets: 0 };
    spent.set(victim, own);
    const made = new Map<number, ForgedParticipant>();
    const forged = (number = 0): ForgedParticipant => {
      const known = made.get(number);
      const it = known ?? new ForgedParticipant(1000 * (i + 1) + number, { address: victim, port: VICTIM_PORT + 2 * number });
      made.set(number, it);
      return it;
    };
    return attack(forged, (datagram, port = META) => {
      own.datagrams += 1;
      own.octets += datagram.length;
      sender.write(`${isSpoofed ? victim : attackerAddress} ${address} ${port} ${datagram.toString('hex')}`);
    });
  });
  for (let tenth = 0; tenth < 10 * ATTACK_SECONDS; tenth += 1) {
    for (const attack of running) attack.next();
    await pause(0.1);
  }

  await t.test('little reaches a victim', async (t) => {
    counter.write('how many');
    const arrived = JSON.parse((await counter.read()) ?? '') as Record<string, readonly [number, number]>;
    for (const { what, victim, isSpoofed } of targets) {
      const [datagrams = 0, octets = 0] = arrived[victim] ?? [];
      const sent = spent.get(victim) as Counted;
      const factor = octets / sent.octets;
      const how = `${what}, ${isSpoofed ? "from the victim's address" : "from the attacker's address"}`;
      t.ok(
        datagrams <= LIMITS.unprovenDatagrams && factor <= LIMITS.unprovenFactor,
        `${how}: ${sent.datagrams} datagrams of ${sent.octets} octets sent, ${datagrams} of ${octets} received, factor ${factor.toFixed(2)}`,
      );
    }
    t.ok(Object.keys(arrived).length > 0, 'something was sent, or nothing was tried');
  });

  await t.test('a participant whose GUID is forged is not affected', async (t) => {
    const found = node.all('log').find(({ message, fields }) => message === 'participant found' && fields['address'] === friendAddress);
    t.ok(found, 'the friend was found');
    const before = await node.details();
    const forged = ForgedParticipant.named(await prefixAt(attacker, friendAddress), { address: attackerAddress, port: VICTIM_PORT });
    t.match(forged.prefix, /^[0-9a-f]{24}$/);
    const farewell = [u16(0), u16(16), entity(0), entity(ENTITY.SPDP_WRITER), sn(9), Buffer.from([0, 3, 0, 0, 1, 0, 0, 0])];
    const lies = [
      message(forged.prefix, submessage(0x15, farewell, { flags: 8 })),
      forged.announcement('', 1),
      forged.heartbeat(HEALTH_WRITER, 2 ** 40, 2 ** 40),
      forged.heartbeat(HEALTH_WRITER, 2 ** 40 + 1, 2 ** 40 + 1),
      message(forged.prefix, submessage(0x08, [entity(0), entity(HEALTH_WRITER), sn(1), sn(2 ** 40), u32(0)])),
      forged.data(HEALTH_WRITER, Buffer.alloc(64), ENTITY.UNKNOWN, 2 ** 40),
      forged.request(entityOf(forged.guid(false, 1)), HEALTH_WRITER, 1),
    ];
    for (let round = 0; round < 10; round += 1)
      for (const lie of lies) sender.write(`${attackerAddress} ${address} ${META} ${lie.toString('hex')}`);
    // Once the GUID is announced at the attacker's address, it is another participant there.
    const details = await node.detailsUntil(({ refused }) => refused > before.refused, 20);
    t.ok(details.refused > before.refused, `${details.refused - before.refused} datagrams refused`);
    t.match(
      node.all('log').filter(({ message }) => /not sent from the address of its participant/.test(message)),
      [{ level: 'warning', fields: { from: attackerAddress, at: friendAddress } }],
      'logged once, with both addresses',
    );
    const count = (of: GraphNode, name: string): number => of.all('health').filter(({ status }) => status.node_name === name).length;
    const [toNode, toFriend] = [count(node, 'friend'), count(friend, 'brain')];
    await node.waitForCount('health', toNode + 10, ({ status }) => status.node_name === 'friend', 20);
    await friend.waitForCount('health', toFriend + 10, ({ status }) => status.node_name === 'brain', 20);
    const numbers = node.all('health').flatMap(({ status }) => (status.node_name === 'friend' ? [status.cpu_percent ?? 0] : []));
    const [first = 0] = numbers;
    t.same(
      numbers,
      numbers.map((_, i) => first + i),
      'every status of the friend arrived, in order, once',
    );
  });

  await t.test('what is sent from the address of a participant in its name suppresses none of its statuses', async (t) => {
    const peer = node.all('log').find(({ message, fields }) => message === 'participant found' && fields['address'] === friendAddress);
    t.ok(peer, 'the friend was found');
    const forged = ForgedParticipant.named(await prefixAt(attacker, friendAddress), { address: friendAddress, port: VICTIM_PORT });
    const seen = (): number[] =>
      node.all('health').flatMap(({ status }) => (status.node_name === 'friend' ? [status.cpu_percent ?? 0] : []));
    const [began, current] = [seen().length, Math.max(...seen())];
    const FAR = 2 ** 40;
    const disposal = (guid: string, isWriter: boolean, number: number): Buffer => {
      const [writer, reader] = isWriter
        ? [ENTITY.PUBLICATIONS_WRITER, ENTITY.PUBLICATIONS_READER]
        : [ENTITY.SUBSCRIPTIONS_WRITER, ENTITY.SUBSCRIPTIONS_READER];
      const head = [u16(0), u16(16), entity(reader), entity(writer), sn(number), endOfInstance(guid)];
      return message(forged.prefix, submessage(0x15, head, { flags: 2 }));
    };
    for (let second = 0; second < ATTACK_SECONDS / 2; second += 1) {
      const near = current + 5 * second + 50;
      const lies = [
        forged.heartbeat(HEALTH_WRITER, FAR, FAR + 1),
        forged.heartbeat(HEALTH_WRITER, FAR + 1, FAR + 2),
        forged.heartbeat(HEALTH_WRITER, near, near + 300),
        forged.data(HEALTH_WRITER, Buffer.alloc(64), ENTITY.UNKNOWN, near),
        message(forged.prefix, submessage(0x08, [entity(0), entity(HEALTH_WRITER), sn(1), sn(near + 100), u32(0)])),
        forged.data(HEALTH_WRITER, Buffer.alloc(64), ENTITY.UNKNOWN, near + 100),
        forged.heartbeat(HEALTH_WRITER, 1, 0),
        disposal(forged.guid(true, 2), true, 1 + second),
        forged.heartbeat(ENTITY.PUBLICATIONS_WRITER, 1, 0),
      ];
      for (const lie of lies) sender.write(`${friendAddress} ${address} ${META} ${lie.toString('hex')}`);
      await pause(1);
    }
    await node.waitForCount('health', began + 5 * ATTACK_SECONDS, ({ status }) => status.node_name === 'friend', 2 * ATTACK_SECONDS);
    const received = new Set(seen());
    const missing = Array.from({ length: Math.max(...received) - current }, (_, i) => current + i + 1).filter(
      (number) => !received.has(number),
    );
    t.same(missing, []);
    t.match(
      node.all('log').filter(({ message }) => /several senders use the GUID of a writer/.test(message)).length,
      /^[1-9]/,
      'the forged datagrams were read',
    );
  });
  for (const program of [sender, counter]) program.end();
});

/** The GUID prefix of the participant at an address, as any host receives it in the multicast group. */
async function prefixAt(host: Host, address: string): Promise<string> {
  const listener = host.spawn('python3', ['-c', LISTEN, String(ports.metaMulticast(0)), address], { stdio: ['ignore', 'pipe', 'inherit'] });
  let received = '';
  for await (const text of listener.stdout ?? []) received += String(text);
  return received.trim();
}

/** Prints the guid prefix of the participant at an address, as soon as it announces itself in the group. */
const LISTEN = `
import socket, struct, sys
group = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
group.bind(('', int(sys.argv[1])))
group.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton('239.255.0.1') + socket.inet_aton('0.0.0.0'))
while True:
    datagram, (address, _) = group.recvfrom(65535)
    if address == sys.argv[2]:
        print(datagram[8:20].hex())
        break
`;
