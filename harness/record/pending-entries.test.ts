import t from 'tap';
import type { MinuteEntry, RecordEntry } from './entries.ts';
import { PendingEntries } from './pending-entries.ts';
import { begin, clocksAt, minute, oneOfEach } from './testing/entries.ts';

const size = (entry: RecordEntry): number => JSON.stringify(entry).length;
const isMinute = (entry: RecordEntry): entry is MinuteEntry => entry.type === 'minute';

t.test('pending entries are taken in order, in portions', async (t) => {
  const pending = new PendingEntries();
  t.same(pending.take(1000), []);
  const entries = oneOfEach();
  for (const entry of entries) pending.add(entry);
  t.same(pending.take(1), entries.slice(0, 1), 'one at least');
  const next = size(entries[1] as RecordEntry) + size(entries[2] as RecordEntry);
  t.same(pending.take(next + 1), entries.slice(1, 3));
  t.same(pending.take(1e9), entries.slice(3));
  t.equal(pending.length, 0);
});

t.test('beyond the limit minutes are merged into one without observation', async (t) => {
  const bound = 3 * size(minute(1)) + 50;
  const pending = new PendingEntries(bound);
  pending.add(begin());
  t.equal(pending.take(1e9).length, 1);
  for (let n = 1; n <= 100; n += 1) pending.add(minute(n));
  t.equal(pending.length, 4);
  const taken = pending.take(1e9);
  t.same(taken.slice(0, 3), [minute(1), minute(2), minute(3)]);
  const { events, topic, ...last } = minute(100);
  const nothing = { first: null, steps: [], slowest_ms: null, fastest_ms: null };
  t.same(taken[3], {
    ...last,
    topic: nothing,
    events: nothing,
    stalled_seconds: 97 * 60,
    service: { ...last.service, resident_bytes: last.service?.resident_bytes.slice(-1) },
  });
  pending.add(minute(101));
  t.same(pending.take(1e9), [minute(101)], 'and below the bound again everything is kept as before');
});

t.test('restarts and alerts are kept, and the time around them counts once', async (t) => {
  const pending = new PendingEntries(0);
  pending.add(begin());
  pending.take(1e9);
  const alert = { ...(oneOfEach()[2] as RecordEntry), ...clocksAt(150) };
  pending.add(minute(1));
  pending.add(minute(2));
  pending.add(alert); // Halfway through the third minute.
  pending.add({ ...minute(3), topic: null });
  pending.add(minute(4));
  const taken = pending.take(1e9);
  t.same(
    taken.map(({ type }) => type),
    ['minute', 'alert', 'minute'],
  );
  t.same(
    taken.filter(isMinute).map(({ stalled_seconds }) => stalled_seconds),
    [120, 120],
  );
});

t.test('merged minutes without a subscription remain without one', async (t) => {
  const pending = new PendingEntries(0);
  pending.add(begin());
  pending.add({ ...minute(1), topic: null, service: null });
  t.match(pending.take(1e9)[1], { topic: null, events: { first: null }, service: null, stalled_seconds: 60 });
});
