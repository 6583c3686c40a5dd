import t from 'tap';
import { historyLines } from './history.ts';
import { finding, fine, overall } from './verdict.ts';

const NOW = Date.parse('2026-03-04T05:06:07.089Z');

t.test('a line for the run, and one for each change', async (t) => {
  const disk = finding('disk /', 'CRITICAL', 'full', 'remove files');
  const lines = (verdicts: Parameters<typeof overall>[0], statuses: Record<string, 'CRITICAL' | 'WARNING'> | null) =>
    historyLines(overall(verdicts), verdicts, statuses === null ? null : { counters: {}, statuses }, NOW, 'schedule');
  t.same(lines([disk, fine('clock', 'well')], null), [
    '2026-03-04T05:06:07.089Z CRITICAL  1 of 2 checks: disk / (schedule)',
    '2026-03-04T05:06:07.089Z   CRITICAL  disk /: full; remove files',
  ]);
  t.equal(lines([disk], { 'disk /': 'CRITICAL' }).length, 1, 'the same again is no news');
  t.same(lines([fine('disk /', 'well')], { 'disk /': 'CRITICAL' }), [
    '2026-03-04T05:06:07.089Z OK  1 check (schedule)',
    '2026-03-04T05:06:07.089Z   OK  disk /: well',
  ]);
});
