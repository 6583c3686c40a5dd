import { globSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { startIn } from '../../../testkit/service/rest.ts';

interface Status {
  clock_events: { kind: string; delta_seconds: number }[];
  publish: { missed: number };
}

const [library = ''] = globSync('/usr/lib/*/faketime/libfaketime.so.1');

t.test('a stepped wall clock is recognised and recorded, and is no gap', async (t) => {
  t.ok(library, 'the Debian package faketime is installed');
  const folder = temporaryFolder(t);
  const clock = `${folder}/clock`;
  writeFileSync(clock, '+0');
  const environment = { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  const service = await startIn(t, folder, { environment });
  await service.until<{ count?: number }>('/health/history?hours=1', ({ count }) => (count ?? 0) >= 3);
  for (const [offset, delta] of [
    ['+3600', 3600],
    ['+0', -3600],
  ] as const) {
    writeFileSync(clock, offset);
    const { clock_events } = await service.until<Status>(
      '/status',
      (status) => status.clock_events[0]?.delta_seconds !== undefined && Math.abs(status.clock_events[0].delta_seconds - delta) < 2,
    );
    t.equal(clock_events[0]?.kind, 'step');
  }
  const statistics = await service.json<{ longest_gap_seconds: number }>('/health/aggregate?hours=3');
  t.ok(statistics.longest_gap_seconds < 1800, `the longest gap is ${statistics.longest_gap_seconds} s, not an hour`);
  t.match(service.log, /wall clock step detected seconds=3(600|599)/);
});
