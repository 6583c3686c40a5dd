import t from 'tap';
import { type MatchedReader, StatefulWriter } from './endpoints/writer.ts';
import { ackNack, change, poll, reader, topicWriter } from './testing/writer-rig.ts';

t.test('a reader with a number offset gets a first heartbeat before data, and acknowledges with the offset', async (t) => {
  const writer = new StatefulWriter({ entity: 0x3c2, depth: Number.POSITIVE_INFINITY, transientLocal: true });
  for (const instance of ['x', 'y', 'z']) writer.write(change({ instance, payload: Buffer.alloc(3000) }));
  const a = reader('a', { numberOffset: 1000 });
  writer.match(a, 0);
  t.same(poll(writer, 0).sent, ['a: heartbeat 1-0 final, data 1, data 2, data 3, heartbeat 1-3']);
  ackNack(writer, a, 0, [], false);
  t.same(poll(writer, 0.01).sent, ['a: heartbeat 1-3'], 'a question is one in any numbers');
  ackNack(writer, a, 1002, [1002]);
  t.same(poll(writer, 0.02).sent, ['a: data 2, heartbeat 1-3']);
  writer.onNackFrag(a.guid, 1003, { base: 2, numbers: [2] });
  t.same(poll(writer, 0.03).sent, ['a: fragments 3: 2, heartbeat 1-3']);
  ackNack(writer, a, 1004);
  t.same(poll(writer, 60).sent, [], 'all is acknowledged');
  ackNack(writer, a, 1, [1, 2]);
  t.same(poll(writer, 60.1).sent, ['a: heartbeat 1-3'], 'numbers that are none of its');
});

t.test('a volatile reader gets new samples once it has answered a heartbeat that ends before them', async (t) => {
  for (const [what, answer] of [
    ['acknowledges', (writer: StatefulWriter, a: MatchedReader) => ackNack(writer, a, 3)],
    ['asks for history', (writer: StatefulWriter, a: MatchedReader) => ackNack(writer, a, 1, [1, 2])],
  ] as const) {
    const writer = topicWriter();
    for (let i = 0; i < 2; i += 1) writer.write(change());
    const a = reader('a', { transientLocal: false });
    writer.match(a, 0);
    writer.write(change());
    t.same(poll(writer, 0).sent, ['a: heartbeat 1-2']);
    ackNack(writer, a, 1, [], false);
    t.same(poll(writer, 0.01).sent, ['a: heartbeat 1-2'], 'a question is no answer');
    writer.write(change());
    t.same(poll(writer, 0.02).sent, ['a: heartbeat 2-2'], 'something waits for its answer');
    answer(writer, a);
    t.match(poll(writer, 0.03).sent, [/^a: data 3, data 4, (gap 1 2, )?heartbeat 2-4$/], what);
  }
});

t.test('the same for a volatile writer with changes for other readers', async (t) => {
  const writer = topicWriter({ transientLocal: false, depth: 10 });
  const [a, b] = [reader('a', { transientLocal: false }), reader('b', { transientLocal: false })];
  writer.match(a, 0);
  ackNack(writer, a, 1);
  writer.write(change({ only: a.guid }));
  t.same(poll(writer, 0).sent, ['a: data 1, heartbeat 1-1']);
  writer.match(b, 1);
  writer.write(change({ only: b.guid }));
  t.same(poll(writer, 1).sent, ['a: gap 2, heartbeat 1-2', 'b: heartbeat 1-1']);
  ackNack(writer, b, 2);
  t.same(poll(writer, 1.01).sent, ['b: data 2, heartbeat 1-2']);
});

t.test('a reader that only requests heartbeats gets data after some requests', async (t) => {
  const writer = topicWriter();
  const a = reader('a', { transientLocal: false });
  writer.match(a, 0);
  writer.write(change());
  let [now, asked] = [0, 0];
  while (!poll(writer, now).sent.join().includes('data 1') && asked < 20) {
    ackNack(writer, a, 1, [], false);
    asked += 1;
    now += 0.1;
  }
  t.ok(asked > 2 && asked < 10, `after ${asked} questions`);
});
