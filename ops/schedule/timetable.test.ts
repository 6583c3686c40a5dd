import fc from 'fast-check';
import { createTask } from 'node-cron';
import t from 'tap';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { Timetable } from './timetable.ts';
import { zoneOf } from './zone.ts';

/** Every time after one moment up to another, as `MM-DDTHH:MM` in UTC. */
function times(expression: string, zone: string, from: string, to: string): string[] {
  const timetable = new Timetable(expression, zoneOf(zone));
  const found: string[] = [];
  for (let at = timetable.next(Date.parse(from)); at !== null && at <= Date.parse(to); at = timetable.next(at)) {
    found.push(new Date(at).toISOString().slice(5, 16));
  }
  return found;
}

/** Minutes from one time to the next. */
function gaps(expression: string, zone: string, from: string, to: string): number[] {
  const found = times(expression, zone, from, to).map((text) => Date.parse(`2026-${text}Z`));
  return found.slice(1).map((ms, index) => (ms - (found[index] as number)) / MINUTE_MS);
}

t.test('a daily time that clocks leave out in spring runs once, when they are put forward', async (t) => {
  t.same(times('30 2 * * *', 'Europe/Berlin', '2026-03-28T00:00Z', '2026-03-31T00:00Z'), ['03-28T01:30', '03-29T01:00', '03-30T00:30']);
  t.same(times('30 2 * * *', 'America/New_York', '2026-03-07T12:00Z', '2026-03-09T12:00Z'), ['03-08T07:00', '03-09T06:30']);
  t.same(times('15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', '2026-10-05T00:00Z'), ['10-03T15:30', '10-04T15:15']);
  t.same(times('0 0 * * *', 'America/Santiago', '2026-09-05T00:00Z', '2026-09-07T12:00Z'), ['09-05T04:00', '09-06T04:00', '09-07T03:00']);
  t.same(times('0,20,40 2 * * *', 'Europe/Berlin', '2026-03-29T00:00Z', '2026-03-29T12:00Z'), ['03-29T01:00'], 'once for all of them');
});

t.test('a daily time that comes twice in autumn runs once, the first time', async (t) => {
  t.same(times('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', '2026-10-26T12:00Z'), ['10-25T00:30', '10-26T01:30']);
  t.same(times('30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', '2026-11-02T12:00Z'), ['11-01T05:30', '11-02T06:30']);
  t.same(times('45 1 * * *', 'Australia/Lord_Howe', '2026-04-04T00:00Z', '2026-04-06T00:00Z'), ['04-04T14:45', '04-05T15:15']);
  t.same(times('30 1-3 * * *', 'Europe/Berlin', '2026-10-24T20:00Z', '2026-10-25T12:00Z'), ['10-24T23:30', '10-25T00:30', '10-25T02:30']);
});

t.test('jobs of every few minutes go on evenly, whatever clocks do', async (t) => {
  const changes: readonly (readonly [string, string, string])[] = [
    ['Europe/Berlin', '2026-03-28T20:00Z', '2026-03-29T06:00Z'],
    ['Europe/Berlin', '2026-10-24T20:00Z', '2026-10-25T06:00Z'],
    ['America/New_York', '2026-03-08T00:00Z', '2026-03-08T12:00Z'],
    ['America/New_York', '2026-11-01T00:00Z', '2026-11-01T12:00Z'],
    ['Australia/Lord_Howe', '2026-04-04T10:00Z', '2026-04-04T20:00Z'],
    ['Australia/Lord_Howe', '2026-10-03T10:00Z', '2026-10-03T20:00Z'],
    ['Asia/Kolkata', '2026-03-28T20:00Z', '2026-03-29T06:00Z'],
  ];
  for (const [zone, from, to] of changes) {
    t.same([...new Set(gaps('*/5 * * * *', zone, from, to))], [5], `${zone} ${from}`);
    t.same([...new Set(gaps('* * * * *', zone, from, to))], [1], `${zone} ${from}`);
  }
  t.same([...new Set(gaps('0 * * * *', 'Europe/Berlin', '2026-10-24T20:00Z', '2026-10-25T06:00Z'))], [60]);
});

t.test('a zone without summer time, half an hour off', async (t) => {
  t.same(times('0 0 * * *', 'Asia/Kolkata', '2026-03-28T00:00Z', '2026-03-30T00:00Z'), ['03-28T18:30', '03-29T18:30']);
});

t.test('days that are rare, and days that a zone left out', async (t) => {
  const timetable = new Timetable('0 0 29 2 *', zoneOf('UTC'));
  t.equal(timetable.next(Date.parse('2026-01-01')), Date.parse('2028-02-29'));
  t.equal(timetable.next(Date.parse('2096-03-01')), Date.parse('2104-02-29'), 'no leap year in 2100');
  // Samoa went over the date line: no 30 December 2011.
  const samoa = new Timetable('0 0 * * *', zoneOf('Pacific/Apia'));
  t.equal(samoa.next(Date.parse('2011-12-29T10:00Z')), Date.parse('2011-12-30T10:00Z'));
  t.equal(samoa.within(Date.parse('2011-12-29T10:00Z'), Date.parse('2011-12-30T10:00Z')).count, 1);
});

t.test("the machine's zone", async (t) => {
  const at = Date.parse('2026-07-01T12:34:56Z');
  t.equal(zoneOf(null).offsetMs(at), zoneOf(Intl.DateTimeFormat().resolvedOptions().timeZone).offsetMs(at));
});

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
const ZONES = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'America/St_Johns', 'Africa/Casablanca', 'UTC'];
const moment = fc.integer({ min: Date.parse('2024-01-01'), max: Date.parse('2030-01-01') });

t.test('times are counted as they come one by one', async (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom(...EXPRESSIONS),
      fc.constantFrom(...ZONES),
      moment,
      fc.integer({ min: 0, max: 9 * DAY_MS }),
      (text, zone, from, length) => {
        const timetable = new Timetable(text, zoneOf(zone));
        const span = text.startsWith('*') ? length % (12 * HOUR_MS) : length;
        let [count, last] = [0, null as number | null];
        for (let at = timetable.next(from); at !== null && at <= from + span; at = timetable.next(at)) [count, last] = [count + 1, at];
        const within = timetable.within(from, from + span);
        if (within.count !== count || within.lastMs !== last)
          throw new Error(`${text} ${zone}: ${JSON.stringify(within)}, not ${count} ${last}`);
      },
    ),
    { numRuns: runs(60, 2000), seed: SEED },
  );
  t.pass();
});

t.test('every time is one that local clocks show, and of those that follow clocks none is left out', async (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom('*/5 * * * *', '7,37 * * * *', '*/10 2 * * *'),
      fc.constantFrom(...ZONES),
      moment,
      (text, zoneName, from) => {
        const zone = zoneOf(zoneName);
        const timetable = new Timetable(text, zone);
        const first = Math.floor(from / MINUTE_MS) * MINUTE_MS;
        const [minutes, hours] = text.split(' ') as [string, string];
        const isMeant = (ms: number): boolean => {
          const local = new Date(ms + zone.offsetMs(ms));
          const minute = local.getUTCMinutes();
          const fits = minutes.startsWith('*/') ? minute % Number(minutes.slice(2)) === 0 : minutes.split(',').includes(String(minute));
          return fits && (hours === '*' || local.getUTCHours() === Number(hours));
        };
        const meant: number[] = [];
        for (let at = first + MINUTE_MS; at <= first + 6 * HOUR_MS; at += MINUTE_MS) if (isMeant(at)) meant.push(at);
        const found: number[] = [];
        for (let at = timetable.next(first); at !== null && at <= first + 6 * HOUR_MS; at = timetable.next(at)) found.push(at);
        if (JSON.stringify(found) !== JSON.stringify(meant)) throw new Error(`${text} ${zoneName} ${new Date(first).toISOString()}`);
      },
    ),
    { numRuns: runs(40, 1000), seed: SEED },
  );
  t.pass();
});

t.test('where no clock is put forward or back, node-cron finds the same times', async (t) => {
  for (const expression of EXPRESSIONS) {
    for (const zone of ['UTC', 'Asia/Kolkata', 'America/Bogota']) {
      const task = createTask(expression, () => undefined, { timezone: zone });
      const theirs = task.getNextRuns(20).map((date) => date.getTime());
      task.destroy();
      const timetable = new Timetable(expression, zoneOf(zone));
      const ours = theirs.map((_, index) =>
        index === 0 ? timetable.next((theirs[0] as number) - 1) : timetable.next(theirs[index - 1] as number),
      );
      t.same(ours, theirs, `${expression} ${zone}`);
    }
  }
});

t.test('half a century of minutes is counted in no time', async (t) => {
  const zone = zoneOf('Europe/Berlin');
  let lookups = 0;
  const offsetMs = (ms: number): number => {
    lookups += 1;
    return zone.offsetMs(ms);
  };
  const timetable = new Timetable('* * * * *', { ...zone, offsetMs });
  const { count } = timetable.within(0, Date.parse('2026-11-21T00:00Z'));
  t.ok(Math.abs(count - Date.parse('2026-11-21T00:00Z') / MINUTE_MS) <= 120, 'to the hours of summer time');
  t.ok(lookups < 1_000_000, `${lookups} lookups of the zone for ${count} minutes`);
});
