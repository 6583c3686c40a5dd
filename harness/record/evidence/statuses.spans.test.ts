import t from 'tap';
import { ObservedSpans } from './statuses.ts';
import type { Interval } from './time-axis.ts';

function interval(from: number, to: number, more: Partial<Interval> = {}): Interval {
  const stalledSeconds = more.stalledSeconds ?? 0;
  const awakeSeconds = Math.max(0, to - from - stalledSeconds);
  return { from, to, awakeSeconds, monotonicSeconds: to - from, stalledSeconds, fresh: false, hertz: 1, wallOffsets: [0], ...more };
}

function count(spans: ObservedSpans, from: number, until: number, step = 1): void {
  for (let at = from; at < until; at += step) spans.count('topic', at);
}

t.test('expected samples are rate × time awake, and never fewer than the received ones', async (t) => {
  const spans = new ObservedSpans();
  t.same(spans.tally('topic'), { expected: 0, received: 0, unobserved: 0 });
  spans.count('topic', 5);
  spans.unsubscribed('topic', 5);
  t.same(spans.tally('topic'), { expected: 0, received: 0, unobserved: 0 }, 'before any interval nothing counts');
  spans.add(interval(0, 60.4, { fresh: true }));
  count(spans, 0.5, 60);
  spans.add(interval(60.4, 120.9));
  count(spans, 60.5, 120);
  t.same(spans.tally('topic'), { expected: 120, received: 120, unobserved: 0 }, 'the rests of the minutes add up');
  t.same(spans.tally('events'), { expected: 120, received: 0, unobserved: 0 });
  count(spans, 60, 70);
  t.equal(spans.tally('topic').received, 120);
  t.same(spans.merged(), [{ from: 0, to: 120.9, awakeSeconds: 120.9 }]);
});

t.test('rounding loses no sample in a sum of differences', async (t) => {
  const spans = new ObservedSpans();
  for (let minute = 0; minute < 1000; minute++)
    spans.add(interval(minute * 60, minute * 60 + 60, { fresh: minute === 0, awakeSeconds: 60 - 1e-8 }));
  t.equal(spans.tally('topic').expected, 60_000);
});

t.test('the ten statuses sent to a late joiner were stamped before the span', async (t) => {
  const spans = new ObservedSpans();
  spans.add(interval(100, 160, { fresh: true }));
  count(spans, 90.5, 130);
  t.same(spans.tally('topic'), { expected: 60, received: 30, unobserved: 0 });
  const edge = new ObservedSpans();
  edge.add(interval(0, 60, { fresh: true }));
  edge.add(interval(200, 260, { fresh: true }));
  edge.count('topic', 0 - 0.02);
  edge.count('topic', 60 + 0.02);
  edge.count('topic', 200 - 0.02);
  edge.count('topic', 260 + 0.02);
  t.equal(edge.tally('topic').received, 4);
  spans.count('topic', 99.9801);
  t.equal(spans.tally('topic').received, 31, 'by as much clocks are rounded');
  spans.count('topic', 99.9799);
  t.equal(spans.tally('topic').received, 31);
});

t.test('a late status counts in the span of its stamp, if there is one', async (t) => {
  const spans = new ObservedSpans();
  spans.add(interval(0, 60, { fresh: true }));
  count(spans, 0.5, 59);
  spans.add(interval(100, 160, { fresh: true }));
  spans.add(interval(200, 260, { fresh: true }));
  t.equal(spans.tally('topic').received, 59);
  spans.count('topic', 59.5);
  t.equal(spans.tally('topic').received, 60, 'two spans before');
  for (const at of [80, 60.0201, 99.9799, 180, 160.0201, -5]) spans.count('topic', at);
  t.equal(spans.tally('topic').received, 60, 'in a monitoring gap, or before the begin');
  for (const at of [99.9801, 160.0199]) spans.count('topic', at);
  t.equal(spans.tally('topic').received, 62);
  spans.count('topic', 30);
  t.equal(spans.tally('topic').received, 62, 'no more than were expected');
});

t.test('a status stamped after the last minute counts only if another minute follows', async (t) => {
  const spans = new ObservedSpans();
  spans.add(interval(0, 60, { fresh: true }));
  count(spans, 0.5, 58);
  spans.count('topic', 60.0199);
  t.equal(spans.tally('topic').received, 59, 'at the end');
  spans.count('topic', 60.5);
  t.equal(spans.tally('topic').received, 59, 'after it');
  spans.add(interval(60, 120));
  t.equal(spans.tally('topic').received, 60);
});

t.test('a stall is a span of its own, so that statuses arriving late after it hide no loss', async (t) => {
  const spans = new ObservedSpans();
  spans.add(interval(0, 60, { fresh: true }));
  count(spans, 0.5, 40);
  spans.add(interval(60, 160, { stalledSeconds: 40 }));
  count(spans, 60.5, 160);
  spans.add(interval(160, 220));
  count(spans, 160.5, 220);
  spans.add(interval(220, 280));
  count(spans, 220.5, 280);
  t.same(spans.tally('topic'), { expected: 240, received: 220, unobserved: 0 });
  t.same(spans.merged(), [
    { from: 0, to: 120, awakeSeconds: 120 },
    { from: 160, to: 280, awakeSeconds: 120 },
  ]);
  t.same(spans.stalls(), [{ from: 120, to: 160 }]);
});

t.test('a minute that was missed entirely counts nothing', async (t) => {
  const spans = new ObservedSpans();
  spans.add(interval(0, 60, { fresh: true }));
  spans.add(interval(60, 120, { stalledSeconds: 60.001 }));
  spans.add(interval(120, 180));
  t.same(spans.tally('topic'), { expected: 120, received: 0, unobserved: 0 });
  t.same(spans.merged(), [
    { from: 0, to: 60, awakeSeconds: 60 },
    { from: 120, to: 180, awakeSeconds: 60 },
  ]);
  t.same(spans.stalls(), [{ from: 60, to: 120 }]);
  const first = new ObservedSpans();
  first.add(interval(0, 60, { fresh: true, stalledSeconds: 60 }));
  t.same(first.merged(), []);
  t.same(first.stalls(), [{ from: 0, to: 60 }]);
});

t.test('another rate begins another span, without a seam in the observed time', async (t) => {
  const spans = new ObservedSpans();
  spans.add(interval(0, 60, { fresh: true }));
  spans.add(interval(60, 120, { hertz: 0.5 }));
  spans.add(interval(120, 180, { hertz: 0.5 }));
  t.equal(spans.tally('topic').expected, 120);
  t.same(spans.merged(), [{ from: 0, to: 180, awakeSeconds: 180 }]);
});

t.test('counts the samples without a subscription', async (t) => {
  const spans = new ObservedSpans();
  spans.add(interval(0, 60, { fresh: true }));
  spans.unsubscribed('topic', 60);
  spans.add(interval(60, 120));
  spans.unsubscribed('topic', 10.2);
  count(spans, 70.5, 110);
  t.same(spans.tally('topic'), { expected: 120, received: 40, unobserved: 71 });
  count(spans, 60.5, 100);
  t.same(spans.tally('topic'), { expected: 120, received: 80, unobserved: 40 }, 'not more than are missing');
  t.equal(spans.tally('events').unobserved, 0);
  const fast = new ObservedSpans();
  fast.add(interval(0, 60, { hertz: 2 }));
  fast.unsubscribed('topic', 10);
  t.same(fast.tally('topic'), { expected: 120, received: 0, unobserved: 20 }, 'a first interval need not be marked as such');
});
