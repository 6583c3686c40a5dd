import { isoUtc } from '../src/core/time.ts';
import { readIfThere } from '../src/system/atomic-file.ts';
import type { Job, JobArguments, JobContext, JobResult, JobStatus } from './lib/job.ts';
import { worst } from './lib/job.ts';
import { journalFile } from './notify/journal.ts';
import { type Memory, memoryOf } from './notify/memory.ts';
import { testMessage } from './notify/message.ts';
import { openAsTold } from './notify/plan.ts';
import { CHANNELS, type ChannelName, type Queue } from './notify/queue.ts';
import type { Sender } from './notify/sender.ts';
import { type Settings, settingsOf } from './notify/settings.ts';
import { bodyOf } from './notify/webhook.ts';

const HELP = `Shows the channels of notifications, what waits for each, and how the last deliveries went. With --test each channel, or
the one named, is sent a test at once, past queue and quiet hours. Nothing is written.

  --test          send a test, and say what happened
  --dry-run       with --test: show what would be sent
`;

const NOTHING =
  'no notifications are configured: set ops.notify.webhook.url or url_file, ops.notify.command or ops.notify.email.host in the configuration file';

async function run(context: JobContext, { options, positionals: [channel] }: JobArguments): Promise<JobResult> {
  const settings = await settingsOf(context.config, context);
  if (!options['test']) {
    if (channel === undefined && !options['dry-run']) return overview(context, settings);
    const lines = ['UNKNOWN  usage: a channel and --dry-run go with --test; see: edge-health ops notify --help'];
    return { status: 'UNKNOWN', lines, document: { status: 'UNKNOWN', error: lines[0] } };
  }
  if (channel !== undefined && !CHANNELS.includes(channel as ChannelName)) {
    const lines = [`UNKNOWN  ${channel}: there is no such channel; channels: ${CHANNELS.join(', ')}`];
    return { status: 'UNKNOWN', lines, document: { status: 'UNKNOWN', error: lines[0] } };
  }
  return test(context, settings, (channel as ChannelName | undefined) ?? null, options['dry-run'] === true);
}

async function test(context: JobContext, settings: Settings, only: ChannelName | null, isDry: boolean): Promise<JobResult> {
  const { dashboard, host, problems, warnings } = settings;
  const senders = settings.senders.filter(({ name }) => only === null || name === only);
  const nowMs = context.nowMs();
  const message = testMessage({ id: `${host.replaceAll(/[^A-Za-z0-9.-]/g, '-')}-${nowMs.toString(36)}-test`, nowMs, host, dashboard });
  const results = await Promise.all(senders.map((sender) => tried(context, sender, message, isDry)));
  const lines = [
    ...problems.map((problem) => `CRITICAL  configuration: ${problem}`),
    ...warnings.map((warning) => `WARNING  configuration: ${warning}`),
    ...results.flatMap(({ lines: own }) => own),
    ...(senders.length === 0
      ? [`UNKNOWN  ${only === null ? NOTHING : `${only}: this channel is not configured; see docs/configuration.md, ops.notify`}`]
      : []),
  ];
  const status = worst([
    ...results.map((result) => result.status),
    ...(problems.length > 0 ? (['CRITICAL'] as const) : []),
    ...(senders.length === 0 ? (['UNKNOWN'] as const) : []),
  ]);
  const document = { status, dry_run: isDry, message, problems, channels: results.map(({ lines: _, ...rest }) => rest) };
  return { status, lines, document };
}

async function tried(
  { config, signal }: JobContext,
  sender: Sender,
  message: ReturnType<typeof testMessage>,
  isDry: boolean,
): Promise<{ channel: ChannelName; target: string; status: JobStatus; detail: string; body: string | null; lines: string[] }> {
  const { name, target } = sender;
  if (!isDry) {
    const { detail, kind } = await sender.send(message, signal);
    const status = kind === 'delivered' ? 'OK' : 'CRITICAL';
    const lines = [`${status}  ${name}: ${kind === 'delivered' ? 'delivered to' : 'not delivered to'} ${target}: ${detail}`];
    return { channel: name, target, status, detail, body: null, lines };
  }
  try {
    const body = name === 'webhook' ? await bodyOf(config.ops.notify.webhook, message) : JSON.stringify(message);
    return {
      channel: name,
      target,
      status: 'OK',
      detail: 'not sent',
      body,
      lines: [`OK  ${name}: ${target} would be sent`, ...body.split('\n')],
    };
  } catch (error) {
    const detail = (error as Error).message;
    return { channel: name, target, status: 'CRITICAL', detail, body: null, lines: [`CRITICAL  ${name}: ${detail}`] };
  }
}

/** A channel as `--json` has it. */
function channelDocument({ name, target }: Sender, queue: Queue) {
  const { delivered, failures, givenUpInAll, last, lastSuccessMs, waiting } = queue;
  return {
    channel: name,
    target,
    status: (failures > 0 ? 'WARNING' : 'OK') as JobStatus,
    waiting: waiting.length,
    oldest_waiting: waiting[0] ? isoUtc(Math.min(...waiting.map(({ createdMs }) => createdMs))) : null,
    next_attempt: waiting[0] ? isoUtc(Math.min(...waiting.map(({ nextMs }) => nextMs))) : null,
    delivered,
    given_up: givenUpInAll,
    failed_attempts: failures,
    last_delivered: lastSuccessMs === null ? null : isoUtc(lastSuccessMs),
    last_attempt: last && { id: last.id, time: isoUtc(last.ms), delivered: last.ok, detail: last.detail },
  };
}

function linesOf({
  channel,
  delivered,
  failed_attempts: failed,
  given_up: lost,
  last_attempt: last,
  next_attempt: next,
  status,
  target,
  waiting,
}: ReturnType<typeof channelDocument>): string[] {
  const counts = [`${delivered} delivered`, `${waiting} waiting`, ...(lost > 0 ? [`${lost} given up`] : [])].join(', ');
  const trouble = failed > 0 ? `; ${failed} attempts failed${next === null ? '' : `, next at ${next}`}` : '';
  return [
    `${status}  ${channel}: to ${target}: ${counts}${trouble}`,
    last === null
      ? '    nothing was sent yet'
      : `    last at ${last.time}: ${last.delivered ? 'delivered' : 'not delivered'}, ${last.detail}`,
  ];
}

async function overview({ config, dataFolder }: JobContext, { problems, senders, warnings }: Settings): Promise<JobResult> {
  let memory: Memory;
  try {
    ({ memory } = memoryOf((await readIfThere(journalFile(dataFolder))) ?? ''));
  } catch (error) {
    const detail = `${journalFile(dataFolder)} cannot be read (${(error as NodeJS.ErrnoException).code}); run it as root or as the service's user`;
    return { status: 'UNKNOWN', lines: [`UNKNOWN  ${detail}`], document: { status: 'UNKNOWN', error: detail } };
  }
  const channels = senders.map((sender) => channelDocument(sender, memory.queues[sender.name]));
  const status = worst([
    ...channels.map((channel) => channel.status),
    ...(warnings.length > 0 ? (['WARNING'] as const) : []),
    ...(problems.length > 0 ? (['CRITICAL'] as const) : []),
  ]);
  const { notify } = config.ops;
  const open = openAsTold(memory.plan);
  const quiet =
    notify.quiet_hours === null
      ? 'no quiet hours'
      : `quiet from ${notify.quiet_hours.replace('-', ' to ')} but for ${notify.quiet_min_severity}`;
  const rules = `alerts from ${notify.min_severity} on, ${notify.failed_jobs ? 'and failed jobs' : 'no jobs'}; gathered for ${notify.group_seconds} s, repeated ${notify.repeat_hours === 0 ? 'never' : `after ${notify.repeat_hours} h`}, ${quiet}`;
  const lines = [
    ...problems.map((problem) => `CRITICAL  configuration: ${problem}`),
    ...warnings.map((warning) => `WARNING  configuration: ${warning}`),
    ...(senders.length === 0 && problems.length === 0 ? [`OK  ${NOTHING}`] : []),
    ...channels.flatMap(linesOf),
    ...(senders.length === 0
      ? []
      : [
          `Told: ${rules}.`,
          `Told as open: ${open.length === 0 ? 'nothing' : open.map(({ key, level }) => `${key} ${level}`).join(', ')}.`,
        ]),
  ];
  const document = {
    status,
    configured: senders.length > 0,
    problems,
    warnings,
    channels,
    open: open.map(({ id, level, node, metric, since, source }) => ({ id, source, node, metric, severity: level, since })),
    rules: {
      min_severity: notify.min_severity,
      failed_jobs: notify.failed_jobs,
      group_seconds: notify.group_seconds,
      repeat_hours: notify.repeat_hours,
      quiet_hours: notify.quiet_hours,
      quiet_min_severity: notify.quiet_min_severity,
    },
  };
  return { status, lines, document };
}

export const notify: Job = {
  name: 'notify',
  summary: 'Shows notifications: channels, what waits, last deliveries; sends tests',
  usage: 'notify [--test [webhook|command|email]] [OPTIONS]',
  help: HELP,
  options: { test: { type: 'boolean' }, 'dry-run': { type: 'boolean' } },
  positionals: 1,
  run,
};
