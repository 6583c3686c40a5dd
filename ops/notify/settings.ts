import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Config } from '../../src/config/schema.ts';
import { HOUR_MS } from '../../src/core/time.ts';
import { commandSender } from './command.ts';
import { emailSender } from './email.ts';
import type { Rules } from './plan.ts';
import { quietHours } from './quiet.ts';
import type { Sender } from './sender.ts';
import { addressOf, webhookSender } from './webhook.ts';

export interface Settings {
  readonly host: string;
  readonly dashboard: string;
  readonly rules: Rules;
  readonly senders: readonly Sender[];
  /** What is wrong with the configuration, with what to do. */
  readonly problems: readonly string[];
  /** What works, and should be put right. */
  readonly warnings: readonly string[];
}

export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  readonly version: string;
  readonly nowMs: () => number;
}

/** What a configuration asks for; a channel that cannot work is left out and is a problem. One whose file may be put right stays. */
export async function settingsOf(config: Config, { environment, nowMs, version }: Surroundings): Promise<Settings> {
  const { notify, timezone } = config.ops;
  const host = hostname();
  const problems: string[] = [];
  const senders: Sender[] = [];
  const { url, url_file } = notify.webhook;
  if (url !== null || url_file !== null) {
    const target = await addressOf(notify.webhook).then(
      ({ origin }) => origin,
      ({ message }: Error) => {
        problems.push(message);
        return url_file;
      },
    );
    if (target !== null) senders.push(webhookSender(notify.webhook, target, version, nowMs));
  }
  if (notify.command !== null) senders.push(commandSender(notify.command, environment));
  if (notify.email.host !== null) {
    if (notify.email.to.length > 0) senders.push(emailSender(notify.email, host, version));
    else problems.push('ops.notify.email.to names nobody: no e-mail is sent; list the recipients there');
  }
  return {
    host,
    dashboard: notify.dashboard_url ?? `http://${host}:${config.rest.port}`,
    rules: {
      minSeverity: notify.min_severity,
      failedJobs: notify.failed_jobs,
      groupMs: notify.group_seconds * 1000,
      repeatMs: notify.repeat_hours * HOUR_MS,
      quietUntil: quietUntil(notify.quiet_hours, timezone, problems),
      quietMinSeverity: notify.quiet_min_severity,
    },
    senders,
    problems,
    warnings: await readableByOthers([
      ['ops.notify.webhook.url_file', url_file],
      ['ops.notify.webhook.token_file', notify.webhook.token_file],
      ['ops.notify.email.password_file', notify.email.password_file],
    ]),
  };
}

/** Files of secrets that every user of this machine may read, as far as that can be seen. */
async function readableByOthers(files: readonly (readonly [key: string, file: string | null])[]): Promise<string[]> {
  const found = files.map(async ([key, file]) => {
    const mode =
      file === null
        ? 0
        : await stat(file).then(
            (stats) => stats.mode,
            () => 0,
          );
    return (mode & 0o004) === 0 ? [] : [`${key}: every user may read ${file}; chmod o-r ${file}`];
  });
  return (await Promise.all(found)).flat();
}

function quietUntil(range: string | null, timezone: string | null, problems: string[]): Rules['quietUntil'] {
  try {
    return quietHours(range, timezone);
  } catch {
    problems.push(`ops.timezone: there is no zone ${timezone}; quiet hours are in this machine's; see timedatectl list-timezones`);
    return quietHours(range, null);
  }
}
