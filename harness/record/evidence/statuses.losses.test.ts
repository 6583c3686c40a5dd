import t from 'tap';
import { intervalOf, readingOf } from '../../../testkit/weeks/reading.ts';
import type { ServiceReading } from '../entries.ts';
import { Losses } from './statuses.ts';

const NONE = { notSampled: 0, notPublished: 0, notDelivered: 0, unknown: 0 };

function reading(minute: number, more: Partial<ServiceReading> = {}): ServiceReading {
  return readingOf({ samples: minute * 60, published: minute * 60, ...more });
}

/** The reading of each minute from the first on, and how many statuses arrived on each channel. */
function losses(minutes: readonly (readonly [ServiceReading | null, number, number?])[], resumedAt: readonly number[] = []): Losses {
  const all = new Losses();
  for (const [minute, [service, topic, events = topic]] of minutes.entries()) {
    const interval = intervalOf(minute * 60, minute * 60 + 60, { fresh: minute === 0 || resumedAt.includes(minute) });
    all.add(interval, service, { topic, events });
  }
  return all;
}

function tally(expected: number, received: number, unobserved = 0): { expected: number; received: number; unobserved: number } {
  return { expected, received, unobserved };
}

t.test('reports no loss if nothing was lost, whatever the counters show', async (t) => {
  const all = losses([
    [reading(1), 60],
    [reading(2, { missed: 5, published: 100 }), 60],
  ]);
  t.same(all.of('topic', tally(120, 120)), NONE);
});

t.test('attributes losses by the counters of two readings of one run', async (t) => {
  const missed = losses([
    [reading(1), 60],
    [reading(2, { samples: 113, missed: 7, published: 113 }), 53],
  ]);
  t.same(missed.of('topic', tally(120, 113)), { ...NONE, notSampled: 7 });
  const unpublished = losses([
    [reading(1), 60],
    [reading(2, { published: 111 }), 51, 60],
  ]);
  t.same(unpublished.of('topic', tally(120, 111)), { ...NONE, notPublished: 9 });
  t.same(unpublished.of('events', tally(120, 111)), { ...NONE, unknown: 9 }, 'the event stream is no graph');
  t.equal(unpublished.published, 51);
  const undelivered = losses([
    [reading(1), 60],
    [reading(2), 49],
  ]);
  t.same(undelivered.of('topic', tally(120, 109)), { ...NONE, notDelivered: 11 });
  t.same(undelivered.of('events', tally(120, 109)), { ...NONE, notDelivered: 11 });
  const all = losses([
    [reading(1), 60],
    [reading(2, { samples: 117, missed: 3, published: 113 }), 48],
  ]);
  t.same(all.of('topic', tally(120, 108)), { notSampled: 3, notPublished: 4, notDelivered: 5, unknown: 0 });
});

t.test('losses that the counters do not explain are unknown', async (t) => {
  t.same(losses([[reading(1), 50]]).of('topic', tally(60, 50)), { ...NONE, unknown: 10 }, 'one reading alone');
  const uncounted = losses([
    [reading(1, { published: null }), 60],
    [reading(2, { published: null }), 50],
  ]);
  t.same(uncounted.of('topic', tally(120, 110)), { ...NONE, unknown: 10 });
  t.equal(uncounted.published, null);
  t.same(uncounted.of('events', tally(120, 110)), { ...NONE, notDelivered: 10 });
  const half = losses([
    [reading(1, { published: null }), 60],
    [reading(2), 50],
  ]);
  t.same([half.of('topic', tally(120, 110)), half.published], [{ ...NONE, unknown: 10 }, null]);
  const counted = losses([
    [reading(1), 60],
    [reading(2, { missed: 2 }), 60],
  ]);
  t.same(counted.of('topic', tally(120, 110, 4)), { ...NONE, notSampled: 2, unknown: 8 }, 'there was no subscription in four of them');
  t.same(counted.of('topic', tally(120, 119)), { ...NONE, notSampled: 1 }, 'not more than were lost');
});

t.test('counters that go backwards explain nothing', async (t) => {
  const all = losses([
    [reading(2, { missed: 9, published: 150 }), 60],
    [reading(3, { missed: 0, published: 500 }), 50],
  ]);
  t.same(all.of('topic', tally(120, 110)), { ...NONE, notDelivered: 10 });
});

t.test('statuses missing while the service is down or restarting were not sampled', async (t) => {
  const other = { started: '2026-03-05T00:00:00.000Z' };
  const down = losses([
    [reading(1), 60],
    [reading(2), 40],
    [null, 0],
    [reading(0, other), 30],
    [reading(1, other), 60],
  ]);
  t.same(down.of('topic', tally(300, 190)), { ...NONE, notSampled: 110 }, 'in the minute before as well');
  t.same(down.of('events', tally(300, 190)), { ...NONE, notSampled: 110 });
  const restarted = losses([
    [reading(1), 60],
    [reading(0, other), 45],
    [reading(1, other), 60],
  ]);
  t.same(restarted.of('topic', tally(180, 165)), { ...NONE, notSampled: 15 });
  const twice = losses([
    [reading(1), 60],
    [reading(2), 50],
    [null, 60],
    [null, 60],
  ]);
  t.same(
    twice.of('topic', tally(240, 200)),
    { ...NONE, notSampled: 10, notDelivered: 10, unknown: 20 },
    'what was missing before is counted once',
  );
  t.same(losses([[null, 20]]).of('topic', tally(60, 20)), { ...NONE, notSampled: 40 }, 'from the begin on');
  t.same(
    losses([
      [null, 61.4],
      [null, 20],
    ]).of('topic', tally(120, 60)),
    { ...NONE, notSampled: 40, unknown: 20 },
    'more than expected takes nothing off',
  );
});

t.test('the expected number follows the rate, for each channel', async (t) => {
  const all = new Losses();
  all.add(intervalOf(0, 60, { hertz: 2 }), null, { topic: 100, events: 110 });
  t.same(all.of('topic', tally(120, 100)), { ...NONE, notSampled: 20 });
  t.same(all.of('events', tally(120, 100)), { ...NONE, notSampled: 10, unknown: 10 });
});

t.test('handles a service that no longer counts what it published', async (t) => {
  const all = losses([
    [reading(1), 60],
    [reading(2), 60],
    [reading(3), 60],
    [reading(4, { published: null }), 50],
  ]);
  t.same([all.published, all.of('topic', tally(240, 230))], [120, { ...NONE, unknown: 10 }]);
});

t.test('counters are not compared across a monitoring gap', async (t) => {
  const all = losses(
    [
      [reading(1), 60],
      [reading(500, { missed: 1000 }), 50],
      [reading(501, { missed: 1000 }), 58],
    ],
    [1],
  );
  t.same(all.of('topic', tally(180, 168)), { ...NONE, notDelivered: 2, unknown: 10 });
  t.equal(all.published, 60);
});

t.test('a short interval without a reading belongs to the next one', async (t) => {
  const all = new Losses();
  const add = (from: number, to: number, service: ServiceReading | null, topic: number): void =>
    all.add(intervalOf(from, to, { fresh: from === 0 }), service, { topic, events: topic });
  add(0, 60, reading(1), 60);
  add(60, 89.9, null, 20);
  add(89.9, 150, readingOf({ samples: 150, published: 150 }), 60);
  t.same(all.of('topic', tally(150, 140)), { ...NONE, notDelivered: 10 });
  add(150, 180, null, 20);
  add(180, 210, readingOf({ samples: 210, published: 210 }), 30);
  t.same(
    all.of('topic', tally(210, 190)),
    { ...NONE, notSampled: 10, notDelivered: 10 },
    'in half a minute there is one, if the service answers',
  );
});
