import assert from 'node:assert/strict';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { ForgedParticipant } from './testing/forged-participant.ts';
import { entity, message, sn, submessage, u32 } from './testing/octets.ts';
import { randomFrom } from './testing/random.ts';
import { data, fragments, readerRig, SOURCE, sender, WRITER } from './testing/reader-rig.ts';
import { type Side, type Sides, sides, write } from './testing/sides.ts';
import { type SimulatedReader, Simulation } from './testing/simulation.ts';
import type { DataFragSubmessage } from './wire/message-reader.ts';
import { ENTITY, type EntityId, entityOf } from './wire/protocol.ts';

/** A host that forges the address and the GUID of a writer, and receives nothing, cannot suppress the writer's samples. */

t.setTimeout(900_000);

type Lie =
  | { readonly kind: 'heartbeat'; readonly first: number; readonly last: number }
  | { readonly kind: 'gap'; readonly start: number; readonly base: number }
  | { readonly kind: 'data' | 'fragment' | 'large fragment' | 'fragment heartbeat'; readonly number: number };

function tell({ state }: SimulatedReader, lie: Lie, now: number): void {
  const [writer] = state.writers;
  if (!writer) return;
  const origin = { sender: writer.guid, senderEntity: 0x103, receiver: 0 };
  const payload = Buffer.alloc(8, 0xff);
  if (lie.kind === 'heartbeat') state.onHeartbeat({ ...origin, first: lie.first, last: lie.last, count: 2 ** 31 - 1, isFinal: false }, now);
  else if (lie.kind === 'gap') state.onGap({ ...origin, start: lie.start, set: { base: lie.base, numbers: [] } }, now);
  else if (lie.kind === 'fragment heartbeat') state.onHeartbeatFrag(origin.sender, lie.number);
  else {
    const data = { sequenceNumber: lie.number, payload, isKey: false, inlineQos: null, sourceTimestampMs: null, ...origin };
    if (lie.kind === 'data') state.onData(data, SOURCE, now);
    else {
      const [fragment] = fragments(lie.number, payload, 4) as [DataFragSubmessage];
      const sampleOctets = lie.kind === 'fragment' ? payload.length : 2 ** 31;
      state.onDataFrag({ ...fragment, ...data, sampleOctets }, SOURCE, now);
    }
  }
}

const number = fc.oneof(
  fc.integer({ min: 1, max: 350 }),
  fc.integer({ min: 1, max: 40 }),
  fc.constant(2 ** 40),
  fc.integer({ min: 1, max: 2 ** 50 }),
);
const lie: fc.Arbitrary<Lie> = fc.oneof(
  fc.tuple(number, number).map(([first, length]): Lie => ({ kind: 'heartbeat', first, last: first - 1 + (length % 300) })),
  fc.tuple(number, number).map(([start, length]): Lie => ({ kind: 'gap', start, base: start + length })),
  fc.record({ kind: fc.constantFrom('data', 'fragment', 'large fragment', 'fragment heartbeat'), number }) as fc.Arbitrary<Lie>,
);
/** A series of lies: repeated in this interval, and with numbers that increase. */
const attack = fc.record({
  lies: fc.array(lie, { minLength: 1, maxLength: 4 }),
  from: fc.double({ min: 0, max: 20, noNaN: true }),
  times: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 40 })),
  interval: fc.double({ min: 0, max: 1, noNaN: true }),
  step: fc.constantFrom(0, 1, 300),
});

function moved(one: Lie, by: number): Lie {
  if (one.kind === 'heartbeat') return { ...one, first: one.first + by, last: one.last + by };
  if (one.kind === 'gap') return { ...one, start: one.start + by, base: one.base + by };
  return { ...one, number: one.number + by };
}

const FAR = 2 ** 40;

t.test('heartbeats that skip numbers suppress no sample', async (t) => {
  for (const first of [3, 200, 4000]) {
    const { delivered, heartbeat, poll, receive } = readerRig();
    receive(1);
    heartbeat(1, 1);
    heartbeat(first, first + 1);
    heartbeat(first, first + 1);
    receive(2);
    heartbeat(1, 2);
    t.same(delivered, ['1', '2'], `${first}`);
    heartbeat(first, first);
    heartbeat(1, 3);
    t.same(poll(1), ['asks 3:3'], 'a sample that was lost is requested');
  }
});

t.test('GAPs and fragments of a sample that is too large suppress no sample', async (t) => {
  for (const skip of ['gap', 'fragment'] as const) {
    const { reader, delivered, gap, heartbeat, receive } = readerRig();
    receive(1);
    if (skip === 'gap') gap(2, 200);
    else reader.onDataFrag({ ...(fragments(2, Buffer.alloc(9), 4)[0] as DataFragSubmessage), sampleOctets: 2 ** 31 }, SOURCE, 0);
    receive(2);
    heartbeat(1, 2);
    t.same(delivered, ['1', '2'], skip);
  }
});

t.test('a first heartbeat that is forged', async (t) => {
  const { delivered, heartbeat, poll, receive } = readerRig();
  heartbeat(FAR, FAR + 1);
  t.same(poll(), [`asks ${FAR}:${FAR} ${FAR + 1}`], 'a writer may begin with any number');
  heartbeat(1, 3);
  t.same(poll(1), ['asks 1:1 2 3']);
  for (const number of [1, 2, 3]) receive(number);
  t.same(delivered, ['1', '2', '3']);
});

t.test('a number far ahead is not believed while lower ones arrive', async (t) => {
  const rig = readerRig();
  const { delivered, heartbeat, gap, poll, receive, implausible } = rig;
  receive(1);
  heartbeat(1, 1, true);
  for (let second = 1; second < 20; second += 1) {
    rig.now = second;
    heartbeat(FAR, FAR + second);
    gap(2, FAR);
    t.same(poll(second), [`asks ${second}:${second}`], 'the writer is asked what is true');
    receive(second + 1);
    heartbeat(1, second + 1, true);
    receive(FAR);
  }
  t.equal(delivered.length, 20);
  t.equal(implausible.length, 2 * 19);
});

t.test('a number far ahead is believed when no other one arrives', async (t) => {
  const { delivered, heartbeat, poll, receive } = readerRig();
  receive(1);
  heartbeat(1, 1, true);
  let now = 0;
  for (; delivered.length < 2 && now < 60; now += 0.5) {
    poll(now);
    heartbeat(FAR, FAR + 1);
    if (poll(now)[0]?.startsWith(`asks ${FAR}:`)) receive(FAR);
  }
  t.same(delivered, ['1', String(FAR)], 'the network had failed for long');
  t.ok(now > 2 && now < 10, `${now}`);
});

t.test('what is forged is not acknowledged', async (t) => {
  const { heartbeat, poll, receive } = readerRig();
  for (const number of [1, 2, 3]) receive(number);
  heartbeat(1, 2);
  t.same(poll(), ['has 3:'], 'a forged number may stop Fast DDS from sending');
});

t.test('forged samples are added, and suppress none', async (t) => {
  for (const [what, count] of [
    ['the next one', 1],
    ['the next 250', 250],
  ] as const) {
    const rig = readerRig();
    const { reader, delivered, heartbeat, poll } = rig;
    const genuine = (number: number) => reader.onData({ ...data(number), sourceTimestampMs: number }, SOURCE, rig.now);
    genuine(1);
    heartbeat(1, 1, true);
    // Last first, so that they fill the reorder buffer.
    for (let number = 1 + count; number > 1; number -= 1) rig.receive(number, 'forged');
    const written: number[] = [];
    for (rig.now = 1; rig.now < 20; ) {
      const number = rig.now + 1;
      genuine(number);
      written.push(number);
      const second = rig.now;
      for (let i = 0; i < 10; i += 1) {
        heartbeat(Math.max(1, number - 9), number);
        for (const asked of poll(second + i / 10)[0]
          ?.match(/^asks .*:(.*)/)?.[1]
          ?.split(' ') ?? [])
          genuine(Number(asked));
      }
      rig.now = second + 1;
    }
    t.same([...new Set(delivered)].filter((text) => text !== 'forged').map(Number), [1, ...written], what);
  }
});

t.test('a heartbeat and a GAP that end far ahead suppress no sample that was lost', async (t) => {
  const { delivered, gap, heartbeat, poll, receive } = readerRig();
  receive(1);
  heartbeat(1, 5000);
  gap(1, 5000);
  t.match(poll(1)[0], /^asks 2:2 /);
  receive(2);
  heartbeat(1, 2);
  t.same(delivered, ['1', '2']);
});

t.test('a GAP of a contested writer suppresses no sample that was lost', async (t) => {
  const rig = readerRig();
  const genuine = (number: number) => rig.reader.onData({ ...data(number), sourceTimestampMs: number }, SOURCE, rig.now);
  genuine(1);
  rig.receive(1, 'forged');
  rig.heartbeat(1, 2);
  rig.gap(1, 5000);
  t.same(rig.poll(1), ['asks 2:2']);
  genuine(2);
  t.same(rig.delivered, ['1', 'forged', '2']);
});

t.test('the last copy of a buffered sample counts', async (t) => {
  const { delivered, receive } = readerRig();
  receive(2, 'forged');
  receive(2, 'genuine');
  receive(1);
  t.same(delivered, ['1', 'genuine']);
});

t.test('best effort: forged numbers suppress at most the samples of some seconds', async (t) => {
  for (const number of [3, 300, 4000, FAR]) {
    const rig = readerRig({ writer: { ...WRITER, reliable: false } });
    const { delivered, receive } = rig;
    for (let second = 1; second < 60; second += 1) {
      rig.now = second;
      receive(second);
      if (second < 20) receive(number + second, 'forged');
    }
    const genuine = delivered.filter((text) => text !== 'forged').map(Number);
    t.ok(genuine.length >= 57, `${number}: ${genuine.length} of 59`);
    t.same(
      genuine.slice(-50),
      Array.from({ length: 50 }, (_, i) => i + 10),
    );
  }
});

t.test('many senders with one GUID take little memory', async (t) => {
  const rig = readerRig();
  rig.receive(1);
  for (let i = 0; i < 10_000; i += 1) {
    rig.now += 0.1;
    rig.heartbeat(1 + (i % 7) * 1000, (i % 7) * 1000 + 300);
    rig.receive((i * 37) % 9000, 'x'.repeat(100));
    rig.reader.onDataFrag(fragments(1 + ((i * 37) % 9000), Buffer.alloc(20), 10)[0] as DataFragSubmessage, SOURCE, rig.now);
  }
  t.ok(rig.budget.held < 500_000, `${rig.budget.held}`);
  rig.reader.unmatch(sender);
  t.equal(rig.budget.held, 0);
});

interface Scene extends Sides {
  /** The participant under test. */
  readonly own: Side;
  readonly friend: Side;
  /** Creates datagrams that seem to be of the friend; they are sent from its address. */
  readonly forged: ForgedParticipant;
}

async function scene(t: Test): Promise<Scene> {
  const all = sides(t);
  const [own, friend] = [all.side('10.0.0.1'), all.side('10.0.0.2')];
  await own.participant.start();
  await friend.participant.start();
  await all.time.pass(5);
  return { ...all, own, friend, forged: ForgedParticipant.named(friend.participant.prefix, { address: '10.0.0.2', port: 7410 }) };
}

for (const [what, lies] of Object.entries<(forged: ForgedParticipant, writer: EntityId, second: number) => Buffer[]>({
  'two heartbeats': (forged, writer) => [forged.heartbeat(writer, 50, 60), forged.heartbeat(writer, 50, 60)],
  'two heartbeats far ahead': (forged, writer) => [forged.heartbeat(writer, FAR, FAR), forged.heartbeat(writer, FAR, FAR)],
  'heartbeats and samples': (forged, writer) => [
    forged.heartbeat(writer, 50, 60),
    forged.data(writer, Buffer.from('forged'), ENTITY.UNKNOWN, 50),
    forged.heartbeat(writer, 300, 300),
    forged.data(writer, Buffer.from('forged'), ENTITY.UNKNOWN, 300),
  ],
  'the next 200 samples': (forged, writer) =>
    Array.from({ length: 200 }, (_, i) => forged.data(writer, Buffer.from('forged'), ENTITY.UNKNOWN, i + 1)),
  'a gap': (forged, writer) => [message(forged.prefix, submessage(0x08, [entity(ENTITY.UNKNOWN), entity(writer), sn(1), sn(200), u32(0)]))],
  'low numbers': (forged, writer) => [forged.heartbeat(writer, 1, 0), forged.heartbeat(writer, 1, 1)],
})) {
  for (const isEndless of [false, true]) {
    t.test(`forged from the address of a participant: ${what}${isEndless ? ', once a second' : ''}`, async (t) => {
      const { own, friend, forged, time } = await scene(t);
      for (let second = 1; second <= 40; second += 1) {
        write(friend, `${second}`);
        await time.pass(0.7);
        if (second === 3 || (isEndless && second > 3))
          for (const datagram of lies(forged, entityOf(friend.writer.guid), second)) own.network.inject(datagram, '10.0.0.2', false);
        await time.pass(0.3);
      }
      await time.pass(5);
      const got = new Set(own.reader.samples);
      t.same(
        Array.from({ length: 40 }, (_, i) => `${i + 1}`).filter((text) => !got.has(text)),
        [],
      );
    });
  }
}

t.test('any forged messages', async () => {
  fc.assert(
    fc.property(fc.array(attack, { minLength: 1, maxLength: 3 }), fc.nat(), fc.boolean(), (attacks, seed, isLossy) => {
      const random = randomFrom(seed);
      const channel = { random, loss: isLossy ? 0.1 : 0, duplication: isLossy ? 0.1 : 0, longestDelaySeconds: 0.02 };
      const simulation = new Simulation(channel, { depth: 10, transientLocal: true, isPeriodic: true });
      const reader = simulation.join({ reliable: true, transientLocal: true }, 0.01);
      const SECONDS = 100;
      for (let second = 1; second <= SECONDS; second += 1) simulation.at(second, () => simulation.write(100, null));
      const end = Math.max(...attacks.map(({ from, times, interval }) => from + times * interval));
      const forged: { readonly start: number; readonly base: number }[] = [];
      for (const { lies, from, times, interval, step } of attacks) {
        for (let i = 0; i < times; i += 1) {
          simulation.at(from + i * interval, () => {
            for (const one of lies.map((each) => moved(each, i * step))) {
              if ('number' in one) forged.push({ start: one.number, base: one.number + 1 });
              else if (one.kind === 'gap') forged.push(one);
              tell(reader, one, simulation.now);
            }
            simulation.poll(reader);
          });
        }
      }
      simulation.runUntil(300);
      const got = new Set(reader.received);
      // A sample that is lost in transit cannot be told from a forged one of its number, nor from one that a forged message skipped.
      const isDue = (written: number): boolean =>
        !isLossy || (written > end + 5 && !forged.some(({ start, base }) => written >= start && written < base));
      assert.deepEqual(
        reader.written.filter((written) => isDue(written) && !got.has(written)),
        [],
        'none is suppressed',
      );
    }),
    { numRuns: runs(300, 20_000), seed: SEED },
  );
});
