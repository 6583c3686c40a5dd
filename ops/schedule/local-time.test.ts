import fc from 'fast-check';
import { createTask } from 'node-cron';
import t from 'tap';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time/time.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { CronTimes, LocalClock } from './local-time.ts';

const EXPRESSIONS = [
  '* * * * *',
  '*/5 * * * *',
  '7,37 * * * *',
  '0 0 * * *',
  '30 2 * * *',
  '15 1-3 * * *',
  '0 */6 * * sun',
  '59 23 28-31 * *',
  '0 12 1 1,7 *',
];
const moment = fc.integer({ min: Date.parse('2024-01-01'), max: Date.parse('2030-01-01') });

t.test('finds rare days', async (t) => {
  const times = new CronTimes('0 0 29 2 *');
  t.equal(times.next(Date.parse('2026-01-01')), Date.parse('2028-02-29'));
  t.equal(times.next(Date.parse('2096-03-01')), Date.parse('2104-02-29'), 'no leap year in 2100');
});

t.test('counts the same times as it finds one by one', async (t) => {
  fc.assert(
    fc.property(fc.constantFrom(...EXPRESSIONS), moment, fc.integer({ min: 0, max: 9 * DAY_MS }), (expression, from, length) => {
      const times = new CronTimes(expression);
      const span = expression.startsWith('*') ? length % (12 * HOUR_MS) : length;
      let [count, last] = [0, null as number | null];
      for (let at = times.next(from); at !== null && at <= from + span; at = times.next(at)) [count, last] = [count + 1, at];
      const between = times.between(from, from + span);
      if (between.count !== count || between.last !== last)
        throw new Error(`${expression}: ${JSON.stringify(between)}, not ${count} ${last}`);
    }),
    { numRuns: runs(60, 2000), seed: SEED },
  );
  t.pass();
});

t.test('skips no time and invents none', async (t) => {
  fc.assert(
    fc.property(fc.constantFrom('*/5 * * * *', '7,37 * * * *', '*/10 2 * * *'), moment, (expression, from) => {
      const times = new CronTimes(expression);
      const first = Math.floor(from / MINUTE_MS) * MINUTE_MS;
      const [minutes, hours] = expression.split(' ') as [string, string];
      const meant: number[] = [];
      for (let at = first + MINUTE_MS; at <= first + 6 * HOUR_MS; at += MINUTE_MS) {
        const minute = new Date(at).getUTCMinutes();
        const fits = minutes.startsWith('*/') ? minute % Number(minutes.slice(2)) === 0 : minutes.split(',').includes(String(minute));
        if (fits && (hours === '*' || new Date(at).getUTCHours() === Number(hours))) meant.push(at);
      }
      const found: number[] = [];
      for (let at = times.next(first); at !== null && at <= first + 6 * HOUR_MS; at = times.next(at)) found.push(at);
      if (JSON.stringify(found) !== JSON.stringify(meant)) throw new Error(`${expression} ${new Date(first).toISOString()}`);
    }),
    { numRuns: runs(40, 1000), seed: SEED },
  );
  t.pass();
});

t.test('finds the same times as node-cron', async (t) => {
  for (const expression of EXPRESSIONS) {
    for (const timezone of ['UTC', 'Asia/Kolkata', 'America/Bogota', '+05:30', '-03:30']) {
      const task = createTask(expression, () => undefined, { timezone });
      const theirs = task.getNextRuns(20).map((date) => date.getTime());
      task.destroy();
      const offsetMs = new LocalClock(timezone).offsetMs(theirs[0] as number);
      const times = new CronTimes(expression);
      const ours = theirs.map(
        (_, i) => (times.next((theirs[Math.max(0, i - 1)] as number) + offsetMs - (i === 0 ? 1 : 0)) ?? 0) - offsetMs,
      );
      t.same(ours, theirs, `${expression} ${timezone}`);
    }
  }
});

t.test('counts half a century of minutes', async (t) => {
  const to = Date.parse('2026-11-21T00:00Z');
  t.same(new CronTimes('* * * * *').between(0, to), { count: to / MINUTE_MS, last: to });
});

t.test('returns the offsets of local clocks', async (t) => {
  const at = Date.parse('2026-07-01T12:34:56Z');
  t.equal(new LocalClock(null).offsetMs(at), new LocalClock(Intl.DateTimeFormat().resolvedOptions().timeZone).offsetMs(at));
  const offsets: readonly (readonly [string, number])[] = [
    ['UTC', 0],
    ['Europe/Berlin', 2],
    ['Asia/Kolkata', 5.5],
    ['America/St_Johns', -2.5],
    ['Australia/Lord_Howe', 10.5],
  ];
  for (const [timezone, hours] of offsets) t.equal(new LocalClock(timezone).offsetMs(at), hours * HOUR_MS, timezone);
  const berlin = new LocalClock('Europe/Berlin');
  t.equal(berlin.text('2026-06-10T22:05:07.000Z'), '2026-06-11 00:05');
  const momentOf = (local: string, after: string): string =>
    new Date(berlin.momentOf(Date.parse(`${local}Z`), Date.parse(after))).toISOString().slice(0, 16);
  t.equal(momentOf('2026-07-01T12:00', '2026-07-01T00:00Z'), '2026-07-01T10:00');
  t.equal(momentOf('2026-10-25T02:30', '2026-10-25T00:00Z'), '2026-10-25T00:30', 'the first of two');
  t.equal(momentOf('2026-10-25T02:30', '2026-10-25T00:45Z'), '2026-10-25T01:30');
  t.equal(momentOf('2026-10-26T02:30', '2026-10-25T00:45Z'), '2026-10-26T01:30');
});
