import t from 'tap';
import { isoUtc } from '../../src/core/time/time.ts';
import { JobRecords, newRecord, type Run } from './job-records.ts';

t.test('after a step of the clock, runs of this boot have the corrected time', async (t) => {
  const run = (startedMs: number): Run => ({
    started: isoUtc(startedMs),
    duration_seconds: 1,
    status: 'OK',
    exit_code: 0,
    trigger: 'schedule',
    failed: false,
    lines: [],
  });
  const right = Date.UTC(2026, 5);
  const jobs = [
    { ...newRecord('collect_metrics', 'off'), last: run(60_000), last_success: isoUtc(60_000) },
    { ...newRecord('backup_logs', 'off'), last: run(right), last_success: isoUtc(right) },
  ];
  const state = {
    load: () => ({ scheduler: { state: 'stopped' as const, started: null, beat: null }, jobs }),
    saveLive: () => undefined,
    saveDurable: async () => undefined,
  };
  const records = new JobRecords({ log: () => undefined, state, takeRuns: () => [], onRun: () => undefined }, () => null);
  records.load();
  records.get('collect_metrics').running_since = isoUtc(90_000);
  records.correct({ fromMs: 20_000, toMs: 100_000, deltaMs: right });
  t.match(records.get('collect_metrics'), {
    last: { started: isoUtc(right + 60_000) },
    last_success: isoUtc(right + 60_000),
    running_since: isoUtc(right + 90_000),
  });
  t.match(records.get('backup_logs'), { last: { started: isoUtc(right) }, last_success: isoUtc(right) }, 'of an earlier boot');
});
