import t, { type Test } from 'tap';
import type { LocalWriter } from './endpoints.ts';
import type { ParticipantOptions } from './participant.ts';
import { LEASE_SECONDS } from './participant.ts';
import { ENTITY, entityOf } from './protocol.ts';
import { dissect } from './testing/dissect.ts';
import { type Flight, type MemoryNetwork, Wire, type WireOptions } from './testing/memory-network.ts';
import { participantOn, readerOf, type TestParticipant, type TestReader, writerOf } from './testing/participants.ts';
import { VirtualTime } from './testing/virtual-time.ts';

interface Side {
  readonly network: MemoryNetwork;
  readonly participant: TestParticipant;
  readonly writer: LocalWriter;
  readonly reader: TestReader;
}

interface Rig {
  readonly time: VirtualTime;
  readonly wire: Wire;
  side(address: string, options?: Partial<ParticipantOptions>): Side;
}

function rig(t: Test, options: WireOptions = {}): Rig {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire(options);
  return {
    time,
    wire,
    side: (address, more) => {
      const network = wire.host({ lan: address });
      const participant = participantOn(network, time.now, more);
      t.teardown(() => participant.stop());
      return { network, participant, writer: writerOf(participant), reader: readerOf(participant) };
    },
  };
}

const write = ({ participant, writer }: Side, text: string): void => participant.write(writer, Buffer.from(text));

t.test('two find each other and exchange samples, late ones too', async (t) => {
  const { time, wire, side } = rig(t);
  const a = side('10.0.0.1');
  for (let i = 1; i <= 12; i += 1) write(a, `early ${i}`);
  await a.participant.start();
  await time.pass(5);
  const b = side('10.0.0.2');
  await b.participant.start();
  await time.pass(1);
  t.same(
    b.reader.samples,
    Array.from({ length: 10 }, (_, i) => `early ${i + 3}`),
    'the last ten, in order',
  );
  write(a, 'one');
  write(b, 'two');
  await time.pass(0.1);
  t.equal(b.reader.samples.at(-1), 'one');
  t.same(a.reader.samples, ['two']);
  t.equal(a.participant.peerCount, 1);
  t.equal(a.participant.addressOf(b.writer.guid), '10.0.0.2');

  const flights: Flight[] = [];
  wire.onFlight = (flight) => flights.push(flight);
  await time.pass(60);
  t.same(
    flights.filter(({ isMulticast }) => !isMulticast),
    [],
    'when all is acknowledged nothing is said but that they are there',
  );
  t.ok(flights.length >= 38 && flights.length <= 42, `${flights.length} announcements of two in a minute`);
  t.same([...a.participant.lines, ...b.participant.lines], []);
});

t.test('one that leaves is forgotten at once, one that falls silent when its lease ends', async (t) => {
  for (const isPolite of [true, false]) {
    const { time, side } = rig(t);
    const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
    await a.participant.start();
    await b.participant.start();
    await time.pass(5);
    t.equal(a.writer.state.readerCount, 1);
    if (isPolite) b.participant.stop();
    else b.network.isFrozen = true;
    await time.pass(0.1);
    t.equal(a.participant.peerCount, isPolite ? 0 : 1);
    await time.pass(LEASE_SECONDS + 1);
    t.equal(a.participant.peerCount, 0);
    t.equal(a.writer.state.readerCount, 0);
    t.equal(a.reader.state.writerCount, 0);
    a.participant.stop();
    b.participant.stop();
  }
});

t.test('found again after one or both have forgotten the other', async (t) => {
  for (const [what, deaf] of [
    ['one side heard nothing', ['a']],
    ['both heard nothing', ['a', 'b']],
  ] as const) {
    let isCut: (flight: { to: string }) => boolean = () => false;
    const { time, wire, side } = rig(t);
    const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
    await a.participant.start();
    await b.participant.start();
    await time.pass(3);
    write(a, 'before');
    await time.pass(1);
    // Frames to those that are deaf are lost.
    const cut = new Set<string>(deaf.map((name) => (name === 'a' ? '10.0.0.1' : '10.0.0.2')));
    isCut = ({ to }) => cut.has(to);
    for (const { network } of [a, b]) {
      const inject = network.inject.bind(network);
      const [own] = network.interfaces();
      network.inject = (datagram, from, viaMulticast) => {
        if (!isCut({ to: own?.address ?? '' })) inject(datagram, from, viaMulticast);
      };
    }
    await time.pass(60);
    t.equal(a.participant.peerCount, 0, `${what}: forgotten`);
    for (let i = 0; i < 20; i += 1) write(a, `meanwhile ${i}`);
    isCut = () => false;
    await time.pass(10);
    t.equal(a.participant.peerCount, 1);
    t.same(
      b.reader.samples.slice(-10),
      Array.from({ length: 10 }, (_, i) => `meanwhile ${i + 10}`),
      `${what}: what is still in the history arrived`,
    );
    write(b, 'back');
    await time.pass(1);
    t.equal(a.reader.samples.at(-1), 'back');
    t.equal(new Set(b.reader.samples).size, b.reader.samples.length, 'nothing twice');
    a.participant.stop();
    b.participant.stop();
    t.equal(wire.networks.size, 0);
  }
});

t.test('static peers, where multicast does not pass', async (t) => {
  const { time, wire, side } = rig(t);
  const a = side('10.0.0.1');
  const b = side('10.0.0.2', { staticPeers: ['10.0.0.1'] });
  const third = side('10.0.0.3');
  for (const { network } of [a, b, third]) network.receiverOfGroup = () => null;
  for (const { participant } of [a, b, third]) await participant.start();
  await time.pass(2);
  write(a, 'hello');
  await time.pass(1);
  t.same(b.reader.samples, ['hello']);
  t.equal(a.participant.peerCount, 1);
  t.equal(third.participant.peerCount, 0);
  let multicasts = 0;
  wire.onFlight = ({ isMulticast }) => {
    if (isMulticast) multicasts += 1;
  };
  await time.pass(2 * LEASE_SECONDS);
  t.equal(a.participant.peerCount, 1, 'both are announced to by unicast as well');
  t.equal(b.participant.peerCount, 1);
  t.ok(multicasts > 0);
});

t.test('loss, duplicates and reordering', async (t) => {
  let seed = 12345;
  const random = (): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed / 0x80000000;
  };
  const { time, side } = rig(t, { delayMs: () => (random() < 0.2 ? null : 1 + random() * 30), copies: () => (random() < 0.1 ? 2 : 1) });
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  const large = 'x'.repeat(10_000);
  for (let i = 0; i < 200; i += 1) {
    write(a, i % 10 === 0 ? `${i} ${large}` : `${i}`);
    await time.pass(0.1);
  }
  await time.pass(5);
  t.same(
    b.reader.samples,
    Array.from({ length: 200 }, (_, i) => (i % 10 === 0 ? `${i} ${large}` : `${i}`)),
  );
  t.equal(b.participant.heldOctets, 0);
});

t.test('a process that stood still is not alone afterwards', async (t) => {
  const { time, side } = rig(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  await a.participant.start();
  await b.participant.start();
  await time.pass(5);
  // Both at once, as when the machine sleeps: what the other said meanwhile has not been read.
  time.freeze(3600);
  await time.pass(0.05);
  t.equal(a.participant.peerCount, 1);
  await time.pass(LEASE_SECONDS + 5);
  t.equal(b.participant.peerCount, 1);
  b.network.isFrozen = true;
  await time.pass(LEASE_SECONDS + 5);
  t.equal(a.participant.peerCount, 0, 'the lease still ends');
});

t.test('an announcement of another domain at our port', async (t) => {
  const { time, wire, side } = rig(t);
  const a = side('10.0.0.1');
  const b = side('10.0.0.2', { domain: 7 });
  wire.onFlight = ({ datagram, from, isMulticast }) => {
    if (isMulticast && from === '10.0.0.2') a.network.inject(datagram, from, true);
  };
  await a.participant.start();
  const before = a.participant.received;
  await b.participant.start();
  await time.pass(3);
  t.ok(a.participant.received > before);
  t.equal(a.participant.peerCount, 0);
});

t.test('an interface that comes is announced on, one that goes is told of', async (t) => {
  let lost = 0;
  const { time, side } = rig(t);
  const a = side('10.0.0.1', { onAddressLost: () => (lost += 1) });
  const b = side('10.0.0.2');
  await a.participant.start();
  await b.participant.start();
  await time.pass(5);
  const far = side('10.0.9.2');
  far.network.addresses = { far: '10.0.9.2' };
  await far.participant.start();
  await time.pass(5);
  t.equal(far.participant.peerCount, 0);
  a.network.addresses = { lan: '10.0.0.1', far: '10.0.9.1' };
  await time.pass(6);
  write(a, 'everywhere');
  await time.pass(1);
  t.same(far.reader.samples, ['everywhere']);
  t.same(b.reader.samples, ['everywhere']);
  t.equal(lost, 0);
  a.network.addresses = { lan: '10.0.0.1' };
  await time.pass(2.9);
  t.equal(lost, 0, 'the link may be down for a moment only');
  await time.pass(4);
  t.equal(lost, 1);
  t.match(a.participant.lines.join('\n'), /a network interface came.*10\.0\.9\.1[\s\S]*a network address is gone.*10\.0\.9\.1/);
});

t.test('an address that is replaced is gone at once; off the network none is', async (t) => {
  let lost = 0;
  const { time, side } = rig(t);
  const a = side('10.0.0.1', { onAddressLost: () => (lost += 1) });
  a.network.addresses = { lan: '10.0.0.1' };
  await a.participant.start();
  await time.pass(5);
  a.network.addresses = {};
  await time.pass(60);
  a.network.addresses = { lan: '10.0.0.1' };
  await time.pass(10);
  t.equal(lost, 0);
  a.network.addresses = { lan: '10.0.0.9' };
  await time.pass(3.1);
  t.equal(lost, 1);
});

t.test('stopped while it starts', async (t) => {
  const { wire, time, side } = rig(t);
  const a = side('10.0.0.1');
  const starting = a.participant.start();
  a.participant.stop();
  await starting;
  await time.pass(5);
  t.equal(wire.networks.size, 0);
  t.equal(time.pending, 0);
});

t.test('stopped by a sample that it delivers', async (t) => {
  const { time, side } = rig(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  readerOf(a.participant, { onSample: () => a.participant.stop() });
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  write(b, 'last');
  await time.pass(1);
  t.notOk(a.network.isOpen);
  b.participant.stop();
  await time.pass(0.01);
  t.equal(time.pending, 0, 'and no timer is left');
});

t.test('what a sample causes to be written goes out once', async (t) => {
  const { time, wire, side } = rig(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  const echo = writerOf(a.participant, { topic: 'rt/echo' });
  readerOf(a.participant, { onSample: ({ data }) => a.participant.write(echo, Buffer.from(data.payload ?? '')) });
  const echoes = readerOf(b.participant, { topic: 'rt/echo' });
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  let datagrams = 0;
  wire.onFlight = ({ datagram }) => {
    datagrams += dissect(datagram).filter(
      ({ kind, sender }) => kind === 'data' && entityOf(sender) !== ENTITY.SPDP_WRITER && sender === echo.guid,
    ).length;
  };
  write(b, 'once');
  await time.pass(2);
  t.same(echoes.samples, ['once']);
  t.equal(datagrams, 1);
});

t.test('a listener that throws costs its sample alone', async (t) => {
  const { time, side } = rig(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  readerOf(a.participant, {
    onSample: () => {
      throw new TypeError('a bug');
    },
  });
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  write(b, 'one');
  write(b, 'two');
  await time.pass(1);
  t.same(a.reader.samples, ['one', 'two']);
  t.equal(a.participant.refused, 2);
  t.match(a.participant.lines.join(), /could not be handled.*a bug/);
});

t.test('localhost only: nothing from other machines', async (t) => {
  const { time, side } = rig(t);
  const a = side('10.0.0.1', { localhostOnly: true });
  const b = side('10.0.0.2');
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  t.equal(a.participant.peerCount, 0);
  const { received } = a.participant;
  a.network.inject(Buffer.from('RTPS\x02\x02'.padEnd(20)), '10.0.0.2', false);
  t.equal(a.participant.received, received, 'from another machine');
  a.network.inject(Buffer.from('RTPS\x02\x02'.padEnd(20)), '127.0.0.1', false);
  t.equal(a.participant.received, received + 1, 'from this one');
});

t.test('a reader made for a writer that was announced gets its history', async (t) => {
  const { time, side } = rig(t);
  const b = side('10.0.0.2');
  const made: TestReader[] = [];
  const a: Side = side('10.0.0.1', {
    onRemoteWriter: ({ topic }) => {
      if (topic === 'rt/robot1/health_status' && made.length === 0) made.push(readerOf(a.participant, { topic }));
    },
  });
  const other = writerOf(b.participant, { topic: 'rt/robot1/health_status' });
  b.participant.write(other, Buffer.from('from another namespace'));
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  t.same(made[0]?.samples, ['from another namespace']);
});
