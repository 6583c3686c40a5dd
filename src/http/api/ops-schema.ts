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
  lines: v.pipe(v.array(v.string()), about('The last lines of its output.')),
});

/** The scheduler's state file, which the service and `edge-health ops list` show. */
export const opsDocumentSchema = v.strictObject({
  scheduler: v.strictObject({
    state: v.pipe(v.picklist(['running', 'stopped', 'never']), about('never: no scheduler has run on this data folder.')),
    started: v.nullable(instant),
    beat: v.pipe(v.nullable(instant), about('Last heartbeat; at least once a minute.')),
  }),
  jobs: v.pipe(
    v.array(
      v.strictObject({
        name: v.string(),
        schedule: v.pipe(v.string(), about('cron expression, or off.')),
        next: v.pipe(v.nullable(instant), about('When it runs next.')),
        running_since: v.nullable(instant),
        last: v.pipe(v.nullable(runSchema), about('Its last run that ended.')),
        last_success: v.pipe(v.nullable(instant), about('Start of the last run that ended with OK or WARNING.')),
        runs: count('Runs that ended, since the data folder was made.'),
        failures: count('Of these the ones that ended with CRITICAL or UNKNOWN.'),
        missed: count('Scheduled runs that could not start: power-off, suspend, a stopped scheduler.'),
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
            'How notifications receive alerts: from /events; by polling /alerts every 10 s because /events cannot be opened; not at all.',
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
