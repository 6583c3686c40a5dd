import t, { type Test } from 'tap';
import { OctetBudget } from '../limits.ts';
import { data, inShort, readerRig, SOURCE, sender, WRITER } from '../testing/reader-rig.ts';
import { VENDOR } from '../wire/protocol.ts';
import { StatefulReader } from './reader.ts';

t.test('requests the first heartbeat of a writer with increasing pauses', async (t) => {
  const { reader, heartbeat, poll } = readerRig();
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

t.test('Fast DDS needs base 0 for that request', async (t) => {
  t.same(readerRig({ writer: { ...WRITER, vendor: VENDOR.FAST_DDS } }).poll(), ['asks 0:']);
});

t.test('samples are delivered once and in order, missing ones requested', async (t) => {
  const { reader, delivered, heartbeat, poll } = readerRig();
  for (const number of [1, 3, 3, 1, 5]) reader.onData(data(number), SOURCE, 0);
  t.same(delivered, ['1']);
  heartbeat(1, 5);
  t.same(poll(), ['asks 2:2 4']);
  reader.onData(data(2), SOURCE, 0);
  t.same(delivered, ['1', '2', '3']);
  reader.onData(data(4), SOURCE, 0);
  heartbeat(1, 5);
  t.same(poll(), ['has 6:']);
  t.same(delivered, ['1', '2', '3', '4', '5']);
});

t.test('unordered: samples are delivered on arrival, despite forged numbers', async (t) => {
  const { reader, delivered, gap, heartbeat, poll } = readerRig({ isUnordered: true });
  for (const number of [1, 3, 3, 2 ** 40]) reader.onData(data(number), SOURCE, 0);
  t.same(delivered.splice(0), ['1', '3', '3', String(2 ** 40)]);
  heartbeat(1, 3);
  t.same(poll(), ['asks 2:2'], 'what is missing is asked for all the same');
  heartbeat(2 ** 41, 2 ** 41);
  gap(1, 2 ** 42);
  for (const number of [2, 4, 5]) reader.onData(data(number), SOURCE, 0);
  t.same(delivered, ['2', '4', '5']);
  t.equal(reader.isMatched(sender), true);
});

t.test('a final heartbeat is answered only when something is missing', async (t) => {
  const { reader, heartbeat, poll } = readerRig();
  poll();
  heartbeat(1, 0, true);
  t.same(poll(1), []);
  reader.onData(data(1), SOURCE, 0);
  heartbeat(1, 1, true);
  t.same(poll(1), []);
  heartbeat(1, 2, true);
  t.same(poll(1), ['asks 2:2']);
});

t.test('samples that a writer no longer has are skipped', async (t) => {
  const { reader, delivered, heartbeat, poll } = readerRig();
  reader.onData(data(7), SOURCE, 0);
  reader.onData(data(4), SOURCE, 0);
  heartbeat(6, 8);
  t.same(delivered, ['4']);
  t.same(poll(), ['asks 6:6 8']);
  heartbeat(1, 8);
  t.same(poll(1), ['asks 6:6 8'], 'a heartbeat that was overtaken changes nothing');
});

t.test('gaps', async (t) => {
  const { reader, delivered, gap, heartbeat, poll } = readerRig();
  gap(1, 3, [4]);
  reader.onData(data(3), SOURCE, 0);
  t.same(delivered, ['3']);
  heartbeat(1, 9);
  t.same(poll(), ['asks 5:5 6 7 8 9']);
  gap(7, 9, [9]);
  heartbeat(1, 9);
  t.same(poll(1), ['asks 5:5 6']);
  reader.onData(data(5), SOURCE, 0);
  gap(6, 6, [6]);
  heartbeat(1, 9);
  t.same(poll(), ['has 10:']);
  gap(1, 5);
  heartbeat(1, 9);
  t.same(poll(), ['has 10:'], 'a gap that was overtaken');
  t.same(delivered, ['3', '5']);
});

t.test('best effort: newer samples are delivered on arrival', async (t) => {
  for (const options of [{ reliable: false }, { writer: { ...WRITER, reliable: false } }]) {
    const { reader, delivered, due, gap, heartbeat, poll } = readerRig(options);
    for (const number of [3, 1, 4, 4, 9]) reader.onData(data(number), SOURCE, 0);
    heartbeat(1, 12);
    gap(10, 12);
    t.same(delivered, ['3', '4', '9']);
    t.same(poll(), []);
    t.equal(due(1), Number.POSITIVE_INFINITY);
  }
});

t.test('a sample that is never sent does not block the following ones', async (t) => {
  const { reader, delivered, heartbeat, poll } = readerRig();
  reader.onData(data(2), SOURCE, 0);
  let now = 0;
  while (delivered.length === 0 && now < 3600) {
    heartbeat(1, 2);
    poll(now);
    now += 1;
  }
  t.same(delivered, ['2']);
  t.ok(now > 30 && now < 300, `given up after ${now} s`);
});

t.test('a lost request is repeated without another heartbeat', async (t) => {
  const { reader, due, heartbeat, poll } = readerRig();
  heartbeat(1, 1);
  t.same(poll(0), ['asks 1:1']);
  t.equal(due(0), 0.1);
  heartbeat(1, 1);
  t.same(poll(0.001), [], 'not so soon');
  const next = due(0.001);
  t.ok(next > 0.001 && next < 0.1, `${next}`);
  t.same(poll(next), ['asks 1:1']);
  heartbeat(1, 1);
  reader.onData(data(1), SOURCE, 0);
  t.same(poll(next), ['has 2:'], 'an answer needs no pause');
});

t.test('missing samples are requested again with increasing pauses', async (t) => {
  const { reader, heartbeat, poll } = readerRig();
  poll(0);
  heartbeat(1, 2);
  const times: number[] = [];
  for (let now = 0; now < 12; ) {
    now = reader.poll(now, (_, actions) => {
      times.push(now);
      t.same(actions.map(inShort), ['asks 1:1 2']);
    });
  }
  t.same(
    times.map((time) => time.toFixed(1)),
    ['0.0', '0.1', '0.3', '0.7', '1.5', '3.1', '6.1', '9.1'],
  );
  reader.onData(data(1), SOURCE, 0);
  reader.onData(data(2), SOURCE, 0);
  t.equal(
    reader.poll(20, () => t.fail('nothing is missing')),
    Number.POSITIVE_INFINITY,
  );
});

t.test('many heartbeats in a short time do not exhaust the retries', async (t) => {
  const { reader, delivered, heartbeat, poll } = readerRig();
  // 1,000 samples a second, each with a heartbeat, over a link where the answer to a request takes a second.
  let asked = 0;
  for (let number = 2; number < 1002; number += 1) {
    reader.onData(data(number), SOURCE, 0);
    heartbeat(1, number);
    asked += poll(number / 1000).length;
  }
  t.ok(asked > 3 && asked < 20, `asked ${asked} times in a second for the same`);
  reader.onData(data(1), SOURCE, 0);
  t.equal(delivered[0], '1');
});

t.test('a writer may be unmatched during a delivery', async (t) => {
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
  for (const number of [4, 3, 2, 1]) reader.onData(data(number), SOURCE, 0);
  t.same(delivered, [1, 2]);
  t.equal(budget.held, 0);
  reader.onData(data(3), SOURCE, 0);
  reader.unmatch(sender);
  t.equal(reader.writerCount, 0);
  t.equal(
    reader.poll(1, () => t.fail('nobody to say it to')),
    Number.POSITIVE_INFINITY,
  );
});

t.test('a writer matched twice is matched once', async (t: Test) => {
  const { reader, delivered } = readerRig();
  reader.onData(data(1), SOURCE, 0);
  reader.match(WRITER, 5);
  reader.onData(data(1), SOURCE, 0);
  t.same(delivered, ['1']);
  t.same(reader.writers, [WRITER]);
});
