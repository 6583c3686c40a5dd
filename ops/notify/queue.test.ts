import fc from 'fast-check';
import t from 'tap';
import { DAY_MS, HOUR_MS } from '../../src/core/time/time.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import type { Result } from './channels/channel.ts';
import { added, backoffMs, EMPTY_QUEUE, MAX_PENDING, MAX_PENDING_BYTES, picked, type Queue, settled } from './queue.ts';

const NOW = 1_800_000_000_000;
const delivered: Result = { kind: 'delivered', detail: 'ok' };
const retry: Result = { kind: 'retry', detail: 'down' };
const final: Result = { kind: 'final', detail: 'refused' };

function filled(...ids: string[]): Queue {
  return ids.reduce((queue, id) => added(queue, id, 100, NOW).queue, EMPTY_QUEUE);
}

const entry = (queue: Queue, nowMs: number): string | null => {
  const next = picked(queue, nowMs);
  return next && 'entry' in next ? next.entry.id : null;
};

t.test('the pauses double from 5 seconds to an hour, with a random variation of a quarter', async (t) => {
  t.same(
    [1, 2, 3, 10, 11, 50].map((attempts) => backoffMs(attempts, 0.5) / 1000),
    [5, 10, 20, 2560, 3600, 3600],
  );
  t.equal(backoffMs(1, 0), 3750);
  t.ok(backoffMs(1, 0.999) < 6250);
});

t.test('delivers notifications in order, each once', async (t) => {
  let queue = filled('a', 'b');
  t.equal(entry(queue, NOW), 'a');
  queue = settled(queue, 'a', delivered, NOW, 0.5).queue;
  t.equal(entry(queue, NOW), 'b');
  t.match(queue, { delivered: 1, failures: 0, lastSuccessMs: NOW, last: { id: 'a', ok: true, detail: 'ok' } });
  t.equal(added(queue, 'b', 1, NOW).queue.pending.length, 1, 'the same is not added twice');
});

t.test('a receiver that is down is retried after a pause, not once for each pending notification', async (t) => {
  const queue = settled(filled('a', 'b'), 'a', retry, NOW, 0.5).queue;
  t.same(picked(queue, NOW + 4999), { atMs: NOW + 5000 });
  t.equal(entry(queue, NOW + 5000), 'b', 'what failed less often goes first');
  const up = settled(queue, 'b', delivered, NOW + 5000, 0.5).queue;
  t.equal(entry(up, NOW + 5000), 'a');
});

t.test('a notification that always fails does not delay the others', async (t) => {
  let queue = filled('poison', 'a', 'b', 'c');
  const sent: string[] = [];
  for (let nowMs = NOW; nowMs < NOW + HOUR_MS && sent.length < 3; nowMs += 1000) {
    for (let id = entry(queue, nowMs); id !== null; id = entry(queue, nowMs)) {
      queue = settled(queue, id, id === 'poison' ? retry : delivered, nowMs, 0.5).queue;
      if (id !== 'poison') sent.push(id);
    }
  }
  t.same(sent, ['a', 'b', 'c']);
});

t.test('the pause that the receiver requests is kept', async (t) => {
  const queue = settled(filled('a', 'b'), 'a', { kind: 'retry', detail: '429', afterMs: 90_000 }, NOW, 0).queue;
  t.same(picked(queue, NOW + 89_999), { atMs: NOW + 90_000 });
});

t.test('a notification is dropped after a day, or at once on a final failure; the next delivery resets the count', async (t) => {
  let queue = filled('a');
  let droppedMs = 0;
  for (let nowMs = NOW; nowMs < NOW + 2 * DAY_MS && droppedMs === 0; ) {
    const next = picked(queue, nowMs);
    if (next && 'atMs' in next) nowMs = next.atMs;
    const step = settled(queue, 'a', retry, nowMs, 0.5);
    queue = step.queue;
    if (step.dropped.length > 0) droppedMs = nowMs;
  }
  t.ok(droppedMs >= NOW + DAY_MS && droppedMs <= NOW + DAY_MS + 2 * HOUR_MS, 'after a day');
  t.match(queue, { dropped: 1, pending: [] });
  const refused = settled(added(queue, 'b', 1, NOW).queue, 'b', final, NOW, 0.5);
  t.same(refused.dropped, [{ id: 'b', reason: 'refused' }]);
  t.equal(refused.queue.dropped, 2);
  const well = settled(added(refused.queue, 'c', 1, NOW).queue, 'c', delivered, NOW, 0.5).queue;
  t.match(well, { dropped: 0, droppedTotal: 2 });
});

t.test('a clock that is set back does not delay a delivery', async (t) => {
  const queue = settled(filled('a'), 'a', retry, NOW, 0.5).queue;
  t.equal(entry(queue, NOW - DAY_MS), 'a');
});

t.test('count and bytes are bounded, and the oldest are dropped', async (t) => {
  let queue = EMPTY_QUEUE;
  const gone: string[] = [];
  for (let i = 0; i < MAX_PENDING + 5; i++) {
    const step = added(queue, `${i}`, 10, NOW);
    queue = step.queue;
    gone.push(...step.dropped.map(({ id }) => id));
  }
  t.same(gone, ['0', '1', '2', '3', '4']);
  const large = added(queue, 'large', MAX_PENDING_BYTES + 1, NOW);
  t.same(
    large.queue.pending.map(({ id }) => id),
    ['large'],
    'one is kept however large',
  );
});

t.test('nothing is lost silently: added = delivered + dropped + pending', async () => {
  const step = fc.oneof(fc.constant('add' as const), fc.constantFrom(delivered, retry, final));
  fc.assert(
    fc.property(fc.array(fc.tuple(step, fc.integer({ min: 0, max: 2 * HOUR_MS })), { maxLength: 150 }), (steps) => {
      let queue = EMPTY_QUEUE;
      let nowMs = NOW;
      let count = 0;
      let lost = 0;
      for (const [what, ms] of steps) {
        nowMs += ms;
        const id = what === 'add' ? null : entry(queue, nowMs);
        if (what !== 'add' && id === null) continue;
        const after = what === 'add' ? added(queue, `${count++}`, 20_000, nowMs) : settled(queue, id as string, what, nowMs, 0.5);
        queue = after.queue;
        lost += after.dropped.length;
      }
      return count === queue.delivered + lost + queue.pending.length && queue.droppedTotal === lost && queue.pending.length <= MAX_PENDING;
    }),
    { numRuns: runs(50, 1000), seed: SEED },
  );
});
