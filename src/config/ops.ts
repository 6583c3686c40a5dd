import * as v from 'valibot';
import { NODE_NAME, NODE_NAME_ALLOWED } from '../core/node-name.ts';
import * as keys from './keys.ts';
import { between, integer, schedule, section, text, timeZone } from './keys.ts';

/** `systemctl reload edge-health-ops` applies all of these keys to the scheduler; jobs read the file when they start. */
const about = <T>(description: string, notes: Parameters<typeof keys.about>[1] = {}) =>
  keys.about<T>(description, { ...notes, reload: true });

const jobTimeout = (job: string, seconds: number) =>
  v.optional(
    v.pipe(
      integer(1, 86_400),
      about(`Timeout of a scheduled ${job} run. After it, the run is stopped and counts as failed.`, { unit: 's' }),
    ),
    seconds,
  );

const optionalText = (meaning: string, defaultIs: string, notes: Parameters<typeof keys.about>[1] = {}) =>
  v.optional(v.nullable(v.pipe(text, about(meaning, { defaultIs, ...notes }))), null);

const listOf = (meaning: string) => v.optional(v.pipe(v.array(text), v.maxLength(256), about(meaning)), []);

const SEVERITY = v.picklist(['WARNING', 'ERROR', 'CRITICAL']);

const CLOCK_RANGE = /^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/;

/** `ops.*`: the maintenance jobs, their scheduler, and notifications. The service itself reads none of these. */
export const opsSchema = section({
  health_check: schedule('health_check runs', '*/5 * * * *'),
  collect_metrics: schedule('collect_metrics runs', '* * * * *'),
  collect_alerts: schedule('collect_alerts runs', '*/5 * * * *'),
  backup_logs: schedule('backup_logs runs', '0 0 * * *'),
  generate_7day_report: schedule('generate_7day_report runs', 'off'),
  timezone: v.optional(
    v.nullable(v.pipe(timeZone, about('Time zone of the schedules and of quiet hours.', { defaultIs: "this machine's" }))),
    null,
  ),
  catch_up: v.optional(
    v.pipe(
      v.array(v.picklist(['health_check', 'collect_alerts', 'backup_logs', 'generate_7day_report'])),
      about('Jobs to run once as soon as possible if the machine was off or suspended at their scheduled time.'),
    ),
    ['backup_logs', 'generate_7day_report'],
  ),
  keep_days: v.optional(v.pipe(integer(8, 3650), about('Retention of the files of metrics, alerts and logs.', { unit: 'days' })), 90),
  timeouts: section({
    health_check: jobTimeout('health_check', 60),
    collect_metrics: jobTimeout('collect_metrics', 30),
    collect_alerts: jobTimeout('collect_alerts', 60),
    backup_logs: jobTimeout('backup_logs', 3600),
    generate_7day_report: jobTimeout('generate_7day_report', 600),
  }),
  check: section({
    nodes: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(NODE_NAME, `node names of ${NODE_NAME_ALLOWED}`))),
        v.maxLength(256),
        about(
          'Nodes that must always be on the graph, by the node_name of their statuses. If one leaves the graph, ERROR is raised as well.',
        ),
      ),
      [],
    ),
    node_max_age_seconds: v.optional(
      v.pipe(integer(1, 86_400), about('Maximum age of the last status of such a node.', { unit: 's' })),
      30,
    ),
    containers: listOf('Names of Docker or Podman containers that must be running.'),
    sample_max_age_seconds: v.optional(
      v.pipe(integer(1, 86_400), about('Maximum age of the last sample of this machine.', { unit: 's' })),
      10,
    ),
    min_free_megabytes: v.optional(
      v.pipe(
        integer(0, 10_000_000),
        about('Minimum free space on every file system of disk.paths and of the data folder.', { unit: 'MB' }),
      ),
      2000,
    ),
    backup_max_age_hours: v.optional(v.pipe(integer(1, 8760), about('Maximum age of the last backup.', { unit: 'h' })), 26),
    clock: v.optional(v.pipe(v.boolean(), about('Whether the clock must be synchronised.')), true),
  }),
  backup: section({
    keep: v.optional(v.pipe(integer(1, 1000), about('Number of backups to keep.')), 14),
    reserve_megabytes: v.optional(
      v.pipe(integer(0, 10_000_000), about('Minimum free space after a backup; if less would be left, no backup is made.', { unit: 'MB' })),
      500,
    ),
    journal_hours: v.optional(v.pipe(integer(0, 8760), about('Length of the journal in a backup; 0: none.', { unit: 'h' })), 48),
    copy_to: listOf(
      'Targets to which each backup is copied: a mounted folder (/mnt/usb/backups), an rsync target (user@host:path or rsync://host/module/path) or s3://bucket/prefix.',
    ),
    s3_endpoint: optionalText('Address of an S3-compatible server, such as https://minio.lab.example:9000.', "Amazon's"),
    s3_region: optionalText('Region of the bucket.', 'none'),
    s3_credentials_file: optionalText(
      'File with aws_access_key_id and aws_secret_access_key, in the format of the AWS tools.',
      'the environment',
    ),
  }),
  notify: section({
    min_severity: v.optional(v.pipe(SEVERITY, about('Notify alerts of at least this severity.')), 'WARNING'),
    failed_jobs: v.optional(v.pipe(v.boolean(), about('Notify when a job fails, and when it succeeds again.')), true),
    group_seconds: v.optional(
      v.pipe(integer(0, 3600), about('Group the updates within this time into one notification.', { unit: 's' })),
      30,
    ),
    repeat_hours: v.optional(
      v.pipe(
        between(0, 8760),
        about('Repeat the notification at this interval while an alert or a failed job is open; 0: never.', { unit: 'h' }),
      ),
      4,
    ),
    quiet_hours: v.optional(
      v.nullable(
        v.pipe(
          v.string(),
          v.regex(CLOCK_RANGE, 'a range of local time such as 22:00-07:00'),
          about('Range of local time in which only quiet_min_severity and above is notified; the rest is notified afterwards.', {
            defaultIs: 'none',
          }),
        ),
      ),
      null,
    ),
    quiet_min_severity: v.optional(v.pipe(SEVERITY, about('Notify alerts of at least this severity even in quiet hours.')), 'CRITICAL'),
    dashboard_url: optionalText(
      'Address of the dashboard as the readers of notifications reach it.',
      'http, the name of this machine and rest.port',
    ),
    webhook: section({
      url: optionalText(
        'URL to which notifications are posted. It can contain a secret: logs and errors show only scheme, host and port, and backups omit it.',
        'none',
        { secret: true },
      ),
      url_file: v.optional(
        v.nullable(
          v.pipe(
            text,
            v.regex(/^(?![a-z][a-z0-9+.-]*:\/\/)/i, 'the path of a file'),
            about('File whose first line is the URL, instead of url. It is read again for each notification.', { defaultIs: 'none' }),
          ),
        ),
        null,
      ),
      token_file: optionalText('File whose content is sent as a bearer token.', 'none'),
      template_file: optionalText('File with a Mustache template of the body.', 'a JSON document'),
      content_type: v.optional(v.pipe(text, about('Content-Type of the body.')), 'application/json'),
      ca_file: optionalText('File with the certificates (PEM) to trust instead of the public authorities.', 'none'),
    }),
    command: optionalText('Program to run for each notification, with the JSON document on its standard input.', 'none'),
    email: section({
      host: optionalText('SMTP server.', 'none: no e-mail'),
      port: v.optional(v.pipe(integer(1, 65_535), about('Port of the SMTP server.')), 587),
      security: v.optional(v.pipe(v.picklist(['starttls', 'tls', 'none']), about('Encryption of the connection.')), 'starttls'),
      user: optionalText('User name for the login.', 'none: no login'),
      password_file: optionalText('File with the password for the login.', 'none'),
      from: optionalText('Sender.', 'edge-health@ and the name of this machine'),
      to: listOf('Recipients.'),
      ca_file: optionalText('File with the certificates (PEM) to trust instead of the public authorities.', 'none'),
    }),
  }),
});
