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

interface Alerts {
  data: { alert_id: string; timestamp: string; resolved: boolean }[];
}

t.test('a clock that is set for the first time corrects the start and the open alerts of this boot', async (t) => {
  const folder = temporaryFolder(t);
  const clock = `${folder}/clock`;
  const unset = -Math.floor(Date.now() / 1000) + 20;
  writeFileSync(clock, `${unset}`);
  const environment = { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  const config = { thresholds: { memory: { warning: 0.1, critical: 0.2 } }, alerts: { raise_after_seconds: 0 } };
  const service = await startIn(t, folder, { environment, config });
  const raised = await service.until<Alerts>('/alerts?metric=memory_percent', ({ data }) => data.length === 1);
  t.match(raised.data[0]?.timestamp, /^1970-01-01T/);
  const beforeMs = Date.now();
  writeFileSync(clock, '+0');
  const { data } = await service.until<Alerts>(
    '/alerts?metric=memory_percent',
    ({ data }) => data[0]?.timestamp.startsWith('1970') === false,
  );
  t.same(
    data.map(({ alert_id, resolved }) => ({ alert_id, resolved })),
    raised.data.map(({ alert_id }) => ({ alert_id, resolved: false })),
  );
  const { started } = await service.json<{ started: string }>('/status');
  for (const time of [started, data[0]?.timestamp ?? ''])
    t.ok(Date.parse(time) > beforeMs - 120_000 && Date.parse(time) < beforeMs, `${time}, corrected at ${beforeMs}`);
});
