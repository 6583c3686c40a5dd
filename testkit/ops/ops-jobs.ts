/** State file of a scheduler in the form that `edge-health ops run` writes for the service, with a failed job and one that never ran. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const STARTED = '2026-03-04T12:00:00.000Z';
const last = {
  started: STARTED,
  duration_seconds: 1.5,
  exit_code: 2,
  status: 'CRITICAL',
  trigger: 'schedule',
  failed: true,
  lines: ['CRITICAL  disk'],
};
const never = {
  schedule: 'off',
  next: null,
  running_since: null,
  last: null,
  last_success: null,
  runs: 0,
  failures: 0,
  missed: 0,
  overlaps: 0,
};

export const JOBS = [
  { ...never, name: 'health_check', next: STARTED, last, last_success: STARTED, runs: 7, failures: 2, missed: 3, overlaps: 1 },
  { ...never, name: 'generate_7day_report' },
];

/** Writes the state file to the data folder of the service in `folder`. */
export function writeJobs(folder: string, state = 'running'): void {
  const live = join(folder, 'data/ops/live');
  mkdirSync(live, { recursive: true });
  const document = { scheduler: { state, started: STARTED, beat: new Date().toISOString() }, jobs: JOBS };
  writeFileSync(join(live, 'jobs.json'), JSON.stringify(document));
}
