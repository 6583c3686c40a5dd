import t from 'tap';
import { parseDuration } from './run.ts';

t.test('lengths of time', async (t) => {
  t.equal(parseDuration('168h'), 604_800);
  t.equal(parseDuration('7d'), 604_800);
  t.equal(parseDuration('10m'), 600);
  t.equal(parseDuration('10min'), 600);
  t.equal(parseDuration('90s'), 90);
  t.equal(parseDuration('1h30m'), 5400);
  t.equal(parseDuration('1.5 h'), 5400);
  t.equal(parseDuration('10s'), 10);
  for (const wrong of ['', '10', '9s', '-1h', '1h 30', 'h', '1w', '367d', '1hh', 'x10m']) t.equal(parseDuration(wrong), null, wrong);
});
