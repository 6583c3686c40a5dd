import t from 'tap';
import { LEASE_SECONDS } from './participant.ts';
import { dissect } from './testing/dissect.ts';
import type { Flight } from './testing/memory-network.ts';
import { readerOf, type TestReader, writerOf } from './testing/participants.ts';
import { type Side, sides, write } from './testing/sides.ts';
import { ParameterWriter } from './wire/parameters.ts';
import { ENTITY, entityOf } from './wire/protocol.ts';

t.test('two participants discover each other and exchange samples, a late joiner included', async (t) => {
  const { time, wire, side } = sides(t);
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
  t.equal(a.participant.locatorsOf(b.participant.prefix)[0]?.address, '10.0.0.2');

  const flights: Flight[] = [];
  wire.onFlight = (flight) => flights.push(flight);
  await time.pass(60);
  t.same(
    flights.filter(({ isMulticast }) => !isMulticast),
    [],
    'when all is acknowledged nothing is reported but that they are there',
  );
  t.ok(flights.length >= 38 && flights.length <= 42, `${flights.length} announcements of two in a minute`);
  t.same([...a.participant.lines, ...b.participant.lines], []);
});

t.test('a removed reader is disposed of only for participants to which it was announced', async (t) => {
  const { time, wire, side } = sides(t);
  const [a, b, c] = [side('10.0.0.1'), side('10.0.0.2'), side('10.0.0.3')];
  const discreet = readerOf(a.participant, { topic: 'discreet', isAnnouncedToWritersOnly: true });
  const writer = writerOf(b.participant, { topic: 'discreet' });
  for (const { participant } of [a, b, c]) await participant.start();
  await time.pass(5);
  t.equal(writer.state.readerCount, 1);
  const reported = new Set<string>();
  wire.onFlight = ({ from, isMulticast, to }) => {
    if (from === '10.0.0.1' && !isMulticast) reported.add(to);
  };
  a.participant.removeReader(discreet);
  await time.pass(4);
  t.equal(writer.state.readerCount, 0);
  t.same([...reported], ['10.0.0.2']);
  b.participant.write(writer, Buffer.from('late'));
  write(b, 'to all');
  await time.pass(1);
  t.same([discreet.samples, a.reader.samples], [[], ['to all']]);
  t.same([...a.participant.lines, ...b.participant.lines], []);
});

t.test('a participant that leaves is removed at once, one without datagrams when its lease ends', async (t) => {
  for (const isPolite of [true, false]) {
    const { time, side } = sides(t);
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

t.test('samples survive loss, duplicates and reordering', async (t) => {
  let seed = 12345;
  const random = (): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed / 0x80000000;
  };
  const { time, side } = sides(t, { delayMs: () => (random() < 0.2 ? null : 1 + random() * 30), copies: () => (random() < 0.1 ? 2 : 1) });
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

t.test('a participant may be stopped in the delivery of a sample', async (t) => {
  const { time, side } = sides(t);
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

t.test('a sample written during a delivery is sent once', async (t) => {
  const { time, wire, side } = sides(t);
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

t.test('a listener that throws loses only its sample', async (t) => {
  const { time, side } = sides(t);
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
  t.match(a.participant.lines.join(), /message handler failed.*a bug/);
});

t.test('a reader created for an announced writer gets its history', async (t) => {
  const { time, side } = sides(t);
  const b = side('10.0.0.2');
  const made: TestReader[] = [];
  const a: Side = side('10.0.0.1', {
    onRemoteWriter: ({ topic }) => {
      if (topic === 'rt/robot1/health_status' && made.length === 0) made.push(readerOf(a.participant, { topic }));
      return true;
    },
  });
  const other = writerOf(b.participant, { topic: 'rt/robot1/health_status' });
  b.participant.write(other, Buffer.from('from another namespace'));
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  t.same(made[0]?.samples, ['from another namespace']);
});

t.test('a sample with an unknown must-understand parameter is ignored', async (t) => {
  const { time, side } = sides(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  const withParameter = (id: number): { inlineQos: Buffer } => ({ inlineQos: new ParameterWriter().uint32(id, 1).list() });
  a.participant.write(a.writer, Buffer.from('plain'));
  a.participant.write(a.writer, Buffer.from('with what may be ignored'), withParameter(0x0099));
  a.participant.write(a.writer, Buffer.from('with what may not'), withParameter(0x4099));
  a.participant.write(a.writer, Buffer.from('after'));
  await time.pass(1);
  t.same(b.reader.samples, ['plain', 'with what may be ignored', 'after']);
});
