import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Config } from '../../src/config/schema.ts';
import { HOUR_MS } from '../../src/core/time/time.ts';
import type { JobContext } from '../lib/job.ts';
import type { Channel } from './channels/channel.ts';
import { commandChannel } from './channels/command.ts';
import { emailChannel } from './channels/email.ts';
import { addressOf, webhookChannel } from './channels/webhook.ts';
import type { Rules } from './plan.ts';
import { quietHours } from './quiet-hours.ts';

export interface Settings {
  readonly host: string;
  readonly dashboard: string;
  readonly rules: Rules;
  readonly channels: readonly Channel[];
  /** Mistakes in the configuration, with the remedy. */
  readonly problems: readonly string[];
  /** Settings that work but should be corrected. */
  readonly warnings: readonly string[];
}

/**
 * The settings of a configuration. An unusable channel is reported as a problem and left out, unless only its file is wrong, because the
 * file may be corrected later.
 */
export async function settingsOf(
  { ops, rest }: Config,
  { environment, nowMs, version }: Pick<JobContext, 'environment' | 'nowMs' | 'version'>,
): Promise<Settings> {
  const { command, email, webhook, ...notify } = ops.notify;
  const host = hostname();
  const problems: string[] = [];
  const channels: Channel[] = [];
  if (webhook.url !== null || webhook.url_file !== null) {
    let target = webhook.url_file;
    try {
      target = (await addressOf(webhook)).origin;
    } catch (error) {
      problems.push((error as Error).message);
    }
    if (target !== null) channels.push(webhookChannel(webhook, target, version, nowMs));
  }
  if (command !== null) channels.push(commandChannel(command, environment));
  if (email.host !== null) {
    if (email.to.length > 0) channels.push(emailChannel(email, host, version));
    else problems.push('ops.notify.email.to is empty: no e-mail is sent; list the recipients there');
  }
  return {
    host,
    dashboard: notify.dashboard_url ?? `http://${host}:${rest.port}`,
    rules: {
      minSeverity: notify.min_severity,
      failedJobs: notify.failed_jobs,
      groupMs: notify.group_seconds * 1000,
      repeatMs: notify.repeat_hours * HOUR_MS,
      quietUntil: quietHours(notify.quiet_hours, ops.timezone),
      quietMinSeverity: notify.quiet_min_severity,
    },
    channels,
    problems,
    warnings: await readableByOthers({
      'ops.notify.webhook.url_file': webhook.url_file,
      'ops.notify.webhook.token_file': webhook.token_file,
      'ops.notify.email.password_file': email.password_file,
    }),
  };
}

/** Warnings about secret files that every user of this machine can read. */
async function readableByOthers(files: Readonly<Record<string, string | null>>): Promise<string[]> {
  const warnings: string[] = [];
  for (const [key, file] of Object.entries(files)) {
    const found = file === null ? null : await stat(file).catch(() => null);
    if (found && (found.mode & 0o004) !== 0) warnings.push(`${key}: every user may read ${file}; chmod o-r ${file}`);
  }
  return warnings;
}
