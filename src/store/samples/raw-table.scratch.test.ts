import t from 'tap';
import { aggregate } from '../queries/queries.ts';
import { testArchive } from '../testing/archive.ts';
import { series } from '../testing/rows.ts';
import { Scratch } from './raw-table.ts';

const NODE = 'a';
const NOW = Date.parse('2026-03-04T10:00:00Z');

t.test('released columns are reused, and none that is still in use', async (t) => {
  const scratch = new Scratch();
  const [first, second] = [scratch.take(60), scratch.take(65)];
  t.not(first.timestampMs.buffer, second.timestampMs.buffer);
  t.same([first.count, first.metrics.map(({ length }) => length), second.sequence.length], [60, [60, 60, 60, 60], 65]);
  scratch.release();
  const again = scratch.take(3);
  t.equal(again.timestampMs.buffer, first.timestampMs.buffer);
  t.same([again.count, again.timestampMs.length, again.status.length, again.sequence.length], [3, 3, 3, 3]);
  t.equal(scratch.take(66).status.buffer, second.status.buffer);
  t.equal(scratch.take(4096).count, 4096);
});

t.test('overlapping chunks, as after a clock step back, are in use together', async (t) => {
  const opened = testArchive(t, NOW);
  for (const fromMs of [NOW, NOW + 500, NOW + 60_000, NOW + 60_250]) {
    opened.add(NODE, series(fromMs, 60));
    opened.commit();
  }
  opened.nowMs = NOW + 3 * 60_000;
  const seen: number[] = [];
  for (const { count, metrics, timestampMs } of opened.archive.samples.chunks(NODE, NOW, opened.nowMs, 'asc')) {
    for (let i = 0; i < count; i += 1) {
      seen.push(timestampMs[i] as number);
      // The values that series() derives from their times.
      t.equal(metrics[0]?.[i], Math.round((((timestampMs[i] as number) % 9973) / 100) * 100) / 100);
    }
  }
  t.same(
    seen,
    seen.toSorted((a, b) => a - b),
  );
  t.equal(new Set(seen).size, 240);
  const [whole] = aggregate(opened.archive, { node: NODE, fromMs: NOW, toMs: opened.nowMs, by: null }, opened.nowMs);
  t.equal(whole?.samples_received, 240);
});
