import t, { type Test } from 'tap';
import { LIMITS, OctetBudget } from './limits.ts';
import type { DataFragSubmessage, DataSubmessage } from './message-reader.ts';
import { VENDOR } from './protocol.ts';
import { type MatchedWriter, type ReaderAction, StatefulReader } from './reader.ts';

const WRITER: MatchedWriter = { guid: 'a'.repeat(32), reliable: true, transientLocal: true, vendor: VENDOR.CYCLONE_DDS, userData: '' };
const { guid: sender } = WRITER;
const receiver = 0;

const data = (sequenceNumber: number, payload = Buffer.from(`${sequenceNumber}`)): DataSubmessage => ({
  sender,
  receiver,
  sequenceNumber,
  payload,
  isKey: false,
  inlineQos: null,
  sourceTimestampMs: null,
});

/** The fragments of a sample, `octets` each. */
function fragments(sequenceNumber: number, sample: Buffer, octets: number): DataFragSubmessage[] {
  return Array.from({ length: Math.ceil(sample.length / octets) }, (_, i) => ({
    ...data(sequenceNumber),
    payload: sample.subarray(i * octets, (i + 1) * octets),
    fragmentStart: i + 1,
    fragmentCount: 1,
    fragmentOctets: octets,
    sampleOctets: sample.length,
  }));
}

interface Rig {
  readonly reader: StatefulReader;
  readonly budget: OctetBudget;
  /** What was delivered, as text. */
  readonly delivered: string[];
  /** What a poll sends, in short. */
  poll(now?: number): string[];
  due(now: number): number;
  heartbeat(first: number, last: number, isFinal?: boolean): void;
  gap(start: number, base: number, numbers?: readonly number[]): void;
}

function rig({ reliable = true, writer = WRITER, most = LIMITS.waitingOctets, match = true } = {}): Rig {
  const budget = new OctetBudget(most);
  const delivered: string[] = [];
  const reader = new StatefulReader({
    entity: 0x104,
    reliable,
    budget,
    deliver: ({ data: { payload } }) => delivered.push(String(payload)),
  });
  if (match) reader.match(writer, 0);
  return {
    reader,
    budget,
    delivered,
    poll: (now = 0) => {
      const sent: string[] = [];
      reader.poll(now, (_, actions) => sent.push(...actions.map(inShort)));
      return sent;
    },
    due: (now) => reader.poll(now, () => {}),
    heartbeat: (first, last, isFinal = false) => reader.onHeartbeat({ sender, receiver, first, last, count: 0, isFinal }),
    gap: (start, base, numbers = []) => reader.onGap({ sender, receiver, start, set: { base, numbers } }),
  };
}

function inShort(action: ReaderAction): string {
  const numbers = `${action.set.base}:${action.set.numbers.join(' ')}`;
  if (action.kind === 'nackFrag') return `fragments of ${action.sequenceNumber} ${numbers}`;
  return `${action.isFinal ? 'has' : 'asks'} ${numbers}`;
}

t.test('asks a silent writer for a heartbeat, less and less often', async (t) => {
  const { reader, heartbeat, poll } = rig();
  const times: number[] = [];
  for (let now = 0; now < 12; ) {
    now = reader.poll(now, (_, actions) => {
      times.push(now);
      t.same(actions.map(inShort), ['asks 1:']);
    });
  }
  t.same(
    times.map((time) => time.toFixed(1)),
    ['0.0', '0.1', '0.3', '0.7', '1.5', '3.1', '6.1', '9.1'],
  );
  heartbeat(1, 0);
  t.same(poll(20), ['has 1:']);
  t.equal(
    reader.poll(21, () => t.fail('nothing is to be said')),
    Number.POSITIVE_INFINITY,
  );
});

t.test('Fast DDS takes only 0 for that question', async (t) => {
  t.same(rig({ writer: { ...WRITER, vendor: VENDOR.FAST_DDS } }).poll(), ['asks 0:']);
});

t.test('in order, each once, and what is missing is asked for', async (t) => {
  const { reader, delivered, heartbeat, poll } = rig();
  for (const number of [1, 3, 3, 1, 5]) reader.onData(data(number), '');
  t.same(delivered, ['1']);
  heartbeat(1, 5);
  t.same(poll(), ['asks 2:2 4']);
  reader.onData(data(2), '');
  t.same(delivered, ['1', '2', '3']);
  reader.onData(data(4), '');
  heartbeat(1, 5);
  t.same(poll(), ['has 6:']);
  t.same(delivered, ['1', '2', '3', '4', '5']);
});

t.test('a final heartbeat is answered only when something is missing', async (t) => {
  const { reader, heartbeat, poll } = rig();
  poll();
  heartbeat(1, 0, true);
  t.same(poll(1), []);
  reader.onData(data(1), '');
  heartbeat(1, 1, true);
  t.same(poll(1), []);
  heartbeat(1, 2, true);
  t.same(poll(1), ['asks 2:2']);
});

t.test('what a writer no longer has is not waited for', async (t) => {
  const { reader, delivered, heartbeat, poll } = rig();
  reader.onData(data(7), '');
  reader.onData(data(4), '');
  heartbeat(6, 8);
  t.same(delivered, ['4']);
  t.same(poll(), ['asks 6:6 8']);
  heartbeat(1, 8);
  t.same(poll(1), ['asks 6:6 8'], 'a heartbeat that was overtaken changes nothing');
});

t.test('gaps', async (t) => {
  const { reader, delivered, gap, heartbeat, poll } = rig();
  gap(1, 3, [4]);
  reader.onData(data(3), '');
  t.same(delivered, ['3']);
  heartbeat(1, 9);
  t.same(poll(), ['asks 5:5 6 7 8 9']);
  gap(7, 9, [9]);
  heartbeat(1, 9);
  t.same(poll(1), ['asks 5:5 6']);
  reader.onData(data(5), '');
  gap(6, 6, [6]);
  heartbeat(1, 9);
  t.same(poll(), ['has 10:']);
  gap(1, 5);
  heartbeat(1, 9);
  t.same(poll(), ['has 10:'], 'a gap that was overtaken');
  t.same(delivered, ['3', '5']);
});

t.test('numbers that are far away cost nothing', async (t) => {
  const { reader, delivered, gap, heartbeat, poll } = rig();
  const started = performance.now();
  const far = 2 ** 52;
  for (let i = 0; i < 10_000; i += 1) {
    gap(3, far, [far + 255]);
    gap(far, far + 2 ** 40);
    reader.onData(data(far + i), '');
    heartbeat(1, far);
  }
  t.same(poll(), ['asks 1:1 2'], 'what is 256 ahead is not looked at');
  t.ok(performance.now() - started < 2000, `${performance.now() - started} ms`);
  t.same(delivered, []);
  heartbeat(far, far + 9999);
  t.equal(poll()[0]?.split(' ').length, 257, '256 are asked for at once');
});

t.test('best effort: newer ones as they come', async (t) => {
  for (const options of [{ reliable: false }, { writer: { ...WRITER, reliable: false } }]) {
    const { reader, delivered, due, gap, heartbeat, poll } = rig(options);
    for (const number of [3, 1, 4, 4, 9]) reader.onData(data(number), '');
    heartbeat(1, 12);
    gap(10, 12);
    t.same(delivered, ['3', '4', '9']);
    t.same(poll(), []);
    t.equal(due(1), Number.POSITIVE_INFINITY);
  }
});

t.test('fragments, in any order, twice, and the missing ones asked for', async (t) => {
  const { reader, delivered, budget, heartbeat, poll } = rig();
  const sample = 'abcdefghijklmnopqrstuvwxy';
  const [first, second, third] = fragments(1, Buffer.from(sample), 10) as [DataFragSubmessage, DataFragSubmessage, DataFragSubmessage];
  reader.onDataFrag(third, '');
  reader.onDataFrag(third, '');
  reader.onData(data(2), '');
  t.ok(budget.held > 0);
  heartbeat(1, 2);
  t.same(poll(), ['asks 1:', 'fragments of 1 1:1 2'], 'a sample that is partly here is asked for by fragment');
  reader.onDataFrag(second, '');
  heartbeat(1, 2);
  t.same(poll(1), ['asks 1:', 'fragments of 1 1:1']);
  reader.onDataFrag(first, '');
  t.same(delivered, [sample, '2']);
  t.equal(budget.held, 0);
  reader.onDataFrag(first, '');
  t.equal(budget.held, 0, 'of a sample that was delivered');
});

t.test('HEARTBEAT_FRAG: some of the sample is here, and the rest is asked for', async (t) => {
  const { reader, poll, heartbeat } = rig();
  heartbeat(1, 0);
  poll();
  const [first] = fragments(1, Buffer.alloc(30), 10) as [DataFragSubmessage];
  reader.onDataFrag(first, '');
  reader.onHeartbeatFrag(sender, 1);
  t.same(poll(), ['asks 1:', 'fragments of 1 2:2 3']);
});

t.test('a sample too large for us is passed over', async (t) => {
  for (const [what, sampleOctets, fragmentOctets] of [
    ['too many octets', LIMITS.sampleOctets + 1, 1000],
    ['too many fragments', LIMITS.sampleFragments + 1, 1],
  ] as const) {
    const { reader, delivered, budget, heartbeat, poll } = rig();
    reader.onData(data(1), '');
    reader.onData(data(3), '');
    const before = budget.held;
    const huge = { ...(fragments(2, Buffer.alloc(fragmentOctets), fragmentOctets)[0] as DataFragSubmessage), sampleOctets };
    reader.onDataFrag(huge, '');
    reader.onDataFrag({ ...huge, fragmentStart: 2 }, '');
    t.same(delivered, ['1', '3'], what);
    t.ok(budget.held < before);
    t.equal(reader.skipped, 1);
    heartbeat(1, 3);
    t.same(poll(), ['has 4:']);
  }
});

t.test('memory is bounded: what does not fit is asked for again', async (t) => {
  const { reader, budget, delivered, heartbeat, poll } = rig({ most: 10_000 });
  for (let number = 100; number > 1; number -= 1) reader.onData(data(number, Buffer.alloc(1000)), '');
  t.ok(budget.held <= 10_000 && budget.held > 5000, `${budget.held}`);
  heartbeat(1, 100);
  const [asks] = poll();
  t.ok(asks?.startsWith('asks 1:1 ') && asks.endsWith(' 99 100'), String(asks));
  for (let number = 1; number <= 100; number += 1) reader.onData(data(number, Buffer.from('x')), '');
  t.equal(delivered.length, 100);
  t.equal(budget.held, 0);
});

t.test('nothing that waits is free', async (t) => {
  for (const [what, act] of [
    ['gaps', ({ gap }: Rig, number: number) => gap(number, number + 1)],
    ['empty samples', ({ reader }: Rig, number: number) => reader.onData({ ...data(number), payload: null }, '')],
    [
      'fragments of an octet',
      ({ reader }: Rig, number: number) => reader.onDataFrag(fragments(number, Buffer.alloc(2), 1)[0] as DataFragSubmessage, ''),
    ],
  ] as const) {
    const one = rig();
    one.reader.onData(data(1), '');
    act(one, 3);
    t.ok(one.budget.held >= 64, `${what}: ${one.budget.held}`);
    one.heartbeat(99, 99);
    t.equal(one.budget.held, 0, `${what}: given back`);
  }
});

t.test('the sample in turn gets its memory from later ones', async (t) => {
  const { reader, budget, delivered, heartbeat, poll } = rig({ most: 20_000 });
  // What waits has taken all there is; the one in turn comes in fragments.
  for (let number = 2; number < 30; number += 1) reader.onData(data(number, Buffer.alloc(1000, 'x')), '');
  for (const fragment of fragments(1, Buffer.alloc(8000, 'y'), 1000)) reader.onDataFrag(fragment, '');
  t.equal(delivered[0], 'y'.repeat(8000));
  heartbeat(1, 29);
  t.ok(poll()[0]?.startsWith('asks '), 'the later ones again');
  t.ok(budget.held <= 20_000);
});

t.test('so does the one in turn among too many that are partly here', async (t) => {
  const { reader, delivered } = rig();
  for (let number = 2; number < 40; number += 1) reader.onDataFrag(fragments(number, Buffer.alloc(20), 10)[0] as DataFragSubmessage, '');
  for (const fragment of fragments(1, Buffer.from('in fragments'), 10)) reader.onDataFrag(fragment, '');
  t.same(delivered, ['in fragments']);
});

t.test('fragments that say otherwise than those before', async (t) => {
  const { reader, delivered } = rig();
  reader.onDataFrag(fragments(1, Buffer.alloc(99), 10)[0] as DataFragSubmessage, '');
  for (const fragment of fragments(1, Buffer.from('the true one'), 5)) reader.onDataFrag(fragment, '');
  t.same(delivered, ['the true one'], 'the last word counts');
});

t.test('fragments of a sample from a best-effort writer that lost some', async (t) => {
  const { reader, delivered, budget } = rig({ reliable: false });
  for (let number = 1; number < 100; number += 1) reader.onDataFrag(fragments(number, Buffer.alloc(20), 10)[0] as DataFragSubmessage, '');
  t.ok(budget.held <= LIMITS.partialSamples * 1000, `${budget.held}`);
  for (const fragment of fragments(100, Buffer.from('in fragments'), 10)) reader.onDataFrag(fragment, '');
  t.same(delivered, ['in fragments']);
  t.equal(budget.held, 0);
});

t.test('a writer that never sends what it claims to have does not hold up the rest', async (t) => {
  const { reader, delivered, heartbeat, poll } = rig();
  reader.onData(data(2), '');
  let now = 0;
  while (delivered.length === 0 && now < 3600) {
    heartbeat(1, 2);
    poll(now);
    now += 1;
  }
  t.same(delivered, ['2']);
  t.equal(reader.skipped, 1);
  t.ok(now > 30 && now < 300, `given up after ${now} s`);
});

t.test('a request that was lost is made again without another heartbeat, once', async (t) => {
  const { reader, due, heartbeat, poll } = rig();
  heartbeat(1, 1);
  t.same(poll(0), ['asks 1:1']);
  t.equal(due(0), Number.POSITIVE_INFINITY, 'the writer repeats its heartbeat, if it does not hear of us');
  heartbeat(1, 1);
  t.same(poll(0.001), [], 'not so soon');
  const next = due(0.001);
  t.ok(next > 0.001 && next < 0.1, `${next}`);
  t.same(poll(next), ['asks 1:1']);
  heartbeat(1, 1);
  reader.onData(data(1), '');
  t.same(poll(next), ['has 2:'], 'an answer needs no pause');
});

t.test('many heartbeats in a short while do not make it give up', async (t) => {
  const { reader, delivered, heartbeat, poll } = rig();
  // 1,000 samples a second, each with a heartbeat, over a link where the answer to a request takes a second.
  let asked = 0;
  for (let number = 2; number < 1002; number += 1) {
    reader.onData(data(number), '');
    heartbeat(1, number);
    asked += poll(number / 1000).length;
  }
  t.ok(asked > 3 && asked < 20, `asked ${asked} times in a second for the same`);
  reader.onData(data(1), '');
  t.equal(delivered[0], '1');
  t.equal(reader.skipped, 0);
});

t.test('unmatched while it delivers', async (t) => {
  const budget = new OctetBudget(10_000);
  const delivered: number[] = [];
  const reader: StatefulReader = new StatefulReader({
    entity: 0x104,
    reliable: true,
    budget,
    deliver: ({ data: { sequenceNumber } }) => {
      delivered.push(sequenceNumber);
      if (sequenceNumber === 2) reader.unmatch(sender);
    },
  });
  reader.match(WRITER, 0);
  for (const number of [4, 3, 2, 1]) reader.onData(data(number), '');
  t.same(delivered, [1, 2]);
  t.equal(budget.held, 0);
  reader.onData(data(3), '');
  reader.unmatch(sender);
  t.equal(reader.writerCount, 0);
  t.equal(
    reader.poll(1, () => t.fail('nobody to say it to')),
    Number.POSITIVE_INFINITY,
  );
});

t.test('what waits is not in the memory of its datagram', async (t) => {
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
  reader.onData(data(2, datagram.subarray(0, 4)), '');
  const [a, b] = fragments(3, datagram.subarray(4), 2) as [DataFragSubmessage, DataFragSubmessage];
  reader.onDataFrag(a, '');
  reader.onDataFrag(b, '');
  datagram.fill('x');
  reader.onData(data(1), '');
  t.same(delivered.map(String), ['1', '2222', '3333']);
  for (const payload of delivered.slice(1)) t.equal(payload.buffer.byteLength, payload.length, 'nor in a slab that others keep alive');
});

t.test('matched twice is matched once', async (t: Test) => {
  const { reader, delivered } = rig();
  reader.onData(data(1), '');
  reader.match(WRITER, 5);
  reader.onData(data(1), '');
  t.same(delivered, ['1']);
  t.same(reader.writers, [WRITER]);
});
