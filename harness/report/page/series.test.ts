import t from 'tap';
import { compose } from '../compose.ts';
import { LANES } from '../tables.ts';
import { badWeek } from '../testing/bad-week.ts';
import { nothing, perfectWeek } from '../testing/runs.ts';
import { columnsOf, endOf, marksAt, marksOf } from './series.ts';

t.test('columns span the run from start to end, without values in gaps', async (t) => {
  const { series } = compose(badWeek());
  const end = endOf(series);
  t.equal(end, 604_800 + 15_300);
  const { times, values } = columnsOf(series, end);
  t.equal(times[0], series.begun_epoch_seconds);
  t.equal(times.at(-1), series.begun_epoch_seconds + end);
  t.ok(
    times.every((time, index) => index === 0 || time > (times[index - 1] as number)),
    'times only grow',
  );
  for (const column of Object.values(values)) t.equal(column.length, times.length);
  const gap = times.findIndex((time) => time > series.begun_epoch_seconds + 189_960);
  t.equal(values.rate_percent[gap], null, 'no line is drawn across a monitoring gap');
  t.equal(values.rate_percent[times.indexOf(series.begun_epoch_seconds + 310_020)], 100);
});

t.test('a series without gaps gets one further point, at its start', async (t) => {
  const { series } = compose(perfectWeek());
  const { times } = columnsOf(series, endOf(series));
  t.equal(times.length, 10_081);
});

t.test('a run without data still has an axis', async (t) => {
  const { series } = compose(nothing());
  const { times, values } = columnsOf(series, endOf(series));
  t.same(times, [series.begun_epoch_seconds, series.begun_epoch_seconds + 60]);
  t.same(values.celsius, [null, null]);
  t.same(marksOf(series, 60), []);
});

t.test('every event has a mark with a text, and is found at its position', async (t) => {
  const { series } = compose(badWeek());
  const begun = series.begun_epoch_seconds;
  const marks = marksOf(series, endOf(series));
  t.equal(marks.length, 124 + 3 + 2 + 1 + 2);
  t.same([...new Set(marks.map(({ lane }) => lane))].sort(), [...LANES].sort(), 'one of each kind');
  const texts = (at: number, lane: (typeof LANES)[number] | null = null) =>
    marksAt(marks, begun + at, 30)
      .filter((mark) => lane === null || mark.lane === lane)
      .map(({ text }) => text);
  t.match(texts(130_010), [/^Restart of the service: watchdog, SIGABRT · 2026-03-03 19:36:40 UTC$/]);
  t.match(texts(400_500), [/^Monitoring gap of 15 min: machine off or booting/]);
  t.match(texts(93_000), [/^Suspended for 2 h/]);
  t.match(texts(250_000), [/^Clock set forward by 1 h/]);
  t.match(texts(260_000), [/^Clock set back by 1 h/]);
  t.match(texts(600_000, 'CRITICAL'), [/^CRITICAL: temperature, open at the end \(robot_7\/temperature\/01JC\)/]);
  t.match(texts(400_900), [/machine off/, /^Restart of the service: reboot · /]);
  t.same(texts(1000), []);
});
