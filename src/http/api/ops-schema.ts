import * as v from 'valibot';
import { count, described, instant, nullable } from './fields.ts';

export const runSchema = v.strictObject({
  started: instant,
  duration_seconds: v.number(),
  status: v.picklist(['OK', 'WARNING', 'CRITICAL', 'UNKNOWN']),
  exit_code: described(v.number(), 'Nagios-compatible exit code: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.'),
  trigger: described(
    v.picklist(['schedule', 'catch_up', 'manual']),
    'catch_up: run late, because the machine was off or suspended at the scheduled time.',
  ),
  failed: described(
    v.boolean(),
    'Whether the job did not do its work. What health_check finds and what a report concludes are results, not failures.',
  ),
  lines: described(v.array(v.string()), 'The last lines of the output.'),
});

/** The scheduler's state file, as /status and `edge-health ops list` show it. */
export const opsDocumentSchema = v.strictObject({
  scheduler: v.strictObject({
    state: described(v.picklist(['running', 'stopped', 'never']), 'never: no scheduler has ever run on this data folder.'),
    started: v.nullable(instant),
    beat: nullable(instant, 'Last heartbeat; the scheduler sends at least one a minute.'),
  }),
  jobs: described(
    v.array(
      v.strictObject({
        name: v.string(),
        schedule: described(v.string(), 'A cron expression, or off.'),
        next: nullable(instant, 'Next scheduled run.'),
        running_since: v.nullable(instant),
        last: nullable(runSchema, 'The last completed run.'),
        last_success: nullable(instant, 'Start of the last run that did not fail.'),
        runs: count('Completed runs since the data folder was created.'),
        failures: count('Completed runs that failed.'),
        missed: count('Scheduled runs that could not start because of a power-off, a suspend or a stopped scheduler.'),
        overlaps: count('Scheduled runs skipped because the previous run was still in progress.'),
      }),
    ),
    'The scheduled jobs and their last runs.',
  ),
  notifications: v.optional(
    described(
      v.strictObject({
        alerts: described(
          v.picklist(['stream', 'polling', 'unreachable']),
          'Source of the alerts to notify. stream: /events; polling: /alerts every 10 s, because /events cannot be opened; unreachable: neither.',
        ),
        since: instant,
        problem: nullable(v.string(), 'Why /events cannot be opened.'),
      }),
      'Absent if no notification channel is configured.',
    ),
  ),
});

export type OpsDocument = v.InferOutput<typeof opsDocumentSchema>;
