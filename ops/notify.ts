import { isoUtc } from '../src/core/time.ts';
import { readIfThere } from '../src/system/atomic-file.ts';
import { type Job, type JobArguments, type JobContext, type JobResult, type JobStatus, worst } from './lib/job.ts';
import { type Message, messageId, testMessage } from './notify/message.ts';
import { openAsNotified } from './notify/plan.ts';
import { CHANNELS, type ChannelName, type Queue } from './notify/queue.ts';
import type { Sender } from './notify/sender.ts';
import { type Settings, settingsOf } from './notify/settings.ts';
import { parseState, type State, stateFile } from './notify/state.ts';
import { bodyOf } from './notify/template.ts';

const HELP = `Shows the notification channels, what is pending in each, and the last deliveries. With --test, sends a test through every
channel, or the one named, at once, without queue and quiet hours. Nothing is written.

  --test          send a test and show the result
  --dry-run       with --test: show what would be sent
`;

const NOT_CONFIGURED =
  'no notifications are configured: set ops.notify.webhook.url or url_file, ops.notify.command or ops.notify.email.host in the configuration file';

async function run(context: JobContext, { options, positionals: [channel] }: JobArguments): Promise<JobResult> {
  const settings = await settingsOf(context.config, context);
  if (!options['test']) {
    if (channel === undefined && !options['dry-run']) return overview(context, settings);
    return unknown('usage: a channel and --dry-run go with --test; see: edge-health ops notify --help');
  }
  if (channel !== undefined && !CHANNELS.some((name) => name === channel))
    return unknown(`${channel}: there is no such channel; channels: ${CHANNELS.join(', ')}`);
  return test(context, settings, (channel as ChannelName | undefined) ?? null, options['dry-run'] === true);
}

function unknown(error: string): JobResult {
  return { status: 'UNKNOWN', lines: [`UNKNOWN  ${error}`], document: { status: 'UNKNOWN', error } };
}

async function test(context: JobContext, settings: Settings, only: ChannelName | null, isDry: boolean): Promise<JobResult> {
  const { dashboard, host, problems } = settings;
  const senders = settings.senders.filter(({ name }) => only === null || name === only);
  const nowMs = context.nowMs();
  const message = testMessage({ id: messageId(host, nowMs, 'test'), nowMs, host, dashboard });
  const results = await Promise.all(senders.map((sender) => (isDry ? shown(context, sender, message) : sent(context, sender, message))));
  const missing = only === null ? NOT_CONFIGURED : `${only}: this channel is not configured; see docs/configuration.md, ops.notify`;
  const lines = [
    ...configurationLines(settings),
    ...results.flatMap((result) => result.lines),
    ...(senders.length === 0 ? [`UNKNOWN  ${missing}`] : []),
  ];
  const status = worst([
    ...results.map((result) => result.status),
    ...(problems.length > 0 ? (['CRITICAL'] as const) : []),
    ...(senders.length === 0 ? (['UNKNOWN'] as const) : []),
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

interface TestResult {
  readonly channel: ChannelName;
  readonly target: string;
  readonly status: JobStatus;
  readonly detail: string;
  readonly body: string | null;
  readonly lines: readonly string[];
}

async function sent({ signal }: JobContext, { name, send, target }: Sender, message: Message): Promise<TestResult> {
  const { detail, kind } = await send(message, signal);
  const [status, outcome] = kind === 'delivered' ? (['OK', 'delivered'] as const) : (['CRITICAL', 'not delivered'] as const);
  return { channel: name, target, status, detail, body: null, lines: [`${status}  ${name}: ${outcome} to ${target}: ${detail}`] };
}

async function shown({ config }: JobContext, { name, target }: Sender, message: Message): Promise<TestResult> {
  try {
    const body = name === 'webhook' ? await bodyOf(config.ops.notify.webhook, message) : JSON.stringify(message);
    const lines = [`OK  ${name}: ${target} would be sent`, ...body.split('\n')];
    return { channel: name, target, status: 'OK', detail: 'not sent', body, lines };
  } catch (error) {
    const detail = (error as Error).message;
    return { channel: name, target, status: 'CRITICAL', detail, body: null, lines: [`CRITICAL  ${name}: ${detail}`] };
  }
}

async function overview({ config, dataFolder }: JobContext, settings: Settings): Promise<JobResult> {
  const { problems, senders, warnings } = settings;
  let state: State;
  try {
    state = parseState((await readIfThere(stateFile(dataFolder))) ?? '');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return unknown(
      `${stateFile(dataFolder)} cannot be read (${code ?? message})${code === 'EACCES' ? "; run it as root or as the service's user" : ''}`,
    );
  }
  const channels = senders.map((sender) => channelDocument(sender, state.queues[sender.name]));
  const status = worst([
    ...channels.map((channel) => channel.status),
    ...(warnings.length > 0 ? (['WARNING'] as const) : []),
    ...(problems.length > 0 ? (['CRITICAL'] as const) : []),
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
    ...(senders.length === 0 && problems.length === 0 ? [`OK  ${NOT_CONFIGURED}`] : []),
    ...channels.flatMap(linesOf),
    ...(senders.length === 0 ? [] : [`Rules: ${rules}.`, `Open: ${open.map(({ key, level }) => `${key} ${level}`).join(', ') || 'none'}.`]),
  ];
  const document = {
    status,
    configured: senders.length > 0,
    problems,
    warnings,
    channels,
    open: open.map(({ id, level, node, metric, since, source }) => ({ id, source, node, metric, severity: level, since })),
    rules: { min_severity, failed_jobs, group_seconds, repeat_hours, quiet_hours, quiet_min_severity },
  };
  return { status, lines, document };
}

/** A channel in the document of `--json`. */
function channelDocument({ name, target }: Sender, { delivered, droppedInAll, failures, last, lastSuccessMs, waiting }: Queue) {
  return {
    channel: name,
    target,
    status: (failures > 0 ? 'WARNING' : 'OK') as JobStatus,
    pending: waiting.length,
    oldest_pending: waiting[0] ? isoUtc(Math.min(...waiting.map(({ createdMs }) => createdMs))) : null,
    next_attempt: waiting[0] ? isoUtc(Math.min(...waiting.map(({ nextMs }) => nextMs))) : null,
    delivered,
    dropped: droppedInAll,
    failed_attempts: failures,
    last_delivered: lastSuccessMs === null ? null : isoUtc(lastSuccessMs),
    last_attempt: last && { id: last.id, time: isoUtc(last.ms), delivered: last.ok, detail: last.detail },
  };
}

function linesOf(document: ReturnType<typeof channelDocument>): string[] {
  const {
    channel,
    delivered,
    dropped,
    failed_attempts: failed,
    last_attempt: last,
    next_attempt: next,
    pending,
    status,
    target,
  } = document;
  const counts = [`${delivered} delivered`, `${pending} pending`, ...(dropped > 0 ? [`${dropped} dropped`] : [])].join(', ');
  const failures = failed > 0 ? `; ${failed} attempts failed${next === null ? '' : `, next at ${next}`}` : '';
  return [
    `${status}  ${channel}: to ${target}: ${counts}${failures}`,
    last === null ? '    nothing sent yet' : `    last at ${last.time}: ${last.delivered ? 'delivered' : 'not delivered'}, ${last.detail}`,
  ];
}

export const notify: Job = {
  name: 'notify',
  summary: 'Shows notifications: channels, pending ones, last deliveries; sends tests',
  usage: 'notify [--test [webhook|command|email]] [OPTIONS]',
  help: HELP,
  options: { test: { type: 'boolean' }, 'dry-run': { type: 'boolean' } },
  positionals: 1,
  run,
};
