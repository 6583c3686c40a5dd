import * as v from 'valibot';
import { about, count, instant } from './fields.ts';

export const runSchema = v.strictObject({
  started: instant,
  duration_seconds: v.number(),
  status: v.picklist(['OK', 'WARNING', 'CRITICAL', 'UNKNOWN']),
  exit_code: v.pipe(v.number(), about('Nagios-compatible exit code: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.')),
  trigger: v.pipe(
    v.picklist(['schedule', 'catch_up', 'manual']),
    about('catch_up: run late, because the machine was off or suspended at the scheduled time.'),
  ),
  lines: v.pipe(v.array(v.string()), about('The last lines of the output.')),
});

/** The scheduler's state file, as /status and `edge-health ops list` show it. */
export const opsDocumentSchema = v.strictObject({
  scheduler: v.strictObject({
    state: v.pipe(v.picklist(['running', 'stopped', 'never']), about('never: no scheduler has ever run on this data folder.')),
    started: v.nullable(instant),
    beat: v.pipe(v.nullable(instant), about('Last heartbeat; the scheduler sends at least one a minute.')),
  }),
  jobs: v.pipe(
    v.array(
      v.strictObject({
        name: v.string(),
        schedule: v.pipe(v.string(), about('A cron expression, or off.')),
        next: v.pipe(v.nullable(instant), about('Next scheduled run.')),
        running_since: v.nullable(instant),
        last: v.pipe(v.nullable(runSchema), about('The last completed run.')),
        last_success: v.pipe(v.nullable(instant), about('Start of the last run that ended with OK or WARNING.')),
        runs: count('Completed runs since the data folder was created.'),
        failures: count('Completed runs that ended with CRITICAL or UNKNOWN.'),
        missed: count('Scheduled runs that could not start because of a power-off, a suspend or a stopped scheduler.'),
        overlaps: count('Scheduled runs skipped because the previous run was still in progress.'),
      }),
    ),
    about('The scheduled jobs and their last runs.'),
  ),
  notifications: v.optional(
    v.pipe(
      v.strictObject({
        alerts: v.pipe(
          v.picklist(['stream', 'polling', 'unreachable']),
          about(
            'Source of the alerts to notify. stream: /events; polling: /alerts every 10 s, because /events cannot be opened; unreachable: neither.',
          ),
        ),
        since: instant,
        problem: v.pipe(v.nullable(v.string()), about('Why /events cannot be opened.')),
      }),
      about('Absent if no notification channel is configured.'),
    ),
  ),
});

export type OpsDocument = v.InferOutput<typeof opsDocumentSchema>;
