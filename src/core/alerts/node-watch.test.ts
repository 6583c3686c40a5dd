import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { DAY_MS, isoUtc } from '../time/time.ts';
import { fingerprint, isPlausible, NodeStamps, NodeWatch, type Stamp, stampOf } from './node-watch.ts';

const START = Date.UTC(2026, 2, 4);
const stamp = (ms: number, print = 0): Stamp => ({ ms, print });

/** Time stamps of a node that publishes every `periodMs`, with slight jitter. */
function steady(periodMs: number, count: number, fromMs = START): Stamp[] {
  return Array.from({ length: count }, (_, i) => stamp(fromMs + Math.round(i * periodMs + (i % 3) * periodMs * 0.02)));
}

function periodOf(stamps: readonly Stamp[]): number {
  return new NodeStamps(stamps).period.periodSeconds;
}

t.test('the period is that of the time stamps despite losses, repetitions and reordering', async (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom(10, 100, 1000, 10_000, 600_000),
      // At most three of ten statuses are lost.
      fc.array(fc.subarray([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], { minLength: 7 }), { minLength: 3, maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 10 }),
      fc.array(fc.nat(), { maxLength: 3 }),
      (periodMs, kept, repeated, swapped) => {
        const all = steady(periodMs, kept.length * 10);
        const arrived = kept.flatMap((places, i) => places.map((place) => all[i * 10 + place] as Stamp));
        for (const at of repeated) arrived.splice(1 + (at % arrived.length), 0, arrived[at % arrived.length] as Stamp);
        for (const at of swapped) {
          const i = at % (arrived.length - 1);
          [arrived[i], arrived[i + 1]] = [arrived[i + 1] as Stamp, arrived[i] as Stamp];
        }
        const period = periodOf(arrived) * 1000;
        return period > periodMs * 0.9 && period < periodMs * 2.2;
      },
    ),
    { numRuns: runs(300, 3000), seed: SEED },
  );
  t.equal(periodOf(steady(1000, 3)), 1.02, 'two differences are enough');
  t.equal(periodOf([stamp(START)]), 1, 'a second until two are known');
});

t.test('ten statuses at once, as for a late joiner, give the period and not a tenfold rate', async (t) => {
  for (const periodMs of [100, 1000, 10_000]) t.ok(Math.abs(periodOf(steady(periodMs, 10)) * 1000 - periodMs) <= periodMs * 0.05);
});

t.test('the period has bounds', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 8e15 }), { maxLength: 60 }), (times) => {
      const period = periodOf(times.map((ms) => stamp(ms)));
      return period >= 0.001 && period <= 3600;
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.equal(periodOf(Array.from({ length: 20 }, (_, i) => stamp(START, i))), 1, 'all in one millisecond: not measured');
  t.equal(periodOf(Array.from({ length: 20 }, (_, i) => stamp(START + i, i))), 0.001);
  t.equal(periodOf(Array.from({ length: 20 }, (_, i) => stamp(START + i * 3_600_000))), 3600);
});

t.test('a new period is adopted within ten statuses', async (t) => {
  const before = steady(1000, 60);
  const after = steady(100, 10, START + 61_000);
  t.ok(periodOf([...before, ...after]) < 0.15);
});

t.test('each status is new once', async (t) => {
  const stamps = new NodeStamps([]);
  t.equal(stamps.take(stamp(START)), 'next');
  t.equal(stamps.take(stamp(START)), 'duplicate');
  t.equal(stamps.take(stamp(START, 5)), 'next', 'another one in the same millisecond');
  t.equal(stamps.take(stamp(START + 2000)), 'next');
  t.equal(stamps.take(stamp(START + 1000)), 'late');
  t.equal(stamps.take(stamp(START + 1000)), 'duplicate');
  t.equal(stamps.take(stamp(START, 5)), 'duplicate');
  t.equal(stamps.take(stamp(START + 3000)), 'next');
  t.equal(new NodeStamps(steady(1000, 64)).take(steady(1000, 64)[0] as Stamp), 'duplicate', 'also after a restart');
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 200 }), { maxLength: 200 }), (times) => {
      const taken = new NodeStamps([]);
      const news = times.filter((ms) => taken.take(stamp(START + ms)) !== 'duplicate');
      return new Set(news).size === news.length && news.length === new Set(times).size;
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
});

t.test('a clock that is set is followed, forward and back, and does not change the period', async (t) => {
  for (const stepMs of [-40_000, -3_600_000 * 5, -9 * DAY_MS, 40_000, 3_600_000 * 5, 9 * DAY_MS]) {
    const stamps = new NodeStamps(steady(1000, 300));
    const after = steady(1000, 30, START + 300_000 + stepMs + 137);
    const arrivals = after.map((one) => stamps.take(one));
    t.ok(
      arrivals.slice(3).every((arrival) => arrival === 'next'),
      `${stepMs}: ${arrivals.slice(0, 5).join(' ')}`,
    );
    t.ok(arrivals.filter((arrival) => arrival === 'jump').length <= 1);
    t.notOk(arrivals.includes('duplicate'));
    t.ok(Math.abs(stamps.period.periodSeconds - 1) < 0.05);
  }
});

t.test('repeated statuses after newer ones are neither new nor a clock step back', async (t) => {
  const all = steady(1000, 40);
  const stamps = new NodeStamps(all.slice(0, 30));
  t.equal(stamps.take(all[39] as Stamp), 'next');
  t.same(
    all.slice(20, 30).map((one) => stamps.take(one)),
    Array.from({ length: 10 }, () => 'duplicate'),
  );
  const missed = all.slice(30, 39).map((one) => stamps.take(one));
  t.notOk(missed.includes('duplicate'), 'a status that was lost before is accepted');
  t.equal(stamps.take(all[39] as Stamp), 'duplicate');
});

t.test('statuses with different content are distinct, unavailable metrics included', async (t) => {
  const prints = [
    fingerprint([1, 2, 3, 4], 0),
    fingerprint([1, 2, 3, 4], 1),
    fingerprint([2, 1, 3, 4], 0),
    fingerprint([1, 2, 3, Number.NaN], 0),
    fingerprint([1, 2, 3, 0], 0),
  ];
  t.equal(new Set(prints).size, prints.length);
  const status = { cpu_percent: 1, memory_percent: 2, disk_percent: 3, temperature: null, status: 'OK' as const, node_name: 'a' };
  t.same(stampOf({ ...status, timestamp: isoUtc(START) }), { ms: START, print: prints[3] });
});

t.test('times that cannot be used among local ones', async (t) => {
  const cases: [number, number, boolean][] = [
    [START, START, true],
    [START - 400 * DAY_MS, START, true],
    [START + 60_000, START, true],
    [START + 60_001, START, false],
    [Date.UTC(2019, 11, 31), START, false],
    [START, 0, true],
    [0, 0, false],
  ];
  for (const [at, now, plausible] of cases) t.equal(isPlausible(at, now), plausible, `${isoUtc(at)} at ${isoUtc(now)}`);
});

/** A second of a node that publishes at 1 Hz: a status arrives or not. */
function run(watch: NodeWatch, received: readonly boolean[]): string[] {
  const reported: string[] = [];
  received.forEach((isReceived, second) => {
    if (isReceived && watch.receive(stamp(START + second * 1000), second).change === 'resolve') reported.push(`resolve ${second}`);
    for (const part of [0.25, 0.5, 0.75]) {
      const seconds = watch.check(second + part);
      if (seconds !== null) reported.push(`raise ${second} ${seconds}`);
    }
  });
  return reported;
}

const repeat = (isReceived: boolean, count: number): boolean[] => Array.from({ length: count }, () => isReceived);

t.test('staleness is raised after three periods and the grace, and resolved by the second status in a row', async (t) => {
  const watch = new NodeWatch([], null, 2);
  t.same(run(watch, [...repeat(true, 10), ...repeat(false, 20), ...repeat(true, 5)]), ['raise 14 5.25', 'resolve 31']);
  t.equal(watch.isStale, false);
  t.equal(watch.allowedSeconds, 5);
  t.same(run(new NodeWatch([], null, 0), [...repeat(true, 10), ...repeat(false, 9)]), ['raise 12 3.25'], 'without a grace');
});

t.test('a short gap is not stale, and a single status does not resolve', async (t) => {
  t.same(run(new NodeWatch([], null, 2), [...repeat(true, 5), ...repeat(false, 4), ...repeat(true, 5)]), []);
  const alone = [...repeat(true, 10), ...repeat(false, 10), true, ...repeat(false, 10), true, ...repeat(false, 10), true, true];
  t.same(run(new NodeWatch([], null, 2), alone), ['raise 14 5.25', 'resolve 43'], 'one episode');
});

t.test('a node never seen cannot become stale; an expected one can without any status', async (t) => {
  t.same(run(new NodeWatch([], null, 2), repeat(false, 100)), []);
  t.same(run(new NodeWatch(steady(1000, 20), 10, 2), repeat(false, 30)), ['raise 15 5.25']);
  const known = new NodeWatch(steady(10_000, 20), 0, 2);
  t.match(run(known, repeat(false, 40)), [/^raise 32 32/], 'by its known period');
});

t.test('after a single status the allowed time is longer, since the period is unknown', async (t) => {
  t.same(run(new NodeWatch([], null, 2), [true, ...repeat(false, 40)]), ['raise 32 32.25']);
  const slow = new NodeWatch([], null, 2);
  const reported = [0, 10, 20, 30].flatMap((second) => {
    slow.receive(stamp(START + second * 1000), second);
    return Array.from({ length: 10 }, (_, i) => slow.check(second + i + 0.5)).filter((seconds) => seconds !== null);
  });
  t.same(reported, [], 'as a node at 0.1 Hz needs');
});

t.test('an open episode of an earlier run continues and is resolved when the node returns', async (t) => {
  const watch = new NodeWatch([], null, 2);
  watch.adoptOpen();
  t.same(run(watch, [...repeat(false, 50), true, true]), ['resolve 51']);
});

t.test('a burst of repetitions counts as one arrival and resolves nothing', async (t) => {
  const last = steady(1000, 10);
  const watch = new NodeWatch(last, 0, 2);
  const sending = last.map((one) => watch.receive(one, 3).isSending);
  t.same(sending, [true, ...repeat(false, 9)]);
  for (let second = 4; second < 20; second += 1) watch.check(second);
  t.equal(watch.isStale, true, 'the node became stale');
  t.notOk(last.map((one) => watch.receive(one, 20).change).includes('resolve'), 'a second burst');
  const missed = steady(1000, 10, START + 60_000).map((one) => watch.receive(one, 20.1).change);
  t.notOk(missed.includes('resolve'), 'nor a burst of missed statuses');
  t.equal(watch.receive(stamp(START + 71_000), 21).change, 'resolve');
});

t.test('a node whose clock stands still is present while it publishes, and stale by its arrival times', async (t) => {
  const watch = new NodeWatch([], null, 2);
  for (let second = 1; second <= 60; second += 1) {
    t.equal(watch.receive(stamp(START), second).isSending, true);
    t.equal(watch.check(second + 0.9), null);
  }
  t.equal(watch.periodSeconds, 1);
  t.equal(watch.allowedSeconds, 5);
  t.equal(watch.check(64.9), null);
  t.equal(watch.check(65.1)?.toFixed(1), '5.1');
  t.equal(watch.receive(stamp(START), 70).change, null);
  t.equal(watch.receive(stamp(START), 71).change, 'resolve');
});

/** How a node with an unsuitable clock stamps the status of a moment. */
const STAMPED: Readonly<Record<string, (ms: number) => number>> = {
  'in tenths of a second': (ms) => START + Math.floor(ms / 100) * 100,
  'in whole seconds': (ms) => START + Math.floor(ms / 1000) * 1000,
  'with a clock that stands still': () => START,
  'with a clock that runs backwards': (ms) => START - Math.round(ms),
};

t.test('a node has its true period at any rate, however it stamps its statuses', async (t) => {
  for (const [how, stampMs] of Object.entries(STAMPED)) {
    t.doesNotThrow(
      () =>
        fc.assert(
          fc.property(fc.double({ min: 0.1, max: 100, noNaN: true }), fc.nat(999), fc.boolean(), (hertz, phaseMs, isChanging) => {
            const watch = new NodeWatch([], null, 2);
            const periodSeconds = 1 / hertz;
            const statuses = Math.ceil(Math.max(60, 20 * hertz));
            for (let i = 0; i < statuses; i += 1) {
              const at = i * periodSeconds;
              if (watch.check(at) !== null) return false;
              watch.receive(stamp(stampMs(phaseMs + at * 1000), isChanging ? i : 0), at);
            }
            // Statuses that repeat timestamp and content are not new, and arrivals count at up to 20 Hz.
            const ratio = watch.periodSeconds / periodSeconds;
            const isRepeating = !isChanging && watch.periodSeconds <= 1;
            return watch.isPeriodKnown && ratio > 0.65 && (ratio < 1.5 || watch.periodSeconds <= 0.1 || isRepeating);
          }),
          { numRuns: runs(200, 2000), seed: SEED },
        ),
      how,
    );
  }
});

t.test('statuses that share a timestamp do not make the period shorter when a late joiner receives ten of them at once', async (t) => {
  for (const [how, stampMs] of Object.entries(STAMPED)) {
    const watch = new NodeWatch([], null, 2);
    let shortest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 100; i += 1) {
      watch.receive(stamp(stampMs(i * 250), i), Math.max(0, i - 9) / 4);
      shortest = Math.min(shortest, watch.periodSeconds);
    }
    t.ok(shortest >= 0.2, `${how}: ${shortest} s`);
    t.ok(Math.abs(watch.periodSeconds - 0.25) < 0.06, `${how}: ${watch.periodSeconds} s`);
  }
});

t.test('for any arrivals, at most one episode is open, raised only by a gap and resolved only by arrivals', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.record({ waits: fc.integer({ min: 1, max: 8000 }), received: fc.boolean() }), { maxLength: 200 }), (events) => {
      const watch = new NodeWatch([], null, 1);
      let now = 0;
      let lastReceived = Number.NaN;
      let open = false;
      for (const [i, { waits, received }] of events.entries()) {
        now += waits / 1000;
        if (received) {
          const { change } = watch.receive(stamp(START + i * 1000), now);
          if (change === 'raise' || (change === 'resolve' && !open)) return false;
          if (change === 'resolve') open = false;
          lastReceived = now;
        } else {
          const allowed = watch.allowedSeconds;
          const seconds = watch.check(now);
          if (seconds !== null) {
            if (open || seconds <= allowed || Math.abs(now - lastReceived - seconds) > 1e-6) return false;
            open = true;
          } else if (!open && now - lastReceived > allowed + 1e-3) return false;
        }
        if (watch.isStale !== open) return false;
      }
      return true;
    }),
    { numRuns: runs(300, 3000), seed: SEED },
  );
  t.pass();
});
