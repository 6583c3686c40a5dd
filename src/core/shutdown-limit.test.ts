import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { RequestLimit } from './shutdown-limit.ts';

t.test('a caller may ask so often a minute, and is told when to ask again', async (t) => {
  const limit = new RequestLimit(10);
  for (let i = 0; i < 10; i += 1) t.equal(limit.take('a', i * 0.1), 0);
  const wait = limit.take('a', 1);
  t.ok(wait > 4 && wait <= 6, `${wait} s`);
  t.ok(limit.take('a', 1 + wait * 0.9) > 0, 'not before that');
  t.equal(limit.take('a', 1 + wait), 0, 'but then');
  t.ok(limit.take('a', 1 + wait) > 0);
});

t.test('one that calls all the time does not keep the others out', async (t) => {
  const limit = new RequestLimit(10);
  let passed = 0;
  for (let i = 0; i < 60_000; i += 1) if (limit.take('wild', i / 1000) === 0) passed += 1;
  t.ok(passed >= 19 && passed <= 21, `${passed} in a minute that began with a full bucket`);
  t.equal(limit.take('b', 60), 0);
});

t.test('all of them together are limited as well', async (t) => {
  const limit = new RequestLimit(10);
  let passed = 0;
  for (let i = 0; i < 10_000; i += 1) if (limit.take(`caller ${i}`, 0) === 0) passed += 1;
  t.equal(passed, 30);
  t.ok(limit.size <= 30, 'those that were refused are not remembered');
  t.equal(limit.take('late', 60), 0);
  t.equal(limit.size, 1, 'nor those who have not called for a minute');
});

t.test('a new limit holds from then on', async (t) => {
  const limit = new RequestLimit(1);
  t.equal(limit.take('a', 0), 0);
  t.ok(limit.take('a', 1) > 0);
  limit.setPerMinute(600);
  t.equal(limit.take('a', 2), 0);
});

t.test('over any time no more pass than the bucket holds and gains, and whoever waits as told passes', async (t) => {
  const calls = fc.array(fc.record({ caller: fc.constantFrom('a', 'b', 'c', 'd'), after: fc.double({ min: 0, max: 20, noNaN: true }) }), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(calls, fc.integer({ min: 1, max: 60 }), (list, perMinute) => {
      const limit = new RequestLimit(perMinute);
      const passed = new Map<string, number>();
      let now = 0;
      for (const { caller, after } of list) {
        now += after;
        if (limit.take(caller, now) === 0) passed.set(caller, (passed.get(caller) ?? 0) + 1);
      }
      const gained = (now * perMinute) / 60;
      for (const count of passed.values()) t.ok(count <= perMinute + gained + 1e-6);
      const all = [...passed.values()].reduce((sum, count) => sum + count, 0);
      t.ok(all <= 3 * (perMinute + gained) + 1e-6);
      let wait = limit.take('a', now);
      for (let tries = 0; wait > 0 && tries < 3; tries += 1) {
        now += wait;
        wait = limit.take('a', now);
      }
      t.equal(wait, 0);
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
});
