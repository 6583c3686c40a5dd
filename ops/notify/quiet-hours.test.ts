import t, { type Test } from 'tap';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time/time.ts';
import { quietHours } from './quiet-hours.ts';

const ms = (text: string): number => Date.parse(text);

/** Checks every minute between two times: returns when quiet hours begin and end, and verifies that the end was predicted correctly. */
function walk(t: Test, range: string, zone: string, from: string, to: string): string[] {
  const quietUntil = quietHours(range, zone);
  const edges: string[] = [];
  let until: number | null = null;
  for (let now = ms(from); now <= ms(to); now += MINUTE_MS) {
    const next = quietUntil(now);
    if (until !== null && next === null && now !== until) t.fail(`the end was predicted for ${new Date(until).toISOString()}`);
    if ((next === null) !== (until === null))
      edges.push(`${next === null ? 'ends' : 'begins'} ${new Date(now).toISOString().slice(5, 16)}`);
    until = next;
  }
  return edges;
}

t.test('quiet hours over midnight follow local time', async (t) => {
  t.same(walk(t, '22:00-07:00', 'Europe/Berlin', '2026-01-10T12:00:00Z', '2026-01-12T12:00:00Z'), [
    'begins 01-10T21:00',
    'ends 01-11T06:00',
    'begins 01-11T21:00',
    'ends 01-12T06:00',
  ]);
});

t.test('quiet hours within a day work in a zone with an offset of odd minutes', async (t) => {
  t.same(walk(t, '12:15-13:45', 'Asia/Kathmandu', '2026-05-01T00:00:00Z', '2026-05-02T00:00:00Z'), [
    'begins 05-01T06:30',
    'ends 05-01T08:00',
  ]);
});

t.test('the night in which the clock is set forward is an hour shorter', async (t) => {
  t.same(walk(t, '22:00-07:00', 'Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z'), [
    'begins 03-28T21:00',
    'ends 03-29T05:00',
  ]);
});

t.test('the night in which it is set back is an hour longer', async (t) => {
  t.same(walk(t, '22:00-07:00', 'Europe/Berlin', '2026-10-24T12:00:00Z', '2026-10-25T12:00:00Z'), [
    'begins 10-24T20:00',
    'ends 10-25T06:00',
  ]);
});

t.test('an end that daylight saving skips is reached when the clock has passed it', async (t) => {
  t.same(walk(t, '22:00-02:30', 'Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z'), [
    'begins 03-28T21:00',
    'ends 03-29T01:00',
  ]);
});

t.test('an end that occurs twice in a night ends quiet hours twice', async (t) => {
  t.same(walk(t, '22:00-02:30', 'Europe/Berlin', '2026-10-24T12:00:00Z', '2026-10-25T12:00:00Z'), [
    'begins 10-24T20:00',
    'ends 10-25T00:30',
    'begins 10-25T01:00',
    'ends 10-25T01:30',
  ]);
});

t.test('without quiet hours, or with equal start and end, no time is quiet', async (t) => {
  for (const range of [null, '08:00-08:00']) {
    const quietUntil = quietHours(range, 'UTC');
    for (let hour = 0; hour < 24; hour++) t.equal(quietUntil(hour * HOUR_MS), null);
  }
});

t.test('a clock that is set back during quiet hours gives the right end again', async (t) => {
  const quietUntil = quietHours('22:00-07:00', 'UTC');
  t.equal(quietUntil(ms('2026-01-10T23:00:00Z')), ms('2026-01-11T07:00:00Z'));
  t.equal(quietUntil(ms('2026-01-01T12:00:00Z')), null);
  t.equal(quietUntil(ms('2026-01-01T23:00:00Z')), ms('2026-01-02T07:00:00Z'));
});

t.test('an unknown time zone is refused', async (t) => {
  t.throws(() => quietHours('22:00-07:00', 'Mars/Olympus'), RangeError);
});
