import t from 'tap';
import { durationOf } from './run.ts';

t.test('parses durations', async (t) => {
  t.equal(durationOf('168h'), 604_800);
  t.equal(durationOf('7d'), 604_800);
  t.equal(durationOf('10m'), 600);
  t.equal(durationOf('10min'), 600);
  t.equal(durationOf('90s'), 90);
  t.equal(durationOf('1h30m'), 5400);
  t.equal(durationOf('1.5 h'), 5400);
  t.equal(durationOf('10s'), 10);
  for (const wrong of ['', '10', '9s', '-1h', '1h 30', 'h', '1w', '367d', '1hh', 'x10m'])
    t.throws(() => durationOf(wrong), { exitCode: 64, message: `--duration is "${wrong}"` }, wrong);
});
