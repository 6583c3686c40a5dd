import t, { type Test } from 'tap';
import { runs } from '../../testkit/effort.ts';
import type { LocalWriter } from './endpoints/endpoints.ts';
import { LIMITS } from './limits.ts';
import { destinationOf } from './testing/dissect.ts';
import { ForgedParticipant } from './testing/forged-participant.ts';
import { heapOctets } from './testing/heap.ts';
import { type Flight, type MemoryNetwork, Wire } from './testing/memory-network.ts';
import { participantOn, readerOf, type TestParticipant, type TestReader, writerOf } from './testing/participants.ts';
import { VirtualTime } from './testing/virtual-time.ts';
import { ENTITY, entityOf } from './wire/protocol.ts';

// With EDGE_HEALTH_LONG=1 it takes minutes.
t.setTimeout(900_000);

/** The default address of forged participants. */
const STRANGER = '10.0.0.99';

interface Rig {
  readonly time: VirtualTime;
  readonly wire: Wire;
  readonly network: MemoryNetwork;
  readonly participant: TestParticipant;
  readonly writer: LocalWriter;
  /** An honest peer, matched with it. */
  readonly friend: {
    readonly participant: TestParticipant;
    readonly network: MemoryNetwork;
    readonly writer: LocalWriter;
    readonly reader: TestReader;
  };
  /** A forged participant announces itself and answers challenges. */
  introduce(stranger: ForgedParticipant): Promise<void>;
  /** Octets that were sent to an address. */
  sentTo(address: string): number;
  /** A sample goes through, both ways. */
  works(t: Test): Promise<void>;
}

async function rig(t: Test): Promise<Rig> {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const sent = new Map<string, number>();
  const strangers = new Map<string | null, ForgedParticipant>();
  wire.onFlight = ({ to, datagram }: Flight) => {
    sent.set(to, (sent.get(to) ?? 0) + datagram.length);
    const stranger = strangers.get(destinationOf(datagram));
    const answer = stranger && !own.participant.isProven(stranger.prefix) && stranger.answer(datagram);
    if (answer) setTimeout(() => own.network.inject(answer, to, false), 1);
  };
  const make = (address: string) => {
    const network = wire.host({ lan: address });
    const participant = participantOn(network, time.now);
    t.teardown(() => participant.stop());
    return { network, participant, writer: writerOf(participant), reader: readerOf(participant) };
  };
  const [own, friend] = [make('10.0.0.1'), make('10.0.0.2')];
  await own.participant.start();
  await friend.participant.start();
  await time.pass(5);
  let samples = 0;
  return {
    time,
    wire,
    ...own,
    friend,
    introduce: async (stranger) => {
      strangers.set(stranger.prefix, stranger);
      own.network.inject(stranger.announcement(), STRANGER, true);
      await time.pass(0.01);
    },
    sentTo: (address) => sent.get(address) ?? 0,
    works: async (t) => {
      samples += 1;
      own.participant.write(own.writer, Buffer.from(`to the friend ${samples}`));
      friend.participant.write(friend.writer, Buffer.from(`from the friend ${samples}`));
      await time.pass(1);
      t.equal(friend.reader.samples.at(-1), `to the friend ${samples}`);
      t.equal(own.reader.samples.at(-1), `from the friend ${samples}`);
    },
  };
}

t.test('a participant that announces thousands of endpoints is bounded', async (t) => {
  const { network, participant, writer, introduce, sentTo, works, time } = await rig(t);
  const stranger = new ForgedParticipant(1);
  await introduce(stranger);
  const matched = participant.matchedCount;
  let received = 0;
  for (let key = 1; key <= runs(2000, 100_000); key += 1) {
    const datagram = stranger.endpoint(key % 2 === 0, key, {
      userData: `number ${key}`,
      ...(key % 10 === 0 ? { topic: `rt/nonsense${key}` } : {}),
    });
    received += datagram.length;
    network.inject(datagram, STRANGER, false);
  }
  t.ok(writer.state.readerCount <= LIMITS.matchedPerParticipant + 1, `${writer.state.readerCount} readers matched`);
  t.equal(participant.matchedCount, matched + LIMITS.matchedPerParticipant);
  t.equal(participant.heldOctets, 0);
  t.ok(sentTo(STRANGER) < received / 10, `${sentTo(STRANGER)} octets sent for ${received}`);
  t.match(participant.lines.join('\n'), /too many endpoints/);
  t.ok(participant.lines.length < 5, 'logged once');
  await works(t);
  await time.pass(100 + 5);
  t.equal(writer.state.readerCount, 1, 'forgotten with its lease');
  t.equal(participant.peerCount, 1);
});

t.test('many participants share the limits', async (t) => {
  const { network, participant, writer, introduce, works } = await rig(t);
  for (let number = 1; number <= runs(30, 400); number += 1) {
    const stranger = new ForgedParticipant(number);
    await introduce(stranger);
    for (let key = 1; key <= 40; key += 1) network.inject(stranger.endpoint(false, key), STRANGER, false);
  }
  t.equal(writer.state.readerCount, LIMITS.matchedPerEndpoint);
  t.equal(participant.heldOctets, 0);
  await works(t);
});

t.test('thousands of invented participants are bounded', async (t) => {
  const { network, participant, sentTo, works, time } = await rig(t);
  let received = 0;
  for (let number = 1; number <= runs(1100, 10_000); number += 1) {
    const victim = { address: `10.0.0.${(number % 50) + 100}`, port: 7410 };
    const datagram = new ForgedParticipant(number, victim).announcement('x'.repeat(1000));
    received += datagram.length;
    network.inject(datagram, `10.1.${number >> 8}.${number & 255}`, true);
    if (number % 1000 === 0) await time.pass(0.5);
  }
  t.equal(participant.peerCount, LIMITS.participants);
  t.equal(participant.heldOctets, 0);
  await works(t);
  t.same(participant.locatorsOf('0'.repeat(24)), []);
  await time.pass(LIMITS.unansweredLeaseSeconds + 5);
  t.equal(participant.peerCount, 1, 'none stays');
  let sent = 0;
  for (let i = 100; i < 150; i += 1) sent += sentTo(`10.0.0.${i}`);
  t.ok(sent < 3 * received, `${sent} octets sent to others for ${received} received`);
  await time.pass(60);
  let later = 0;
  for (let i = 100; i < 150; i += 1) later += sentTo(`10.0.0.${i}`);
  t.equal(later, sent, 'and nothing any more');
});

t.test('announcements with invalid, broadcast or own addresses are ignored', async (t) => {
  const { network, participant, wire, time } = await rig(t);
  const flights: Flight[] = [];
  wire.onFlight = (flight) => {
    if (!flight.isMulticast && flight.to !== '10.0.0.2' && flight.from === '10.0.0.1') flights.push(flight);
  };
  const { refused } = participant;
  const locators = [
    { address: '239.255.0.1', port: 7400 },
    { address: '224.0.0.251', port: 5353 },
    { address: '255.255.255.255', port: 7400 },
    { address: '10.0.0.255', port: 7400 },
    { address: '10.0.0.0', port: 7400 },
    { address: '0.0.0.0', port: 7400 },
    { address: '127.0.0.1', port: 7412 },
    { address: '127.1.2.3', port: 7412 },
    { address: '10.0.0.1', port: 7412 },
    { address: '10.0.0.200', port: 53 },
    { address: '10.0.0.200', port: 1023 },
  ];
  for (const [i, locator] of locators.entries()) network.inject(new ForgedParticipant(i, locator).announcement(), '10.0.0.3', true);
  await time.pass(10);
  t.equal(participant.peerCount, 1, 'none of them is added');
  t.equal(participant.refused - refused, locators.length);
  t.match(participant.lines.join('\n'), /announces no usable address.*10\.0\.0\.3/);
  t.same(flights, []);
  for (const [i, from] of ['127.0.0.1', '10.0.0.1'].entries())
    network.inject(new ForgedParticipant(100 + i, { address: from, port: 7412 }).announcement(), from, true);
  t.equal(participant.peerCount, 3, 'own addresses are accepted from this machine');
});

t.test('the usable addresses of several are used', async (t) => {
  const { network, participant, time, wire } = await rig(t);
  const to = new Set<string>();
  wire.onFlight = ({ to: address, from, isMulticast }) => {
    if (!isMulticast && from === '10.0.0.1') to.add(address);
  };
  const address = [10, 0, 0, 77] as const;
  const only = new ForgedParticipant(1, { address: address.join('.'), port: 7410 }).announcement();
  const locator = only.indexOf(Buffer.from([0x32, 0, 24, 0]));
  // Again, before it and with other addresses.
  const further = [Buffer.from([127, 0, 0, 1]), Buffer.from([10, 0, 0, 255])].map((other) => {
    const copy = Buffer.from(only.subarray(locator, locator + 28));
    other.copy(copy, 24);
    return copy;
  });
  const datagram = Buffer.concat([only.subarray(0, locator), ...further, only.subarray(locator)]);
  datagram.writeUInt16LE(datagram.length - 24, 22);
  network.inject(datagram, address.join('.'), true);
  await time.pass(3);
  t.ok(participant.hasParticipant(new ForgedParticipant(1).prefix));
  t.same([...to], [address.join('.')]);
});

t.test('endless requests are bounded', async (t) => {
  const { network, participant, writer, introduce, sentTo, works, time } = await rig(t);
  for (let i = 0; i < 10; i += 1) participant.write(writer, Buffer.alloc(50_000, 'x'));
  await time.pass(1);
  const stranger = new ForgedParticipant(1);
  await introduce(stranger);
  network.inject(stranger.endpoint(false, 1), STRANGER, false);
  const reader = entityOf(stranger.guid(false, 1));
  const own = entityOf(writer.guid);
  const before = sentTo(STRANGER);
  const start = time.now();
  for (let i = 0; i < runs(500, 2000); i += 1) {
    network.inject(stranger.request(reader, own, 1), STRANGER, false);
    await time.pass(0.001);
  }
  const seconds = time.now() - start;
  const sent = sentTo(STRANGER) - before;
  t.ok(sent < LIMITS.resendOctets * (seconds + 3), `${sent} octets in ${seconds} s`);
  await works(t);
});

t.test('replayed datagrams, its own and those of others, have no effect', async (t) => {
  const { network, participant, writer, friend, wire, works, time } = await rig(t);
  const recorded: Flight[] = [];
  wire.onFlight = (flight) => recorded.push({ ...flight, datagram: Buffer.from(flight.datagram) });
  await works(t);
  await time.pass(10);
  wire.onFlight = () => {};
  const samples = friend.reader.samples.length;
  let answers = 0;
  wire.onFlight = ({ isMulticast }) => {
    if (!isMulticast) answers += 1;
  };
  const { refused } = participant;
  for (let round = 0; round < 20; round += 1) {
    for (const { datagram, from } of recorded) network.inject(datagram, from, round % 2 === 0);
  }
  await time.pass(5);
  t.ok(answers <= 20 * recorded.length, `${answers} answers to ${20 * recorded.length} datagrams`);
  t.equal(participant.refused, refused);
  t.equal(participant.peerCount, 1);
  t.equal(writer.state.readerCount, 1);
  t.equal(friend.reader.samples.length, samples, 'nothing twice');
  await works(t);
});

t.test('a participant cannot announce endpoints of another', async (t) => {
  const { network, participant, writer, friend, introduce, works } = await rig(t);
  const stranger = new ForgedParticipant(1);
  await introduce(stranger);
  const theirs = new ForgedParticipant(1);
  // An endpoint of the friend, announced by the forged participant.
  Object.assign(theirs, { prefix: friend.participant.prefix });
  const lie = theirs.endpoint(false, 77);
  lie.write(stranger.prefix, 8, 'hex');
  const before = writer.state.readerCount;
  network.inject(lie, STRANGER, false);
  t.equal(writer.state.readerCount, before);
  t.equal(participant.peerCount, 2);
  await works(t);
});

t.test('buffered samples of many writers stay within the budget', async (t) => {
  const { network, participant, introduce, works, time } = await rig(t);
  const before = heapOctets();
  for (let number = 1; number <= 50; number += 1) {
    const stranger = new ForgedParticipant(number);
    await introduce(stranger);
    for (let key = 1; key <= 2; key += 1) {
      network.inject(stranger.endpoint(true, key), STRANGER, false);
      const writer = entityOf(stranger.guid(true, key));
      for (let sample = 2; sample < 250; sample += 1)
        network.inject(stranger.data(writer, Buffer.alloc(4), ENTITY.UNKNOWN, sample), STRANGER, false);
    }
  }
  t.ok(participant.heldOctets <= LIMITS.bufferedOctets, `${participant.heldOctets}`);
  t.ok(participant.heldOctets > LIMITS.bufferedOctets / 2, 'it came so far');
  // The overhead that is counted for each sample is what a sample takes: objects and buffers in use, after a collection.
  t.ok(heapOctets() - before < 2 * participant.heldOctets, `${heapOctets() - before} octets more for ${participant.heldOctets} counted`);
  await works(t);
  await time.pass(100 + 5);
  t.equal(participant.heldOctets, 0);
});
