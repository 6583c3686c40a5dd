import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Config } from '../../src/config/schema.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { commandSender } from './command.ts';
import { emailSender } from './email.ts';
import type { Rules } from './plan.ts';
import type { Sender } from './sender.ts';
import { addressOf, webhookSender } from './webhook.ts';

export interface Settings {
  readonly host: string;
  readonly dashboard: string;
  readonly rules: Rules;
  readonly senders: readonly Sender[];
  /** Mistakes in the configuration, with what to do. */
  readonly problems: readonly string[];
  /** What works but should be corrected. */
  readonly warnings: readonly string[];
}

export interface Environment {
  readonly environment: NodeJS.ProcessEnv;
  readonly version: string;
  readonly nowMs: () => number;
}

/** The settings of a configuration. A channel that cannot work is a problem and is left out, unless only its file is wrong: that may be corrected. */
export async function settingsOf(config: Config, { environment, nowMs, version }: Environment): Promise<Settings> {
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
    else problems.push('ops.notify.email.to is empty: no e-mail is sent; list the recipients there');
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

/** Warnings about files of secrets that every user of this machine can read. */
async function readableByOthers(files: readonly (readonly [key: string, file: string | null])[]): Promise<string[]> {
  const warnings: string[] = [];
  for (const [key, file] of files) {
    const { mode } = (file === null ? null : await stat(file).catch(() => null)) ?? { mode: 0 };
    if ((mode & 0o004) !== 0) warnings.push(`${key}: every user may read ${file}; chmod o-r ${file}`);
  }
  return warnings;
}

function quietUntil(range: string | null, timezone: string | null, problems: string[]): Rules['quietUntil'] {
  try {
    return quietHours(range, timezone);
  } catch {
    problems.push(`ops.timezone: there is no zone ${timezone}; quiet hours are in this machine's; see timedatectl list-timezones`);
    return quietHours(range, null);
  }
}

const STEP_MS = 15 * MINUTE_MS;
const DAY_MINUTES = 1440;

/**
 * Returns a function of a time (ms since the epoch): the end of the quiet hours that it is in, or null. `range` is local time of the
 * zone, such as `22:00-07:00`, also over midnight; null, or equal ends: never quiet. Each step asks for the local time again, so days of
 * 23 and 25 hours and times that do not exist need no rule. Throws RangeError for an unknown zone.
 */
export function quietHours(range: string | null, timezone: string | null): (ms: number) => number | null {
  const [from, to] = (range ?? '').split('-').map(minutesOf);
  if (from === undefined || to === undefined || from === to) return () => null;
  const format = new Intl.DateTimeFormat('en-GB', {
    hourCycle: 'h23',
    hour: '2-digit',
    minute: '2-digit',
    ...(timezone === null ? {} : { timeZone: timezone }),
  });
  const isQuiet = (ms: number): boolean => {
    const minutes = minutesOf(format.format(ms));
    return from < to ? minutes >= from && minutes < to : minutes >= from || minutes < to;
  };
  let known = { fromMs: 0, untilMs: 0 };
  return (ms) => {
    if (ms >= known.fromMs && ms < known.untilMs) return known.untilMs;
    if (!isQuiet(ms)) return null;
    known = { fromMs: ms, untilMs: endOf(isQuiet, ms) };
    return known.untilMs;
  };
}

function minutesOf(text: string): number {
  const [hours = 0, minutes = 0] = text.split(':').map(Number);
  return (hours * 60 + minutes) % DAY_MINUTES;
}

/** The first minute after quiet hours. */
function endOf(isQuiet: (ms: number) => boolean, ms: number): number {
  let end = ms - (ms % MINUTE_MS) + MINUTE_MS;
  const last = ms + 2 * DAY_MS;
  while (isQuiet(end) && end < last) end += STEP_MS;
  while (end - MINUTE_MS > ms && !isQuiet(end - MINUTE_MS)) end -= MINUTE_MS;
  return end;
}
