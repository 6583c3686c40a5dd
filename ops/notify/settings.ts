import { hostname } from 'node:os';
import type { Config } from '../../src/config/schema.ts';
import { HOUR_MS } from '../../src/core/time.ts';
import { commandSender } from './command.ts';
import { emailSender } from './email.ts';
import type { Rules } from './plan.ts';
import { quietHours } from './quiet.ts';
import type { Sender } from './sender.ts';
import { webhookSender } from './webhook.ts';

export interface Settings {
  readonly host: string;
  readonly dashboard: string;
  readonly rules: Rules;
  readonly senders: readonly Sender[];
  /** What is wrong with the configuration, with what to do. */
  readonly problems: readonly string[];
}

export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  readonly version: string;
  readonly nowMs: () => number;
}

/** What a configuration asks for; a channel that cannot work is left out and is a problem. */
export function settingsOf(config: Config, { environment, nowMs, version }: Surroundings): Settings {
  const { notify, timezone } = config.ops;
  const host = hostname();
  const problems: string[] = [];
  const senders: Sender[] = [];
  if (notify.webhook.url !== null) {
    const protocol = URL.parse(notify.webhook.url)?.protocol ?? '';
    if (protocol === 'http:' || protocol === 'https:') senders.push(webhookSender(notify.webhook, version, nowMs));
    else problems.push('ops.notify.webhook.url is no address; it must begin with http:// or https://');
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
  };
}

function quietUntil(range: string | null, timezone: string | null, problems: string[]): Rules['quietUntil'] {
  try {
    return quietHours(range, timezone);
  } catch {
    problems.push(`ops.timezone: there is no zone ${timezone}; quiet hours are in this machine's; see timedatectl list-timezones`);
    return quietHours(range, null);
  }
}
