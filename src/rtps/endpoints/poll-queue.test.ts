import t from 'tap';
import { PollQueue } from './poll-queue.ts';

t.test('woken items are processed, and all items when the first deadline is due', async (t) => {
  let times = 0;
  const attention = new PollQueue<string>(() => {
    times += 1;
  });
  const processed: string[] = [];
  const poll = (now: number, again: Record<string, number | null>): number => {
    processed.length = 0;
    return attention.poll(now, (item) => {
      processed.push(item);
      return again[item] ?? null;
    });
  };
  t.equal(poll(0, {}), Number.POSITIVE_INFINITY);
  for (const item of ['a', 'b', 'c']) attention.wake(item);
  t.equal(times, 1, 'onBusy is called once');
  t.equal(poll(0, { a: 1, b: 2, c: 3 }), 1);
  t.same(processed, ['a', 'b', 'c']);
  t.equal(poll(0.5, {}), 1);
  t.same(processed, [], 'no item was woken, none is due');
  attention.wake('b');
  t.equal(poll(0.6, { b: 5 }), 1);
  t.same(processed, ['b']);
  t.equal(poll(1, { a: 4, b: 5 }), 4, 'c is idle');
  t.same(processed, ['a', 'b', 'c']);
  attention.rest('a');
  t.equal(poll(4, { b: 5 }), 5);
  t.same(processed, ['b']);
  t.equal(poll(5, {}), Number.POSITIVE_INFINITY);
  t.ok(attention.isIdle);
  attention.wake('c');
  t.equal(times, 2);
});

t.test('items woken or removed during a poll', async (t) => {
  const attention = new PollQueue<string>();
  for (const item of ['a', 'b', 'c']) attention.wake(item);
  const processed: string[] = [];
  const due = attention.poll(7, (item) => {
    processed.push(item);
    if (item === 'a') attention.rest('b');
    if (item === 'c') attention.wake('d');
    return null;
  });
  t.notOk(attention.isIdle);
  t.ok(due <= 7, 'the new one at once');
  attention.poll(7, (item) => {
    processed.push(item);
    return null;
  });
  t.match(processed.join(''), /^ab?cd$/);
  t.ok(attention.isIdle);
});

t.test('thousands of items are processed in portions, each in its turn', async (t) => {
  const attention = new PollQueue<number>();
  const processed = new Map<number, number>();
  let most = 0;
  let now = 1;
  const round = (times: number): void => {
    const until = now + 2;
    for (let due = now; due < until && [...processed.values(), 0].some((count) => count < times) && now < until; now = due) {
      let count = 0;
      due = attention.poll(now, (item) => {
        processed.set(item, (processed.get(item) ?? 0) + 1);
        count += 1;
        return 10 + item / 1e6;
      });
      attention.poll(now, () => t.fail('another poll at the same moment processed at nobody') as never);
      most = Math.max(most, count);
      if (processed.size === 5000) break;
    }
  };
  for (let item = 0; item < 5000; item += 1) attention.wake(item);
  round(1);
  t.ok(most <= 100, `${most} at a time`);
  t.same([processed.size, new Set(processed.values())], [5000, new Set([1])], 'each once');
  t.ok(now < 2, 'within a second');
  now = 10;
  let count = 0;
  const due = attention.poll(now, () => {
    count += 1;
    return 10;
  });
  t.ok(count > 0 && count <= 100 && due > now, 'and when they are due some at a time again');
});
