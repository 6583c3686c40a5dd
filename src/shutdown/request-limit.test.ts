import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { RequestLimit } from './request-limit.ts';

const wait = (limit: RequestLimit, caller: string, atSeconds: number): number => limit.take(caller, atSeconds)?.waitSeconds ?? 0;

t.test('a caller has a limit per minute and gets the time until the next call', async (t) => {
  const limit = new RequestLimit(10);
  for (let i = 0; i < 10; i += 1) t.equal(wait(limit, 'a', i * 0.1), 0);
  const seconds = wait(limit, 'a', 1);
  t.ok(seconds > 4 && seconds <= 6, `${seconds} s`);
  t.ok(wait(limit, 'a', 1 + seconds * 0.9) > 0, 'not before that');
  t.equal(wait(limit, 'a', 1 + seconds), 0, 'but then');
  t.ok(wait(limit, 'a', 1 + seconds) > 0);
});

t.test('a caller that calls constantly does not exhaust the limit of others', async (t) => {
  const limit = new RequestLimit(10);
  let passed = 0;
  for (let i = 0; i < 60_000; i += 1) if (wait(limit, 'wild', i / 1000) === 0) passed += 1;
  t.ok(passed >= 19 && passed <= 21, `${passed} in a minute that began with a full bucket`);
  t.equal(wait(limit, 'b', 60), 0);
});

t.test('all callers together are limited as well', async (t) => {
  const limit = new RequestLimit(10);
  let passed = 0;
  for (let i = 0; i < 10_000; i += 1) if (wait(limit, `caller ${i}`, 0) === 0) passed += 1;
  t.equal(passed, 30);
  t.ok(limit.size <= 30, 'those that were refused are not remembered');
  t.equal(wait(limit, 'late', 60), 0);
  t.equal(limit.size, 1, 'nor those who have not called for a minute');
});

t.test('the limit that was reached is named', async (t) => {
  const limit = new RequestLimit(10);
  for (let i = 0; i < 10; i += 1) limit.take('a', 0);
  t.match(limit.take('a', 0), { of: 'one caller', perMinute: 10, waitSeconds: 6 });
  for (let i = 0; i < 20; i += 1) limit.take(`caller ${i}`, 0);
  t.match(limit.take('b', 0), { of: 'all callers', perMinute: 30, waitSeconds: 2 });
});

t.test('a new limit applies from then on', async (t) => {
  const limit = new RequestLimit(1);
  t.equal(wait(limit, 'a', 0), 0);
  t.ok(wait(limit, 'a', 1) > 0);
  limit.setPerMinute(600);
  t.equal(wait(limit, 'a', 2), 0);
});

t.test('over any time at most the bucket plus its refill passes, and a caller that waits for the returned time passes', async (t) => {
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
        if (wait(limit, caller, now) === 0) passed.set(caller, (passed.get(caller) ?? 0) + 1);
      }
      const gained = (now * perMinute) / 60;
      for (const count of passed.values()) t.ok(count <= perMinute + gained + 1e-6);
      const all = [...passed.values()].reduce((sum, count) => sum + count, 0);
      t.ok(all <= 3 * (perMinute + gained) + 1e-6);
      let seconds = wait(limit, 'a', now);
      for (let tries = 0; seconds > 0 && tries < 3; tries += 1) {
        now += seconds;
        seconds = wait(limit, 'a', now);
      }
      t.equal(seconds, 0);
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
});
