import t from 'tap';
import { HOUR_MS } from '../../core/time/time.ts';
import { type TestArchive, testArchive } from '../testing/archive.ts';
import { series } from '../testing/rows.ts';
import { aggregate } from './queries.ts';

const NODE = 'a';
const HOUR = Date.parse('2026-03-04T10:00:00Z');

t.test('samples from when the clock was ahead count, and future time is no gap', async (t) => {
  const stages = {
    forwards: (opened: TestArchive) => {
      opened.archive.setRate(NODE, 1);
      opened.add(NODE, series(HOUR, 10));
      opened.archive.saveClockEvent({ kind: 'step', timestamp_ms: HOUR + HOUR_MS + 10_000, delta_seconds: 3600 });
      opened.add(NODE, series(HOUR + HOUR_MS + 10_000, 60));
      opened.archive.saveClockEvent({ kind: 'step', timestamp_ms: HOUR + 70_000, delta_seconds: -3600 });
      opened.add(NODE, series(HOUR + 70_000, 5));
      return { nowMs: HOUR + 75_000, hours: [15, 60] };
    },
    'backwards, soon after the first start': (opened: TestArchive) => {
      opened.nowMs = HOUR + HOUR_MS;
      opened.archive.setRate(NODE, 1);
      opened.add(NODE, series(HOUR + HOUR_MS, 10));
      opened.archive.saveClockEvent({ kind: 'step', timestamp_ms: HOUR + 10_000, delta_seconds: -3600 });
      opened.add(NODE, series(HOUR + 10_000, 20));
      return { nowMs: HOUR + 30_000, hours: [20, 10] };
    },
    'backwards, after two hours': (opened: TestArchive) => {
      opened.archive.setRate(NODE, 1);
      opened.add(NODE, series(HOUR, 7200));
      opened.archive.saveClockEvent({ kind: 'step', timestamp_ms: HOUR + HOUR_MS, delta_seconds: -3600 });
      opened.add(NODE, series(HOUR + HOUR_MS, 20));
      return { nowMs: HOUR + HOUR_MS + 20_000, hours: [3600, 3620] };
    },
  };
  for (const [what, play] of Object.entries(stages)) {
    const opened = testArchive(t, HOUR);
    const { nowMs, hours } = play(opened);
    const received = hours.reduce((a, b) => a + b, 0);
    const check = (): void => {
      const range = { node: NODE, fromMs: HOUR, toMs: HOUR + 2 * HOUR_MS };
      const [whole] = aggregate(opened.archive, { ...range, by: null }, nowMs);
      t.match(whole, { samples_received: received, samples_expected: received, status_seconds: { OK: received, UNKNOWN: 0 } }, what);
      t.equal(whole?.longest_gap_seconds, 1, what);
      const parts = aggregate(opened.archive, { ...range, by: 'hour' }, nowMs);
      const inHours = (name: 'samples_received' | 'samples_expected'): number[] => parts.map((part) => part[name]);
      t.same(inHours('samples_received'), hours, what);
      t.same(inHours('samples_expected'), hours, what);
    };
    check();
    opened.commit();
    check();
    opened.restart();
    check();
  }
});
