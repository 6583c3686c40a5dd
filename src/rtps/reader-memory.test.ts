import t from 'tap';
import { StatefulReader } from './endpoints/reader.ts';
import { LIMITS, OctetBudget } from './limits.ts';
import { data, fragments, type ReaderRig, readerRig, SOURCE, sender, WRITER } from './testing/reader-rig.ts';
import type { DataFragSubmessage } from './wire/message-reader.ts';

t.test('numbers far ahead take no memory', async (t) => {
  // One step for each of the numbers would take years.
  const { reader, budget, delivered, gap, heartbeat, poll } = readerRig();
  const far = 2 ** 52;
  let heldAtFirst = 0;
  for (let i = 0; i < 1000; i += 1) {
    gap(3, far, [far + 255]);
    gap(far, far + 2 ** 40);
    reader.onData(data(far + i), SOURCE, 0);
    heartbeat(1, far);
    if (i === 0) heldAtFirst = budget.held;
  }
  t.same(poll(), ['asks 1:1 2'], 'numbers 256 ahead are ignored');
  t.equal(budget.held, heldAtFirst, 'nor is more kept each time');
  t.same(delivered, []);
  heartbeat(far, far + 9999);
  t.equal(poll()[0]?.split(' ').length, 257, '256 are asked for at once');
});

t.test('fragments in any order, duplicates, and requests of missing ones', async (t) => {
  const { reader, delivered, budget, heartbeat, poll } = readerRig();
  const sample = 'abcdefghijklmnopqrstuvwxy';
  const [first, second, third] = fragments(1, Buffer.from(sample), 10) as [DataFragSubmessage, DataFragSubmessage, DataFragSubmessage];
  reader.onDataFrag(third, SOURCE, 0);
  reader.onDataFrag(third, SOURCE, 0);
  reader.onData(data(2), SOURCE, 0);
  t.ok(budget.held > 0);
  heartbeat(1, 2);
  t.same(poll(), ['asks 1:', 'fragments of 1 1:1 2'], 'a sample that is partly here is asked for by fragment');
  reader.onDataFrag(second, SOURCE, 0);
  heartbeat(1, 2);
  t.same(poll(1), ['asks 1:', 'fragments of 1 1:1']);
  reader.onDataFrag(first, SOURCE, 0);
  t.same(delivered, [sample, '2']);
  t.equal(budget.held, 0);
  reader.onDataFrag(first, SOURCE, 0);
  t.equal(budget.held, 0, 'of a sample that was delivered');
});

t.test('HEARTBEAT_FRAG: missing fragments are requested', async (t) => {
  const { reader, poll, heartbeat } = readerRig();
  heartbeat(1, 0);
  poll();
  const [first] = fragments(1, Buffer.alloc(30), 10) as [DataFragSubmessage];
  reader.onDataFrag(first, SOURCE, 0);
  reader.onHeartbeatFrag(sender, 1);
  t.same(poll(), ['asks 1:', 'fragments of 1 2:2 3']);
});

t.test('a sample that is too large is skipped', async (t) => {
  for (const [what, sampleOctets, fragmentOctets] of [
    ['too many octets', LIMITS.sampleOctets + 1, 1000],
    ['too many fragments', LIMITS.sampleFragments + 1, 1],
  ] as const) {
    const { reader, delivered, budget, heartbeat, poll } = readerRig();
    reader.onData(data(1), SOURCE, 0);
    reader.onData(data(3), SOURCE, 0);
    const before = budget.held;
    const huge = { ...(fragments(2, Buffer.alloc(fragmentOctets), fragmentOctets)[0] as DataFragSubmessage), sampleOctets };
    reader.onDataFrag(huge, SOURCE, 0);
    reader.onDataFrag({ ...huge, fragmentStart: 2 }, SOURCE, 0);
    t.same(delivered, ['1', '3'], what);
    t.ok(budget.held < before);
    heartbeat(1, 3);
    t.same(poll(), ['has 4:']);
  }
});

t.test('memory is bounded: samples beyond the budget are requested again', async (t) => {
  const { reader, budget, delivered, heartbeat, poll } = readerRig({ most: 10_000 });
  for (let number = 100; number > 1; number -= 1) reader.onData(data(number, Buffer.alloc(1000)), SOURCE, 0);
  t.ok(budget.held <= 10_000 && budget.held > 5000, `${budget.held}`);
  heartbeat(1, 100);
  const [asks] = poll();
  t.ok(asks?.startsWith('asks 1:1 ') && asks.endsWith(' 99 100'), String(asks));
  for (let number = 1; number <= 100; number += 1) reader.onData(data(number, Buffer.from('x')), SOURCE, 0);
  t.equal(delivered.length, 100);
  t.equal(budget.held, 0);
});

t.test('every buffered item counts in the budget', async (t) => {
  for (const [what, act] of [
    ['gaps', ({ gap }: ReaderRig, number: number) => gap(number, number + 1)],
    ['empty samples', ({ reader }: ReaderRig, number: number) => reader.onData({ ...data(number), payload: null }, SOURCE, 0)],
    [
      'fragments of an octet',
      ({ reader }: ReaderRig, number: number) =>
        reader.onDataFrag(fragments(number, Buffer.alloc(2), 1)[0] as DataFragSubmessage, SOURCE, 0),
    ],
  ] as const) {
    const one = readerRig();
    one.reader.onData(data(1), SOURCE, 0);
    act(one, 3);
    t.ok(one.budget.held >= 64, `${what}: ${one.budget.held}`);
    one.heartbeat(99, 99);
    t.equal(one.budget.held, 0, `${what}: given back`);
  }
});

t.test('the next sample evicts later ones', async (t) => {
  const { reader, budget, delivered, heartbeat, poll } = readerRig({ most: 20_000 });
  // Waiting samples use the whole budget; the next sample in order comes in fragments.
  for (let number = 2; number < 30; number += 1) reader.onData(data(number, Buffer.alloc(1000, 'x')), SOURCE, 0);
  for (const fragment of fragments(1, Buffer.alloc(8000, 'y'), 1000)) reader.onDataFrag(fragment, SOURCE, 0);
  t.equal(delivered[0], 'y'.repeat(8000));
  heartbeat(1, 29);
  t.ok(poll()[0]?.startsWith('asks '), 'the later ones again');
  t.ok(budget.held <= 20_000);
});

t.test('the next sample evicts later incomplete ones', async (t) => {
  const { reader, delivered } = readerRig();
  for (let number = 2; number < 40; number += 1)
    reader.onDataFrag(fragments(number, Buffer.alloc(20), 10)[0] as DataFragSubmessage, SOURCE, 0);
  for (const fragment of fragments(1, Buffer.from('in fragments'), 10)) reader.onDataFrag(fragment, SOURCE, 0);
  t.same(delivered, ['in fragments']);
});

t.test('contradictory fragments', async (t) => {
  const { reader, delivered } = readerRig();
  reader.onDataFrag(fragments(1, Buffer.alloc(99), 10)[0] as DataFragSubmessage, SOURCE, 0);
  for (const fragment of fragments(1, Buffer.from('the true one'), 5)) reader.onDataFrag(fragment, SOURCE, 0);
  t.same(delivered, ['the true one'], 'the last word counts');
});

t.test('fragments of a sample from a best-effort writer that lost some', async (t) => {
  const { reader, delivered, budget } = readerRig({ reliable: false });
  for (let number = 1; number < 100; number += 1)
    reader.onDataFrag(fragments(number, Buffer.alloc(20), 10)[0] as DataFragSubmessage, SOURCE, 0);
  t.ok(budget.held <= LIMITS.partialSamples * 1000, `${budget.held}`);
  for (const fragment of fragments(100, Buffer.from('in fragments'), 10)) reader.onDataFrag(fragment, SOURCE, 0);
  t.same(delivered, ['in fragments']);
  t.equal(budget.held, 0);
});

t.test('buffered samples do not retain the datagram', async (t) => {
  const budget = new OctetBudget(10_000);
  const delivered: Buffer[] = [];
  const reader = new StatefulReader({
    entity: 0x104,
    reliable: true,
    budget,
    deliver: ({ data: { payload } }) => delivered.push(payload as Buffer),
  });
  reader.match(WRITER, 0);
  const datagram = Buffer.from('22223333');
  reader.onData(data(2, datagram.subarray(0, 4)), SOURCE, 0);
  const [a, b] = fragments(3, datagram.subarray(4), 2) as [DataFragSubmessage, DataFragSubmessage];
  reader.onDataFrag(a, SOURCE, 0);
  reader.onDataFrag(b, SOURCE, 0);
  datagram.fill('x');
  reader.onData(data(1), SOURCE, 0);
  t.same(delivered.map(String), ['1', '2222', '3333']);
  for (const payload of delivered.slice(1)) t.equal(payload.buffer.byteLength, payload.length, 'nor in a slab that others keep alive');
});
