import t from 'tap';
import type { Job, OpsState } from '../../types.ts';
import { summarizeJobs } from './jobs.ts';

const NOW = new Date(2026, 2, 4, 12, 3, 10).getTime();
const at = (hour: number, minute: number, day = 4): string => new Date(2026, 2, day, hour, minute).toISOString();

const job = (more: Partial<Job> = {}): Job => ({
  name: 'health_check',
  schedule: '*/5 * * * *',
  next: at(12, 5),
  running_since: null,
  last: { started: at(12, 0), status: 'WARNING', lines: ['WARNING  clock: not synchronised'] },
  missed: 0,
  overlaps: 0,
  ...more,
});
const ops = (state: OpsState['scheduler']['state'], ...jobs: Job[]): OpsState => ({ scheduler: { state, beat: at(12, 3) }, jobs });

t.test('no jobs are shown if no scheduler has ever run', async (t) => {
  t.equal(summarizeJobs(null, NOW), null);
  t.equal(summarizeJobs(ops('never'), NOW), null);
});

t.test('a job shows its last status, last run and next run', async (t) => {
  t.same(summarizeJobs(ops('running', job()), NOW), {
    problem: null,
    rows: [
      {
        name: 'health check',
        outcome: 'WARNING',
        facts: ['last 12:00:00', 'next 12:05:00'],
        isRunning: false,
        lines: ['WARNING  clock: not synchronised'],
      },
    ],
  });
  const facts = (more: Partial<Job>): readonly string[] | undefined => summarizeJobs(ops('running', job(more)), NOW)?.rows[0]?.facts;
  t.same(facts({ last: null }), ['has not run yet', 'next 12:05:00']);
  t.same(facts({ missed: 3, overlaps: 1 }), ['last 12:00:00', 'next 12:05:00', '3 missed', '1 overlap']);
  t.same(facts({ next: at(0, 0, 5) }), ['last 12:00:00', 'next 5 Mar, 00:00:00']);
  t.same(facts({ running_since: at(12, 2) }), ['running for 1 min 10 s', 'last 12:00:00', 'next 12:05:00']);
  t.same(facts({ schedule: 'off', next: null }), ['last 12:00:00', 'off']);
});

t.test('a job that is off and never ran is omitted', async (t) => {
  const off = job({ schedule: 'off', next: null, last: null });
  t.same(summarizeJobs(ops('running', off, job()), NOW)?.rows.length, 1);
});

t.test('a stopped scheduler is reported, and no next run is shown', async (t) => {
  const shown = summarizeJobs(ops('stopped', job({ running_since: at(12, 2) })), NOW);
  t.match(shown?.problem, /has not run since 12:03:00: no checks/);
  t.same(shown?.rows[0]?.facts, ['last 12:00:00']);
  t.equal(shown?.rows[0]?.isRunning, false);
});
