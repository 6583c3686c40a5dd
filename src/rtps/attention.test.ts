import t from 'tap';
import { Attention } from './attention.ts';

t.test('woken items are processed, and all items when the first deadline is due', async (t) => {
  let times = 0;
  const attention = new Attention<string>(() => {
    times += 1;
  });
  const looks: string[] = [];
  const poll = (now: number, again: Record<string, number | null>): number => {
    looks.length = 0;
    return attention.poll(now, (who) => {
      looks.push(who);
      return again[who] ?? null;
    });
  };
  t.equal(poll(0, {}), Number.POSITIVE_INFINITY);
  for (const who of ['a', 'b', 'c']) attention.wake(who);
  t.equal(times, 1, 'onBusy is called once');
  t.equal(poll(0, { a: 1, b: 2, c: 3 }), 1);
  t.same(looks, ['a', 'b', 'c']);
  t.equal(poll(0.5, {}), 1);
  t.same(looks, [], 'no item was woken, none is due');
  attention.wake('b');
  t.equal(poll(0.6, { b: 5 }), 1);
  t.same(looks, ['b']);
  t.equal(poll(1, { a: 4, b: 5 }), 4, 'c is idle');
  t.same(looks, ['a', 'b', 'c']);
  attention.rest('a');
  t.equal(poll(4, { b: 5 }), 5);
  t.same(looks, ['b']);
  t.equal(poll(5, {}), Number.POSITIVE_INFINITY);
  t.ok(attention.isIdle);
  attention.wake('c');
  t.equal(times, 2);
});

t.test('items woken or removed during a poll', async (t) => {
  const attention = new Attention<string>();
  for (const who of ['a', 'b', 'c']) attention.wake(who);
  const looks: string[] = [];
  const due = attention.poll(7, (who) => {
    looks.push(who);
    if (who === 'a') attention.rest('b');
    if (who === 'c') attention.wake('d');
    return null;
  });
  t.notOk(attention.isIdle);
  t.ok(due <= 7, 'the new one at once');
  attention.poll(7, (who) => {
    looks.push(who);
    return null;
  });
  t.match(looks.join(''), /^ab?cd$/);
  t.ok(attention.isIdle);
});

t.test('thousands of items are processed in portions, each in its turn', async (t) => {
  const attention = new Attention<number>();
  const looks = new Map<number, number>();
  let most = 0;
  let now = 1;
  const round = (times: number): void => {
    const until = now + 2;
    for (let due = now; due < until && [...looks.values(), 0].some((count) => count < times) && now < until; now = due) {
      let looked = 0;
      due = attention.poll(now, (who) => {
        looks.set(who, (looks.get(who) ?? 0) + 1);
        looked += 1;
        return 10 + who / 1e6;
      });
      attention.poll(now, () => t.fail('another poll at the same moment looks at nobody') as never);
      most = Math.max(most, looked);
      if (looks.size === 5000) break;
    }
  };
  for (let who = 0; who < 5000; who += 1) attention.wake(who);
  round(1);
  t.ok(most <= 100, `${most} at a time`);
  t.same([looks.size, new Set(looks.values())], [5000, new Set([1])], 'each once');
  t.ok(now < 2, 'within a second');
  now = 10;
  let looked = 0;
  const due = attention.poll(now, () => {
    looked += 1;
    return 10;
  });
  t.ok(looked > 0 && looked <= 100 && due > now, 'and when they are due some at a time again');
});
