import * as v from 'valibot';
import { NODE_NAME, NODE_NAME_ALLOWED } from '../core/node-name.ts';
import * as keys from './keys.ts';
import { between, integer, type KeyNotes, schedule, section, text, timeZone } from './keys.ts';

/** `systemctl reload edge-health` also applies all keys of `ops` to the scheduler; jobs read the file when they start. */
const key = <S extends v.GenericSchema>(schema: S, fallback: v.InferInput<S>, description: string, notes?: KeyNotes) =>
  keys.key(schema, fallback, description, { ...notes, reload: true });
const unset = <S extends v.GenericSchema>(schema: S, defaultIs: string, description: string, notes?: KeyNotes) =>
  keys.unset(schema, defaultIs, description, { ...notes, reload: true });

const jobTimeout = (job: string, seconds: number) =>
  key(integer(1, 86_400), seconds, `Timeout of a scheduled ${job} run. After it, the run is stopped and counts as failed.`, { unit: 's' });

const listOf = (description: string) => key(v.pipe(v.array(text), v.maxLength(256)), [], description);

const SEVERITY = v.picklist(['WARNING', 'ERROR', 'CRITICAL']);

const CLOCK_RANGE = /^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/;

/** `ops.*`: the maintenance jobs, their scheduler, and notifications. The service itself reads none of these. */
export const opsSchema = section({
  health_check: schedule('health_check runs', '*/5 * * * *'),
  collect_metrics: schedule('collect_metrics runs', '* * * * *'),
  collect_alerts: schedule('collect_alerts runs', '*/5 * * * *'),
  backup_logs: schedule('backup_logs runs', '0 0 * * *'),
  generate_7day_report: schedule('generate_7day_report runs', 'off'),
  timezone: unset(timeZone, "this machine's", 'Time zone of the schedules and of quiet hours.'),
  catch_up: key(
    v.array(v.picklist(['health_check', 'collect_alerts', 'backup_logs', 'generate_7day_report'])),
    ['backup_logs', 'generate_7day_report'],
    'Jobs to run once as soon as possible if the machine was off or suspended at their scheduled time.',
  ),
  keep_days: key(integer(8, 3650), 90, 'Retention of the files of metrics, alerts and logs.', { unit: 'days' }),
  timeouts: section({
    health_check: jobTimeout('health_check', 60),
    collect_metrics: jobTimeout('collect_metrics', 30),
    collect_alerts: jobTimeout('collect_alerts', 60),
    backup_logs: jobTimeout('backup_logs', 3600),
    generate_7day_report: jobTimeout('generate_7day_report', 600),
  }),
  check: section({
    nodes: key(
      v.pipe(v.array(v.pipe(v.string(), v.regex(NODE_NAME, `node names of ${NODE_NAME_ALLOWED}`))), v.maxLength(256)),
      [],
      'Nodes that must always be on the graph, by the node_name of their statuses. If one leaves the graph, ERROR is raised as well.',
    ),
    node_max_age_seconds: key(integer(1, 86_400), 30, 'Maximum age of the last status of such a node.', { unit: 's' }),
    containers: listOf('Names of Docker or Podman containers that must be running.'),
    sample_max_age_seconds: key(integer(1, 86_400), 10, 'Maximum age of the last sample of this machine.', { unit: 's' }),
    min_free_megabytes: key(
      integer(0, 10_000_000),
      2000,
      'Minimum free space on every file system of disk.paths and of the data folder; a tenth of a small one is enough.',
      {
        unit: 'MB',
      },
    ),
    backup_max_age_hours: key(integer(1, 8760), 26, 'Maximum age of the last backup.', { unit: 'h' }),
    clock: key(v.boolean(), true, 'Whether the clock must be synchronised.'),
  }),
  backup: section({
    keep: key(integer(1, 1000), 14, 'Number of backups to keep.'),
    reserve_megabytes: key(
      integer(0, 10_000_000),
      500,
      'Minimum free space after a backup, a tenth of a small disk; if less would be left, no backup is made.',
      {
        unit: 'MB',
      },
    ),
    journal_hours: key(integer(0, 8760), 48, 'Length of the journal in a backup; 0: none.', { unit: 'h' }),
    copy_to: listOf(
      'Targets to which each backup is copied: a mounted folder (/mnt/usb/backups), an rsync target (user@host:path or rsync://host/module/path) or s3://bucket/prefix.',
    ),
    s3_endpoint: unset(text, "Amazon's", 'Address of an S3-compatible server, such as https://minio.lab.example:9000.'),
    s3_region: unset(text, 'none', 'Region of the bucket.'),
    s3_credentials_file: unset(
      text,
      'the environment',
      'File with aws_access_key_id and aws_secret_access_key, in the format of the AWS tools.',
    ),
  }),
  notify: section({
    min_severity: key(SEVERITY, 'WARNING', 'Notify alerts of at least this severity.'),
    failed_jobs: key(v.boolean(), true, 'Notify when a job fails, and when it succeeds again.'),
    group_seconds: key(integer(0, 3600), 30, 'Group the updates within this time into one notification.', { unit: 's' }),
    repeat_hours: key(between(0, 8760), 4, 'Repeat the notification at this interval while an alert or a failed job is open; 0: never.', {
      unit: 'h',
    }),
    quiet_hours: unset(
      v.pipe(v.string(), v.regex(CLOCK_RANGE, 'a range of local time such as 22:00-07:00')),
      'none',
      'Range of local time in which only quiet_min_severity and above is notified; the rest is notified afterwards.',
    ),
    quiet_min_severity: key(SEVERITY, 'CRITICAL', 'Notify alerts of at least this severity even in quiet hours.'),
    dashboard_url: unset(
      text,
      'http, the name of this machine and rest.port',
      'Address of the dashboard as the readers of notifications reach it.',
    ),
    webhook: section({
      url: unset(
        text,
        'none',
        'URL to which notifications are posted. It can contain a secret: logs and errors show only scheme, host and port, and backups omit it.',
        { secret: true },
      ),
      url_file: unset(
        v.pipe(text, v.regex(/^(?![a-z][a-z0-9+.-]*:\/\/)/i, 'the path of a file')),
        'none',
        'File whose first line is the URL, instead of url. It is read again for each notification.',
      ),
      token_file: unset(text, 'none', 'File whose content is sent as a bearer token.'),
      template_file: unset(text, 'a JSON document', 'File with a Mustache template of the body.'),
      content_type: key(text, 'application/json', 'Content-Type of the body.'),
      ca_file: unset(text, 'none', 'File with the certificates (PEM) to trust instead of the public authorities.'),
    }),
    command: unset(text, 'none', 'Program to run for each notification, with the JSON document on its standard input.'),
    email: section({
      host: unset(text, 'none: no e-mail', 'SMTP server.'),
      port: key(integer(1, 65_535), 587, 'Port of the SMTP server.'),
      security: key(v.picklist(['starttls', 'tls', 'none']), 'starttls', 'Encryption of the connection.'),
      user: unset(text, 'none: no login', 'User name for the login.'),
      password_file: unset(text, 'none', 'File with the password for the login.'),
      from: unset(text, 'edge-health@ and the name of this machine', 'Sender.'),
      to: listOf('Recipients.'),
      ca_file: unset(text, 'none', 'File with the certificates (PEM) to trust instead of the public authorities.'),
    }),
  }),
});
