import t from 'tap';
import { formatDuration, parseDuration } from './duration.ts';

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

t.test('for people, never more than there was', async (t) => {
  t.equal(formatDuration(604_800), '168 h');
  t.equal(formatDuration(604_799), '167 h 59 min');
  t.equal(formatDuration(3600), '1 h');
  t.equal(formatDuration(90), '1 min 30 s');
  t.equal(formatDuration(120.9), '2 min');
  t.equal(formatDuration(0.9), '0 s');
  t.equal(formatDuration(-5), '0 s');
});
