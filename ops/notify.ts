import { isoUtc } from '../src/core/time/time.ts';
import { type Job, type JobArguments, type JobContext, type JobResult, type JobStatus, worst } from './lib/job.ts';
import { CHANNEL_NAMES, type Channel } from './notify/channels/channel.ts';
import { bodyOf } from './notify/channels/webhook.ts';
import { type Message, messageId, testMessage } from './notify/message.ts';
import { openAsNotified } from './notify/plan.ts';
import type { Queue } from './notify/queue.ts';
import { type Settings, settingsOf } from './notify/settings.ts';
import { readState, type State, stateFile } from './notify/state.ts';
import { readState as readJobState } from './schedule/state.ts';

const HELP = `Shows the notification channels, what is pending in each, and the last deliveries. With --test, sends a test through every
channel, or the one named, at once, without queue and quiet hours. Nothing is written.

  --test          send a test and show the result
  --dry-run       with --test: show what would be sent
`;

const NOT_CONFIGURED =
  'no notifications are configured: set ops.notify.webhook.url or url_file, ops.notify.command or ops.notify.email.host in the configuration file';

async function run(context: JobContext, { options, positionals: [only] }: JobArguments): Promise<JobResult> {
  const settings = await settingsOf(context.config, context);
  if (options['test']) return test(context, settings, only ?? null, options['dry-run'] === true);
  if (only === undefined && !options['dry-run']) return overview(context, settings);
  return unknown('usage: a channel and --dry-run go with --test; see: edge-health ops notify --help');
}

function unknown(error: string): JobResult {
  return { status: 'UNKNOWN', lines: [`UNKNOWN  ${error}`], document: { status: 'UNKNOWN', error } };
}

async function test(context: JobContext, settings: Settings, only: string | null, isDry: boolean): Promise<JobResult> {
  if (only !== null && !CHANNEL_NAMES.some((name) => name === only))
    return unknown(`${only}: there is no such channel; channels: ${CHANNEL_NAMES.join(', ')}`);
  const { dashboard, host, problems } = settings;
  const channels = settings.channels.filter(({ name }) => only === null || name === only);
  const nowMs = context.nowMs();
  const message = testMessage({ id: messageId(host, nowMs, 'test'), nowMs, host, dashboard });
  const results = await Promise.all(
    channels.map((channel) => (isDry ? shown(context, channel, message) : sent(context, channel, message))),
  );
  const missing =
    only === null ? NOT_CONFIGURED : `${only}: this channel is not configured; set ops.notify.${only} (man edge_health_config)`;
  const lines = [
    ...configurationLines(settings),
    ...results.flatMap((result) => result.lines),
    ...(channels.length === 0 ? [`UNKNOWN  ${missing}`] : []),
  ];
  const status = worst([
    ...results.map((result) => result.status),
    problems.length > 0 ? 'CRITICAL' : 'OK',
    channels.length === 0 ? 'UNKNOWN' : 'OK',
  ]);
  const document = { status, dry_run: isDry, message, problems, channels: results.map(({ lines: _, ...rest }) => rest) };
  return { status, lines, document };
}

function configurationLines({ problems, warnings }: Settings): string[] {
  return [
    ...problems.map((problem) => `CRITICAL  configuration: ${problem}`),
    ...warnings.map((warning) => `WARNING  configuration: ${warning}`),
  ];
}

async function sent({ signal }: JobContext, { name, send, target }: Channel, message: Message) {
  const { detail, kind } = await send(message, signal);
  const status: JobStatus = kind === 'delivered' ? 'OK' : 'CRITICAL';
  const lines = [`${status}  ${name}: ${kind === 'delivered' ? 'delivered' : 'not delivered'} to ${target}: ${detail}`];
  return { channel: name, target, status, detail, body: null, lines };
}

async function shown({ config }: JobContext, { name, target }: Channel, message: Message) {
  try {
    const body = name === 'webhook' ? await bodyOf(config.ops.notify.webhook, message) : JSON.stringify(message);
    const lines = [`OK  ${name}: would be sent to ${target}`, ...body.split('\n')];
    return { channel: name, target, status: 'OK' as const, detail: 'not sent', body, lines };
  } catch (error) {
    const detail = (error as Error).message;
    return { channel: name, target, status: 'CRITICAL' as const, detail, body: null, lines: [`CRITICAL  ${name}: ${detail}`] };
  }
}

async function overview({ config, dataFolder }: JobContext, settings: Settings): Promise<JobResult> {
  const { problems, warnings } = settings;
  let state: State;
  try {
    state = await readState(dataFolder);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const remedy = code === 'EACCES' ? "; run it as root or as the service's user" : '';
    return unknown(`${stateFile(dataFolder)} cannot be read (${code ?? message})${remedy}`);
  }
  const channels = settings.channels.map((channel) => channelDocument(channel, state.queues[channel.name]));
  const isConfigured = channels.length > 0;
  // The state last written by the scheduler: without alerts there is nothing to notify, whatever the state of the channels.
  const link = isConfigured ? readJobState(dataFolder).document.notifications : undefined;
  const unreachable = link?.alerts === 'unreachable' ? link : null;
  const status = worst([
    unreachable === null ? 'OK' : 'WARNING',
    ...channels.map((channel) => channel.status),
    warnings.length > 0 ? 'WARNING' : 'OK',
    problems.length > 0 ? 'CRITICAL' : 'OK',
  ]);
  const { failed_jobs, group_seconds, min_severity, quiet_hours, quiet_min_severity, repeat_hours } = config.ops.notify;
  const rules = [
    `alerts from ${min_severity} on, ${failed_jobs ? 'and failed jobs' : 'no jobs'}; grouped for ${group_seconds} s`,
    repeat_hours === 0 ? 'never repeated' : `repeated after ${repeat_hours} h`,
    quiet_hours === null ? 'no quiet hours' : `quiet from ${quiet_hours.replace('-', ' to ')} below ${quiet_min_severity}`,
  ].join(', ');
  const open = openAsNotified(state.plan);
  const lines = [
    ...configurationLines(settings),
    ...(!isConfigured && problems.length === 0 ? [`OK  ${NOT_CONFIGURED}`] : []),
    ...channels.flatMap(linesOf),
    ...(unreachable === null ? [] : [`WARNING  alerts have not been received since ${unreachable.since}: ${unreachable.problem}`]),
    ...(isConfigured ? [`Rules: ${rules}.`, `Open: ${open.map(({ key, level }) => `${key} ${level}`).join(', ') || 'none'}.`] : []),
  ];
  const document = {
    status,
    configured: isConfigured,
    problems,
    warnings,
    channels,
    open: open.map(({ id, level, node, metric, since, source }) => ({ id, source, node, metric, severity: level, since })),
    rules: { min_severity, failed_jobs, group_seconds, repeat_hours, quiet_hours, quiet_min_severity },
  };
  return { status, lines, document };
}

/** A channel in the document of `--json`. */
function channelDocument({ name, target }: Channel, { delivered, droppedTotal, failures, last, lastSuccessMs, pending }: Queue) {
  const earliest = (times: readonly number[]): string | null => (times.length === 0 ? null : isoUtc(Math.min(...times)));
  return {
    channel: name,
    target,
    status: (failures > 0 ? 'WARNING' : 'OK') as JobStatus,
    pending: pending.length,
    oldest_pending: earliest(pending.map(({ createdMs }) => createdMs)),
    next_attempt: earliest(pending.map(({ nextMs }) => nextMs)),
    delivered,
    dropped: droppedTotal,
    failed_attempts: failures,
    last_delivered: lastSuccessMs === null ? null : isoUtc(lastSuccessMs),
    last_attempt: last && { id: last.id, time: isoUtc(last.ms), delivered: last.ok, detail: last.detail },
  };
}

function linesOf(document: ReturnType<typeof channelDocument>): string[] {
  const { channel, delivered, dropped, failed_attempts, last_attempt: last, next_attempt, pending, status, target } = document;
  const counts = [`${delivered} delivered`, `${pending} pending`, ...(dropped > 0 ? [`${dropped} dropped`] : [])].join(', ');
  const failures =
    failed_attempts > 0 ? `; ${failed_attempts} attempts failed${next_attempt === null ? '' : `, next at ${next_attempt}`}` : '';
  return [
    `${status}  ${channel}: to ${target}: ${counts}${failures}`,
    last === null ? '    nothing sent yet' : `    last at ${last.time}: ${last.delivered ? 'delivered' : 'not delivered'}, ${last.detail}`,
  ];
}

export const notify: Job = {
  name: 'notify',
  summary: 'Show notification channels, pending notifications and last deliveries; send a test',
  usage: 'notify [--test [webhook|command|email]] [OPTIONS]',
  help: HELP,
  options: { test: { type: 'boolean' }, 'dry-run': { type: 'boolean' } },
  positionals: 1,
  run,
};
