/**
 * Sends hostile datagrams to the node at an address: `attacker-program.ts ATTACK ADDRESS`. Some attacks listen to the multicast group
 * first. Prints `begins` at the start of the attack, then the number of sent datagrams as a line of JSON, and ends.
 */
import { createSocket, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { ForgedParticipant } from '../../src/rtps/testing/forged-participant.ts';
import { entity, message, type Part, sn, submessage, u16, u32 } from '../../src/rtps/testing/octets.ts';
import { randomFrom } from '../../src/rtps/testing/random.ts';
import { recorded } from '../../src/rtps/testing/recorded.ts';
import { ENTITY, type EntityId, type GuidPrefix, MULTICAST_GROUP, PID, ports } from '../../src/rtps/wire/protocol.ts';

const TOPIC = { topic: 'rt/health_status', type: 'edge_health_interfaces::msg::dds_::HealthStatus_' };
/** Not the group's port, which receives only what is sent to the group, and with it to the peers, some of which do not survive it. */
const PORTS = [ports.metaUnicast(0, 0), ports.userUnicast(0, 0)] as const;
const [META, USER] = PORTS;
/** Maximum payload of UDP over IPv4. */
const LARGEST = 65_507;
const DATAGRAMS_PER_MILLISECOND = 4;
const INFO_DST = 0x0e;
/** Lease of the forged participants that the node may accept. */
const LEASE_SECONDS = 20;

const [attack = '', target = ''] = process.argv.slice(2);
const random = randomFrom(20_260_304);
const below = (limit: number): number => Math.floor(random() * limit);
const noise = (octets: number): Buffer => Buffer.from(Array.from({ length: octets }, () => below(256)));

/** Listens to the group for `seconds`, and until the node has sent a datagram. Returns its GUID prefix and all datagrams. */
function listen(socket: Socket, seconds: number): Promise<{ node: GuidPrefix; captured: Buffer[] }> {
  const captured: Buffer[] = [];
  let node: GuidPrefix | null = null;
  const until = performance.now() + seconds * 1000;
  return new Promise((resolve) => {
    socket.on('message', (datagram, { address }) => {
      captured.push(Buffer.from(datagram));
      if (address === target) node = datagram.toString('hex', 8, 20);
      if (node && performance.now() >= until) resolve({ node, captured });
    });
  });
}

/** A copy of the datagram with the node as its destination (INFO_DST). */
function readdressed(datagram: Buffer, node: GuidPrefix): Buffer {
  const copy = Buffer.from(datagram);
  for (let at = 20; at + 4 <= copy.length; ) {
    const little = ((copy[at + 1] ?? 0) & 1) === 1;
    if (copy[at] === INFO_DST && at + 16 <= copy.length) copy.write(node, at + 4, 'hex');
    const octets = little ? copy.readUInt16LE(at + 2) : copy.readUInt16BE(at + 2);
    if (octets === 0) break;
    at += 4 + octets;
  }
  return copy;
}

/** A mutated copy of a datagram: octets, end, lengths or everything. */
function mutated(datagram: Buffer): Buffer {
  const copy = Buffer.from(datagram);
  const kind = below(6);
  if (kind === 0) return copy.subarray(0, below(copy.length));
  if (kind === 1) return Buffer.concat([copy, noise(below(1000))]);
  if (kind === 2) return Buffer.concat([copy.subarray(0, 20), noise(below(600))]);
  // Two octets at a random offset, which often hit a length.
  if (kind === 3) copy.writeUInt16LE([0, 1, 3, 0x7fff, 0xfffc, 0xffff][below(6)] ?? 0, below(copy.length - 2));
  else if (kind === 4) copy.writeUInt32LE([0, 0x7fffffff, 0xffffffff, 0x80000000][below(4)] ?? 0, below(copy.length - 4));
  else for (let i = below(12); i >= 0; i -= 1) copy[below(copy.length)] = below(256);
  return copy;
}

const data = (prefix: GuidPrefix, writer: EntityId, number: number, payload: Uint8Array, flags = 4): Buffer =>
  message(prefix, submessage(0x15, [u16(0), u16(16), entity(ENTITY.UNKNOWN), entity(writer), sn(number), payload], { flags }));

/** A parameter list with its encapsulation header. `length` may differ from the length of the value. */
function parameters(...list: readonly (readonly [id: number, value: Uint8Array, length?: number])[]): Buffer {
  const parts = list.map(([id, value, length]) => {
    const head = Buffer.alloc(4);
    head.writeUInt16LE(id, 0);
    head.writeUInt16LE(length ?? value.length, 2);
    return Buffer.concat([head, value]);
  });
  return Buffer.concat([Buffer.from([0, 3, 0, 0]), ...parts, Buffer.from([PID.SENTINEL, 0, 0, 0])]);
}

function* rubbish(node: GuidPrefix): Generator<readonly [Buffer, number]> {
  const real = recorded().map(({ datagram }) => readdressed(datagram, node));
  for (let i = 0; i < 6000; i += 1) yield [mutated(real[below(real.length)] as Buffer), PORTS[i % 2] ?? META];
}

function* oversized(): Generator<readonly [Buffer, number]> {
  const { prefix } = new ForgedParticipant(1);
  const room = LARGEST - 20;
  const repeated = (part: Buffer): Buffer => message(prefix, ...Array(Math.floor(room / part.length)).fill(part));
  const ids = [entity(ENTITY.UNKNOWN), entity(ENTITY.PUBLICATIONS_WRITER)];
  const locator = Buffer.alloc(24, 1);
  const largeList = parameters(...Array.from({ length: 2000 }, () => [PID.METATRAFFIC_UNICAST_LOCATOR, locator] as const));
  const largeText = parameters([PID.PARTICIPANT_GUID, Buffer.alloc(16, 7)], [PID.USER_DATA, Buffer.alloc(60_000, 0x41)]);
  const shapes = [
    Buffer.concat([message(prefix), noise(room)]),
    Buffer.alloc(LARGEST),
    repeated(submessage(0x01, [])),
    repeated(submessage(0x09, [u32(1), u32(2)])),
    repeated(submessage(0x07, [...ids, sn(1), sn(2 ** 40), u32(below(2 ** 31))])),
    repeated(submessage(0x06, [...ids, sn(1), u32(256), ...Array<Part>(8).fill(u32(0xffffffff)), u32(below(2 ** 31))])),
    repeated(submessage(0x08, [...ids, sn(1), sn(2 ** 40), u32(0)])),
    data(prefix, ENTITY.SPDP_WRITER, 1, largeList),
    data(prefix, ENTITY.SPDP_WRITER, 1, largeText),
  ];
  for (let i = 0; i < 600; i += 1) yield [shapes[i % shapes.length] as Buffer, PORTS[i % 2] ?? META];
}

function* replayed(node: GuidPrefix, captured: readonly Buffer[]): Generator<readonly [Buffer, number]> {
  const real = recorded().map(({ datagram }) => readdressed(datagram, node));
  for (let round = 0; round < 100; round += 1) for (const datagram of captured) yield [datagram, META];
  for (let round = 0; round < 10; round += 1) for (const datagram of real) yield [datagram, PORTS[round % 2] ?? META];
}

/** A participant that announces 100,000 endpoints, 100 per datagram. */
function* endpoints(stranger: ForgedParticipant): Generator<readonly [Buffer, number]> {
  const [total, perDatagram] = [100_000, 100];
  for (let first = 0; first < total; first += perDatagram) {
    const all = Array.from({ length: perDatagram }, (_, i) => {
      const key = first + i + 1;
      // Readers of the topics of the node, writers of topics to which it would subscribe, and writers of other topics.
      const topic = [TOPIC.topic, `rt/x${key}/health_status`, `rt/x${key}/chatter`][key % 3] ?? '';
      return stranger.endpoint(key % 3 !== 0, key, { ...TOPIC, topic });
    });
    yield [Buffer.concat([(all[0] as Buffer).subarray(0, 20), ...all.map((datagram) => datagram.subarray(20))]), META];
  }
}

function* participants(): Generator<readonly [Buffer, number]> {
  for (let round = 0; round < 2; round += 1) {
    for (let i = 0; i < 2500; i += 1) {
      const address = `10.77.${1 + (i % 3)}.${1 + (i % 250)}`;
      yield [new ForgedParticipant(1000 + i, { address, port: 7410 }).announcement(`robot${i}`, 300), META];
    }
  }
}

/** Messages with false lengths and numbers, from a participant that is matched with the endpoints of the node. */
function* lies(stranger: ForgedParticipant): Generator<readonly [Buffer, number]> {
  const { prefix } = stranger;
  yield [stranger.endpoint(true, 1, TOPIC), META];
  yield [stranger.endpoint(false, 2, TOPIC), META];
  const [writer, reader] = [0x103, 0x204];
  const own = [entity(ENTITY.UNKNOWN), entity(writer)];
  const huge = [0, 1, 0x7fffffff, 0x80000000, 0xffffffff] as const;
  for (let i = 0; i < 500; i += 1) {
    const [a, b] = [huge[below(5)] ?? 0, huge[below(5)] ?? 0];
    const number = 1 + below(64);
    const doubles = Buffer.alloc(32);
    const shapes = [
      // Strings and fields of a sample.
      data(prefix, writer, number, Buffer.concat([Buffer.from([0, 1, 0, 0]), doubles, noise(4), noise(below(60))])),
      data(prefix, writer, number, Buffer.from([0, below(12), 0, 0])),
      data(prefix, writer, number, noise(below(8)), 4 | 2),
      // Submessages with a length beyond their content, offsets that point beyond them.
      message(prefix, submessage(0x15, [...own, sn(number)], { says: below(0x10000), flags: below(256) })),
      message(prefix, submessage(0x15, [u16(0), u16(below(0x10000)), ...own, sn(number), noise(20)], { flags: 6 })),
      // Fragments: of samples of gigabytes, of one octet, with numbers beyond the end.
      message(prefix, submessage(0x16, [u16(0), u16(28), ...own, sn(number), u32(a), u16(below(65_536)), u16(1), u32(b), noise(40)])),
      message(prefix, submessage(0x16, [u16(0), u16(28), ...own, sn(number), u32(1), u16(1), u16(1024), u32(1024 * 1024), noise(1024)])),
      // Heartbeats, gaps and requests with extreme ranges.
      message(prefix, submessage(0x07, [...own, sn(below(3)), [8, 2 ** 52], u32(i)])),
      message(prefix, submessage(0x07, [...own, sn(1), sn(number), u32(i)])),
      message(prefix, submessage(0x08, [...own, sn(number), [8, 2 ** 52], u32(a), noise(32)])),
      message(prefix, submessage(0x06, [entity(reader), entity(ENTITY.UNKNOWN), sn(a), u32(b), noise(32), u32(i)])),
      message(prefix, submessage(0x12, [entity(reader), entity(0x203), sn(number), u32(a), u32(256), noise(32), u32(i)])),
      // Malformed parameters.
      data(
        prefix,
        ENTITY.PUBLICATIONS_WRITER,
        number,
        parameters([PID.ENDPOINT_GUID, noise(16)], [PID.TOPIC_NAME, noise(8), below(0x10000)]),
      ),
      data(prefix, ENTITY.SPDP_WRITER, number, parameters([PID.PARTICIPANT_GUID, noise(3)], [PID.METATRAFFIC_UNICAST_LOCATOR, noise(5)])),
    ];
    for (const shape of shapes) yield [shape, i % 2 === 0 ? META : USER];
  }
}

/** Valid messages at an excessive rate: samples, heartbeats, and requests for every sample. */
function* flood(stranger: ForgedParticipant): Generator<readonly [Buffer, number]> {
  const introduction = [
    stranger.announcement('stranger', LEASE_SECONDS),
    stranger.endpoint(true, 1, TOPIC),
    stranger.endpoint(false, 2, TOPIC),
  ];
  for (const datagram of introduction) yield [datagram, META];
  const sample = Buffer.concat([Buffer.from([0, 1, 0, 0]), Buffer.alloc(32), text('OK'), text('flood'), text('2026-03-04T05:06:07.089Z')]);
  for (let i = 1; i <= 4000; i += 1) {
    yield [data(stranger.prefix, 0x103, i, sample), USER];
    // A writer that keeps fifty samples: a reader that discovers it late, or has lost some, continues with those.
    yield [stranger.heartbeat(0x103, Math.max(1, i - 49), i), USER];
    for (const key of [2, 3, 4, 5]) yield [stranger.request(0x204, (key << 8) | 3, 1), USER];
    // Repeated, because earlier ones may have been lost.
    if (i % 100 === 0) for (const datagram of introduction) yield [datagram, META];
    if (i % 100 === 0) yield [stranger.announcement(`flood${i}`, LEASE_SECONDS), META];
  }
}

function text(value: string): Buffer {
  const octets = Buffer.from(`${value}\0`);
  const counted = Buffer.alloc(4 + octets.length + (-octets.length & 3));
  counted.writeUInt32LE(octets.length, 0);
  octets.copy(counted, 4);
  return counted;
}

/** A participant at the address of this machine that responds to the node, which ignores participants that do not. */
async function introduceParticipant(number: number): Promise<ForgedParticipant> {
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal);
  const stranger = new ForgedParticipant(number, { address: own?.address ?? '127.0.0.1', port: META });
  const socket = createSocket({ type: 'udp4' });
  await new Promise<void>((bound) => socket.bind(META, bound));
  await new Promise<void>((proven) => {
    socket.on('message', (datagram, { address, port }) => {
      const answer = stranger.answer(datagram);
      if (answer) socket.send(answer, port, address);
      // Data follows, after which no response is needed.
      if (!answer || datagram.includes('HealthStatus_')) proven();
    });
    socket.send(stranger.announcement('stranger', LEASE_SECONDS), META, target);
  });
  socket.close();
  return stranger;
}

/** Returns the attacks that need captured datagrams of the node. */
async function captureFirst(): Promise<Iterable<readonly [Buffer, number]>> {
  const group = createSocket({ type: 'udp4', reuseAddr: true });
  group.bind(ports.metaMulticast(0), () => group.addMembership(MULTICAST_GROUP));
  const { node, captured } = await listen(group, 4);
  group.close();
  return attack === 'rubbish' ? rubbish(node) : replayed(node, captured);
}

async function main(): Promise<void> {
  const attacks = {
    rubbish: captureFirst,
    replayed: captureFirst,
    oversized,
    endpoints: async () => endpoints(await introduceParticipant(2)),
    participants,
    lies: async () => lies(await introduceParticipant(3)),
    flood: async () => flood(await introduceParticipant(4)),
  };
  const make = attacks[attack as keyof typeof attacks];
  if (!make) throw new Error(`attacks: ${Object.keys(attacks).join(', ')}`);
  const datagrams = await make();
  const socket = createSocket({ type: 'udp4', lookup: (address, _, done) => done(null, address, 4) });
  // Ignores ICMP errors while no node listens.
  socket.on('error', () => {});
  let [sent, octets] = [0, 0];
  const begun = performance.now();
  process.stdout.write('begins\n');
  for (const [datagram, port] of datagrams) {
    socket.send(datagram, port, target, () => {});
    sent += 1;
    octets += datagram.length;
    // Limits the rate to that of a fast network, so that the socket buffers do not drop most datagrams.
    if (sent % 16 === 0 || datagram.length > 8192) {
      const ahead = Math.max(sent / DATAGRAMS_PER_MILLISECOND, octets / 20_000) - (performance.now() - begun);
      await new Promise((later) => setTimeout(later, Math.max(0, ahead)));
    }
  }
  process.stdout.write(`${JSON.stringify({ sent, octets, seconds: (performance.now() - begun) / 1000 })}\n`);
  socket.close();
}

await main();
