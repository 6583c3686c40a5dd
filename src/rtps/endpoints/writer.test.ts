import t from 'tap';
import { LIMITS } from '../limits.ts';
import { ackNack, change, poll, reader, topicWriter } from '../testing/writer-rig.ts';
import { StatefulWriter } from './writer.ts';

t.test('to a reliable reader: data and a heartbeat, heartbeats until it acknowledges, then nothing', async (t) => {
  const writer = topicWriter();
  const a = reader('a');
  writer.match(a, 0);
  t.same(poll(writer, 0).sent, ['a: heartbeat 1-0'], 'an empty writer');
  ackNack(writer, a, 1);
  t.same(poll(writer, 0), { sent: [], due: Number.POSITIVE_INFINITY });
  writer.write(change());
  t.same(poll(writer, 10).sent, ['a: data 1, heartbeat 1-1']);
  const times: number[] = [];
  for (let now = 10; now < 20; ) {
    const { sent, due } = poll(writer, now);
    if (sent.length > 0) times.push(now - 10);
    t.same(sent, now === 10 ? [] : ['a: heartbeat 1-1']);
    now = due;
  }
  t.same(
    times.map((time) => time.toFixed(1)),
    ['0.1', '0.3', '0.7', '1.5', '3.1', '6.1', '9.1'],
    'less and less often',
  );
  ackNack(writer, a, 2);
  t.same(poll(writer, 30), { sent: [], due: Number.POSITIVE_INFINITY });
});

t.test('a periodic writer requests an acknowledgement with every fifth sample, and when no other sample follows', async (t) => {
  const writer = topicWriter({ depth: 10, isPeriodic: true });
  const a = reader('a');
  writer.match(a, 0);
  poll(writer, 0);
  ackNack(writer, a, 1);
  const send = (now: number): string[] => {
    writer.write(change());
    return poll(writer, now).sent;
  };
  t.same(send(10), ['a: data 1, heartbeat 1-1'], 'the period is not known');
  ackNack(writer, a, 2);
  t.same(send(11), ['a: data 2, heartbeat 1-2 final']);
  t.same(poll(writer, 11.9).sent, [], 'it is not repeated within the period');
  t.same(send(12), ['a: data 3, heartbeat 1-3 final']);
  t.same(send(13), ['a: data 4, heartbeat 1-4 final']);
  t.same(send(14), ['a: data 5, heartbeat 1-5 final']);
  t.same(send(15), ['a: data 6, heartbeat 1-6']);
  t.same(poll(writer, 15.1).sent, ['a: heartbeat 1-6'], 'this one is');
  ackNack(writer, a, 7);
  t.same(send(16), ['a: data 7, heartbeat 1-7 final']);
  ackNack(writer, a, 7, [7]);
  t.same(poll(writer, 16.2).sent, ['a: data 7, heartbeat 1-7'], 'what is missing is resent at once');
  ackNack(writer, a, 8);
  t.same(send(17), ['a: data 8, heartbeat 1-8 final']);
  t.same(poll(writer, 18.9).sent, []);
  t.same(poll(writer, 19).sent, ['a: heartbeat 1-8'], 'no other sample followed');
  ackNack(writer, a, 9);
  t.same(send(22), ['a: data 9, heartbeat 1-9'], 'the period is too long');
});

t.test('to a best-effort reader: data, and never a heartbeat', async (t) => {
  const writer = topicWriter();
  writer.write(change());
  writer.match(reader('a', { reliable: false }), 0);
  t.same(poll(writer, 0), { sent: ['a: data 1'], due: Number.POSITIVE_INFINITY });
  ackNack(writer, reader('a'), 1, [1]);
  t.same(poll(writer, 1), { sent: [], due: Number.POSITIVE_INFINITY }, 'nor does it count what it asks for');
});

t.test('history for a transient local late joiner', async (t) => {
  for (const [what, options, wants, sent] of [
    ['transient local', {}, {}, 'a: data 3, data 4, data 5, heartbeat 3-5'],
    ['a volatile reader', {}, { transientLocal: false }, 'a: heartbeat 3-5'],
    ['a volatile writer', { transientLocal: false }, {}, 'a: heartbeat 6-5'],
    ['both volatile', { transientLocal: false }, { transientLocal: false }, 'a: heartbeat 6-5'],
  ] as const) {
    const writer = topicWriter(options);
    for (let i = 0; i < 5; i += 1) writer.write(change());
    writer.match(reader('a', wants), 0);
    t.same(poll(writer, 0).sent, [sent], what);
  }
});

t.test('requested samples are resent', async (t) => {
  const writer = topicWriter();
  const a = reader('a');
  writer.match(a, 0);
  for (let i = 0; i < 5; i += 1) writer.write(change());
  t.same(poll(writer, 0).sent, ['a: data 3, data 4, data 5, heartbeat 3-5'], 'no GAPs for changes that left the history unsent');
  ackNack(writer, a, 4, [5, 4]);
  t.same(poll(writer, 0).sent, ['a: data 4, data 5, heartbeat 3-5'], 'in order');
  ackNack(writer, a, 1, [1, 2, 3, 9]);
  t.same(poll(writer, 0).sent, ['a: data 3, gap 1 2, heartbeat 3-5'], 'GAPs only for numbers that were written');
  ackNack(writer, a, 6);
  t.same(poll(writer, 0).sent, []);
  ackNack(writer, a, 2);
  t.same(poll(writer, 9).sent, ['a: heartbeat 3-5'], 'a restarted reader gets the range of the history');
  ackNack(writer, a, 999);
  t.same(poll(writer, 13).sent, ['a: heartbeat 3-5'], 'numbers that were never sent are not acknowledged');
});

t.test('a request for the first heartbeat is answered even with an empty history', async (t) => {
  for (const base of [0, 1]) {
    const writer = topicWriter();
    const a = reader('a');
    writer.match(a, 0);
    poll(writer, 0);
    ackNack(writer, a, base, [], false);
    t.same(poll(writer, 0.01).sent, ['a: heartbeat 1-0'], `base ${base}`);
  }
  const writer = topicWriter();
  writer.write(change());
  const a = reader('a');
  writer.match(a, 0);
  poll(writer, 0);
  ackNack(writer, a, 1, [], false);
  t.same(poll(writer, 0.01).sent, ['a: heartbeat 1-1']);
});

t.test('a duplicate ACKNACK is ignored', async (t) => {
  const writer = topicWriter();
  const a = reader('a');
  writer.match(a, 0);
  writer.write(change());
  poll(writer, 0);
  writer.onAckNack(a.guid, { base: 1, numbers: [1] }, 7, false);
  t.same(poll(writer, 0.01).sent, ['a: data 1, heartbeat 1-1']);
  writer.onAckNack(a.guid, { base: 1, numbers: [1] }, 7, false);
  t.same(poll(writer, 0.02).sent, [], 'duplicated on the way');
  writer.onAckNack(a.guid, { base: 1, numbers: [1] }, 3, false);
  t.same(poll(writer, 0.03).sent, ['a: data 1, heartbeat 1-1'], 'a restarted reader counts from the beginning');
});

t.test('forged acknowledgements withhold no sample', async (t) => {
  for (const transientLocal of [true, false]) {
    const writer = topicWriter({ transientLocal });
    const a = reader('a', { transientLocal });
    writer.match(a, 0);
    ackNack(writer, a, 1);
    writer.write(change());
    poll(writer, 0);
    for (const base of [2, 3, 999, 2 ** 40]) writer.onAckNack(a.guid, { base, numbers: [base] }, 2 ** 31 - 1, true);
    ackNack(writer, a, 1, [1]);
    t.same(poll(writer, 1).sent, ['a: data 1, heartbeat 1-1'], transientLocal ? 'transient local' : 'volatile');
  }
});

t.test('for one reader alone', async (t) => {
  const writer = topicWriter({ transientLocal: false, depth: 10 });
  const [a, b] = [reader('a', { transientLocal: false }), reader('b', { transientLocal: false })];
  for (const each of [a, b]) {
    writer.match(each, 0);
    ackNack(writer, each, 1);
  }
  writer.write(change({ only: a.guid }));
  writer.write(change({ only: b.guid }));
  t.same(poll(writer, 0).sent, ['a: data 1, gap 2, heartbeat 1-2', 'b: data 2, gap 1, heartbeat 1-2']);
  writer.onNackFrag(b.guid, 1, { base: 1, numbers: [1] });
  t.same(poll(writer, 0.01).sent, ['b: gap 1, heartbeat 1-2'], 'nor does the other get fragments of it');
});

t.test('transient local: a GAP for a change of another reader is sent with the next change', async (t) => {
  const busy: number[] = [];
  const writer: StatefulWriter = new StatefulWriter({
    entity: 0x4c2,
    depth: 100,
    transientLocal: true,
    onBusy: () => busy.push(writer.history.length),
  });
  const [a, b] = [reader('a'), reader('b')];
  for (const each of [a, b]) {
    writer.match(each, 0);
    poll(writer, 0);
    ackNack(writer, each, 1);
  }
  t.ok(writer.isIdle);
  busy.length = 0;
  for (let i = 0; i < 50; i += 1) writer.write(change({ only: a.guid }));
  t.same(busy, [1], 'onBusy is called once');
  const [sent] = poll(writer, 1).sent;
  t.match(sent, /^a: data 1, .*data 50, heartbeat 1-50$/);
  t.same(poll(writer, 1.2).sent, ['a: heartbeat 1-50'], 'the other is left alone, also by what is sent again');
  ackNack(writer, a, 51);
  t.ok(writer.isIdle, 'no reader has to acknowledge a change that is not for it');
  // A request of the other reader is answered with everything that it needs.
  ackNack(writer, b, 1, [], false);
  t.match(poll(writer, 2).sent, [/^b: gap 1 .* 50, heartbeat 1-50$/]);
  ackNack(writer, b, 51);
  writer.write(change({ only: a.guid }));
  writer.write(change());
  t.same(poll(writer, 3).sent, ['a: data 51, data 52, heartbeat 1-52', 'b: data 52, gap 51, heartbeat 1-52']);
  writer.unmatch(a.guid);
  t.equal(writer.history.length, 1, 'with the reader goes what was for it alone');
});

t.test('one GAP covers changes for other readers and dropped changes', async (t) => {
  const writer = topicWriter({ transientLocal: false, depth: 2 });
  const a = reader('a', { transientLocal: false });
  writer.match(a, 0);
  ackNack(writer, a, 1);
  for (let i = 0; i < 5; i += 1) writer.write(change());
  poll(writer, 0);
  writer.write(change({ only: 'b' }));
  ackNack(writer, a, 1, [1, 2, 3]);
  writer.onNackFrag(a.guid, 2, { base: 1, numbers: [1] });
  t.same(poll(writer, 1).sent, ['a: gap 1 2 3 6, heartbeat 5-6'], 'each once, ascending');
});

t.test('a volatile writer keeps unacknowledged changes up to its depth', async (t) => {
  const writer = topicWriter({ transientLocal: false, depth: 4 });
  writer.write(change());
  t.equal(writer.history.length, 0, 'no reader is matched');
  const [a, b] = [reader('a'), reader('b')];
  writer.match(a, 0);
  writer.match(b, 0);
  for (let i = 0; i < 3; i += 1) writer.write(change());
  poll(writer, 0);
  ackNack(writer, a, 5);
  t.equal(writer.history.length, 3);
  ackNack(writer, b, 4, [4]);
  writer.write(change());
  t.equal(writer.history.length, 2, 'the unacknowledged one and the new one');
  writer.unmatch(b.guid);
  ackNack(writer, a, 6);
  writer.write(change());
  t.equal(writer.history.length, 1, 'the reader that had not acknowledged is gone');
  for (let i = 0; i < 9; i += 1) writer.write(change());
  t.equal(writer.history.length, 4);
});

t.test('one change per instance', async (t) => {
  const writer = topicWriter({ depth: Number.POSITIVE_INFINITY });
  for (const instance of ['x', 'y', 'x', 'z', 'y']) writer.write(change({ instance }));
  t.same(
    writer.history.map(({ sequenceNumber }) => sequenceNumber),
    [3, 4, 5],
  );
  writer.match(reader('a'), 0);
  t.same(poll(writer, 0).sent, ['a: data 3, data 4, data 5, heartbeat 3-5']);
});

t.test('requested fragments are resent', async (t) => {
  const writer = topicWriter();
  const a = reader('a');
  writer.match(a, 0);
  writer.write(change({ payload: Buffer.alloc(10_000) }));
  poll(writer, 0);
  writer.onNackFrag(a.guid, 1, { base: 2, numbers: [2, 5] });
  t.same(poll(writer, 0.01).sent, ['a: fragments 1: 2 5, heartbeat 1-1']);
  writer.onNackFrag(a.guid, 2, { base: 1, numbers: [1] });
  t.same(poll(writer, 0.02).sent, [], 'of one that never was');
  writer.onNackFrag(a.guid, 1, { base: 1, numbers: [] });
  t.same(poll(writer, 0.03).sent, [], 'none');
  writer.onNackFrag(a.guid, 1, { base: 3, numbers: [3] });
  ackNack(writer, a, 1, [1]);
  t.same(poll(writer, 0.04).sent, ['a: data 1, heartbeat 1-1'], 'not those of a sample that goes out whole');
});

t.test('resending is limited by a budget', async (t) => {
  const writer = topicWriter({ depth: 100 });
  const a = reader('a');
  writer.match(a, 0);
  for (let i = 0; i < 100; i += 1) writer.write(change({ payload: Buffer.alloc(60_000) }));
  poll(writer, 0);
  const all = Array.from({ length: 100 }, (_, i) => i + 1);
  let resent = 0;
  let polls = 0;
  ackNack(writer, a, 1, all);
  for (let now = 1; now < 2; polls += 1) {
    let octets = 0;
    const due = writer.poll(now, (_, actions) => {
      octets += actions.filter(({ kind }) => kind === 'data').length * 60_000;
    });
    resent += octets;
    now = Math.max(due, now + 1e-6);
  }
  t.ok(resent >= LIMITS.resendOctets && resent <= 2 * LIMITS.resendOctets + 120_000, `${resent} octets in a second`);
  t.ok(polls < 40, `${polls} polls: it does not wait in a circle`);
});

t.test('repeated requests for everything are answered up to a limit', async (t) => {
  const writer = topicWriter({ depth: 10 });
  const a = reader('a');
  writer.match(a, 0);
  for (let i = 0; i < 30_000; i += 1) writer.write(change());
  poll(writer, 0);
  // Less than what one datagram may hold of them, from the end, so that none of it is acknowledged.
  for (let base = 29_000; base > 1000; base -= 256) {
    ackNack(
      writer,
      a,
      base,
      Array.from({ length: 256 }, (_, i) => base + i),
    );
  }
  t.equal(writer.history.length, 10);
  let [reported, due] = [0, 0];
  for (let polls = 0; polls < 50 && due < Number.POSITIVE_INFINITY; polls += 1) {
    due = writer.poll(1, (_, actions) => {
      for (const action of actions) if (action.kind === 'gap') reported += action.numbers.length;
    });
  }
  t.ok(reported > 0 && reported <= 512, `${reported} numbers`);
});

t.test('ACKNACKs of removed and unknown readers', async (t) => {
  const writer = topicWriter();
  const a = reader('a');
  writer.match(a, 0);
  writer.write(change());
  writer.unmatch(a.guid);
  writer.unmatch(a.guid);
  ackNack(writer, a, 1, [1]);
  writer.onNackFrag(a.guid, 1, { base: 1, numbers: [1] });
  t.same(poll(writer, 1), { sent: [], due: Number.POSITIVE_INFINITY });
  t.equal(writer.readerCount, 0);
  writer.match(a, 2);
  writer.match(a, 3);
  t.same(writer.readers, [a]);
  t.same(poll(writer, 3).sent, ['a: data 1, heartbeat 1-1'], 'matched twice is matched once, from the beginning');
});
