import t from 'tap';
import type { Received } from '../entries.ts';
import { StatusDeduplicator } from './statuses.ts';
import type { Interval } from './time-axis.ts';

const OFFSET = 1e9;

function interval(to: number, more: Partial<Interval> = {}): Interval {
  return {
    from: to - 60,
    to,
    awakeSeconds: 60,
    monotonicSeconds: 60,
    stalledSeconds: 0,
    fresh: false,
    hertz: 1,
    wallOffsets: [OFFSET],
    ...more,
  };
}

/** Statuses stamped at these seconds of the axis, by a clock that is `ahead` of its former time. */
function received(places: readonly number[], ahead = 0, fastest = 1): Received {
  const stamps = places.map((at) => Math.round((OFFSET + at + ahead) * 1000));
  const steps = stamps.slice(1).map((stamp, index) => stamp - (stamps[index] as number));
  return { first: stamps[0] ?? null, steps, slowest_ms: 5, fastest_ms: fastest };
}

function places(distinct: StatusDeduplicator, message: Received, within: Interval, remote = false): number[] {
  const found: number[] = [];
  distinct.add(message, within, remote, (at) => found.push(Math.round(at * 1000) / 1000));
  return found;
}

t.test('the same stamp counts once, in one message or in several', async (t) => {
  const distinct = new StatusDeduplicator();
  t.same(places(distinct, received([1, 2, 2, 3, 1]), interval(60)), [1, 2, 3]);
  t.same(places(distinct, received([2, 3, 4]), interval(120)), [4]);
  t.same([distinct.duplicates, distinct.outOfOrder], [4, 0]);
  t.same(places(distinct, { first: null, steps: [], slowest_ms: null, fastest_ms: null }, interval(180)), []);
});

t.test('reports statuses that arrived out of order', async (t) => {
  const distinct = new StatusDeduplicator();
  t.same(places(distinct, received([1, 3, 2, 4, 0]), interval(60)), [1, 3, 2, 4, 0]);
  t.equal(distinct.outOfOrder, 2);
});

t.test('after the clock was set back, a repeated stamp is another status', async (t) => {
  for (const [back, expected] of [
    [300, [400]],
    [60, [400]],
    [2, [400]],
    [1.999, []],
  ] as const) {
    const distinct = new StatusDeduplicator();
    places(distinct, received([400 - back]), interval(399));
    const within = interval(420, { wallOffsets: [OFFSET - back, OFFSET] });
    t.same(places(distinct, received([400], -back), within), expected, `${back} s`);
    t.same(places(distinct, received([400], -back), within), [], 'and counts once itself');
  }
});

t.test('a status is placed by the clock before or after a step', async (t) => {
  const forward = interval(60, { wallOffsets: [OFFSET + 3600, OFFSET] });
  t.same(places(new StatusDeduplicator(), received([10]), forward), [10], 'before it was set forward');
  t.same(places(new StatusDeduplicator(), received([50], 3600), forward), [50], 'after it');
  const back = interval(60, { wallOffsets: [OFFSET - 3600, OFFSET] });
  t.same(places(new StatusDeduplicator(), received([10]), back), [10]);
  t.same(places(new StatusDeduplicator(), received([50], -3600), back), [50]);
});

t.test('a stamp in the future is placed at the end of the interval', async (t) => {
  t.same(places(new StatusDeduplicator(), received([70]), interval(60)), [70], 'while the entry was written');
  t.same(places(new StatusDeduplicator(), received([70.001]), interval(60)), [60]);
});

t.test('the clock of another machine is derived from the apparent delay of its statuses', async (t) => {
  for (const skew of [-3600, 3600, 0.6]) {
    const message = received([10, 11], -skew, skew * 1000);
    t.same(places(new StatusDeduplicator(), message, interval(60), true), [10, 11], `${skew} s`);
  }
  t.same(places(new StatusDeduplicator(), received([10], -3600, 3_600_000), interval(60)), [-3590], 'not that of this machine');
  t.same(places(new StatusDeduplicator(), received([10], 0, 500), interval(60), true), [10], 'half a second is taken for slowness');
  t.same(places(new StatusDeduplicator(), { ...received([10]), fastest_ms: null }, interval(60), true), [10]);
});

t.test('stamps are remembered for at least five minutes, but not forever', async (t) => {
  for (const [minutes, expected] of [
    [5, 1],
    [9, 1],
    [10, 2],
  ] as const) {
    const distinct = new StatusDeduplicator();
    let count = 0;
    distinct.add(received([30]), interval(60), false, () => count++);
    for (let minute = 1; minute < minutes; minute++)
      distinct.add(received([30 + 60 * minute]), interval(60 + 60 * minute), false, () => undefined);
    // Sent again, for example to a late joiner.
    distinct.add(received([30]), interval(60 + 60 * minutes), false, () => count++);
    t.equal(count, expected, `after ${minutes} min`);
  }
});

t.test('at low rates stamps are remembered for twenty periods', async (t) => {
  const distinct = new StatusDeduplicator();
  const slow = { hertz: 1 / 120 };
  places(distinct, received([30]), interval(60, slow));
  places(distinct, received([1000]), interval(1060, slow));
  t.same(places(distinct, received([30]), interval(2400, slow)), [], 'within 2400 s');
  const back = interval(2460, { ...slow, wallOffsets: [OFFSET - 2400, OFFSET] });
  t.same(places(distinct, received([2430], -2400), back), [2430], 'but one stamped so much later is another');
});

t.test('a repeated stamp is the same status unless the clock was set back', async (t) => {
  const distinct = new StatusDeduplicator();
  places(distinct, received([50]), interval(60));
  const forward = interval(120, { wallOffsets: [OFFSET + 20, OFFSET] });
  t.same(places(distinct, received([50]), forward), []);
  t.same(places(distinct, received([50]), interval(180, { wallOffsets: [OFFSET + 20] })), [], 'though it now seems to be of another time');
});

t.test('after the clock was set back, stamps may repeat for as long as they are remembered', async (t) => {
  for (const [later, expected] of [
    [9, 1],
    [10, 0],
  ] as const) {
    const distinct = new StatusDeduplicator();
    places(distinct, received([400]), interval(410));
    places(distinct, received([410], -60), interval(420, { wallOffsets: [OFFSET - 60, OFFSET] }));
    // When it is received again after that, it seems to be a minute later.
    const again = places(distinct, received([400]), interval(420 + later * 60, { wallOffsets: [OFFSET - 60] }));
    t.equal(again.length, expected, `${later} min later`);
  }
});

t.test('a status that follows the previous one is not placed later', async (t) => {
  // The clock was set back by 60 s at 905: an earlier stamp may mean a minute later by the new time.
  const set = interval(960, { wallOffsets: [OFFSET - 60, OFFSET] });
  const distinct = new StatusDeduplicator();
  places(distinct, received([899]), interval(900));
  const before = received([900, 901, 902, 903, 904]);
  t.same(places(distinct, before, set), [900, 901, 902, 903, 904]);
  t.same(places(distinct, received([905, 906], -60), set), [905, 906]);
  t.same(places(distinct, received([940], -60), set), [940], 'after others that were lost');
  t.same(places(distinct, received([960], -60), set), [960], 'with the stamp of 900');
  const alone = new StatusDeduplicator();
  places(alone, received([893]), interval(900));
  t.same(places(alone, received([899]), set), [959], 'six seconds later it is taken to be as late as it can be');
  const slow = new StatusDeduplicator();
  places(slow, received([893]), interval(900));
  t.same(places(slow, received([899]), { ...set, hertz: 0.5 }), [899], 'unless that is within five periods');
  const exact = new StatusDeduplicator();
  places(exact, received([894]), interval(900));
  t.same(places(exact, received([899]), set), [899]);
  const near = new StatusDeduplicator();
  places(near, received([910]), interval(920));
  t.same(places(near, received([911]), interval(960, { wallOffsets: [OFFSET - 3, OFFSET] })), [911], 'nor 914');
  const both = new StatusDeduplicator();
  places(both, received([959]), interval(900));
  t.same(
    places(both, received([960]), interval(960, { wallOffsets: [OFFSET - 2, OFFSET] })),
    [960],
    'not after the end, if it may be in it',
  );
  t.same(
    places(new StatusDeduplicator(), received([965]), interval(960, { wallOffsets: [OFFSET - 2, OFFSET] })),
    [965],
    'the nearest after it',
  );
});
