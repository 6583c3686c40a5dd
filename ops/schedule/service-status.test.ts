import t from 'tap';
import type { OpsDocument } from '../../src/client/documents.ts';
import { newRecord } from './job-records.ts';
import { statusLine, watchdogPing } from './service-status.ts';

const last = (started: string, status: 'OK' | 'CRITICAL') => ({
  started,
  duration_seconds: 1,
  status,
  exit_code: 0,
  trigger: 'schedule' as const,
  failed: false,
  lines: [],
});
const document: OpsDocument = {
  scheduler: { state: 'running', started: null, beat: null },
  jobs: [
    { ...newRecord('health_check', '*/5 * * * *'), last: last('2026-06-10T10:05:00.000Z', 'OK'), next: '2026-06-10T10:10:00.000Z' },
    { ...newRecord('collect_metrics', '* * * * *'), last: last('2026-06-10T10:04:00.000Z', 'CRITICAL'), next: '2026-06-10T10:06:00.000Z' },
    newRecord('generate_7day_report', 'off'),
  ],
};

t.test('the status line is in local time', async (t) => {
  t.equal(statusLine(document, 'Europe/Berlin'), '2 jobs; last: health_check OK 12:05; next: collect_metrics 12:06');
  const [first, ...others] = document.jobs;
  const running = {
    ...document,
    jobs: [{ ...(first as (typeof document.jobs)[number]), running_since: '2026-06-10T10:05:30.000Z' }, ...others],
  };
  t.equal(statusLine(running, 'UTC'), '2 jobs; running: health_check; last: health_check OK 10:05; next: collect_metrics 10:06');
  t.equal(statusLine({ ...document, jobs: [newRecord('backup_logs', 'off')] }, 'UTC'), '0 jobs');
});

t.test('sends ready once, a ping for each beat, and the status line when it changes', async (t) => {
  const sent: string[] = [];
  const ping = watchdogPing({ via: 'test', notify: (state) => void sent.push(state) });
  ping('one');
  ping('one');
  ping('two\nlines');
  t.same(sent, ['READY=1\nWATCHDOG=1\nSTATUS=one', 'WATCHDOG=1', 'WATCHDOG=1\nSTATUS=two\\nlines']);
  watchdogPing(null)('without a service manager');
});
