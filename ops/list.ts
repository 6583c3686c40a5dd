import { accessSync, constants } from 'node:fs';
import { isoUtc } from '../src/core/time.ts';
import type { OpsDocument } from '../src/http/api/ops-schema.ts';
import type { Job, JobResult } from './lib/job.ts';
import { leftRuns } from './schedule/inbox.ts';
import { hasFailed, JOB_NAMES, type JobRecord, newRecord, withRun } from './schedule/jobs.ts';
import { isRunning, readState } from './schedule/state.ts';
import { dayAt, type Zone, zoneOf } from './schedule/zone.ts';

export const list: Job = {
  name: 'list',
  summary: 'Show the scheduled jobs: when they ran last, how that went, when they run next',
  usage: 'list [OPTIONS]',
  help: `Reads what the scheduler left in the data folder: it works whether the service runs or not.
Exit code 0 while a scheduler runs and no job failed last, 1 while one failed or alerts do not reach notifications, 3 while no scheduler runs.
`,
  options: {},
  positionals: 0,
  run: async ({ config, dataFolder, nowMs }): Promise<JobResult> => {
    const hidden = hiddenFrom(dataFolder);
    if (hidden !== null) return { status: 'UNKNOWN', lines: [`UNKNOWN   ${hidden}`], document: { error: hidden } };
    const now = nowMs();
    const state = readState(dataFolder);
    const runs = isRunning(state, now);
    const document = shown(state.document, runs, config.ops);
    const jobs = withLeftRuns(document.jobs, dataFolder);
    const zone = zoneOf(config.ops.timezone);
    const { notifications } = document;
    const hasFailures =
      notifications?.alerts === 'unreachable' || jobs.some(({ last, schedule }) => schedule !== 'off' && last !== null && hasFailed(last));
    return {
      status: !runs ? 'UNKNOWN' : hasFailures ? 'WARNING' : 'OK',
      lines: [
        ...headLines(document, runs, zone, now),
        ...notificationLines(notifications, zone, now),
        '',
        ...table(jobs, zone, now),
        ...failureLines(jobs),
      ],
      document: { ...document, jobs },
    };
  },
};

/** Why the state cannot be seen, and what to do; null: it can, or there is none. */
function hiddenFrom(dataFolder: string): string | null {
  try {
    accessSync(dataFolder, constants.R_OK | constants.X_OK);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
      ? `no permission for ${dataFolder}; run: sudo edge-health ops list, or as a member of its group (edge-health on an appliance)`
      : null;
  }
}

/** Where nobody runs, what the configuration says now counts, and nothing comes next. */
function shown(document: OpsDocument, runs: boolean, ops: Readonly<Record<(typeof JOB_NAMES)[number], string>>): OpsDocument {
  if (runs) return document;
  const { scheduler } = document;
  return {
    scheduler: { ...scheduler, state: scheduler.state === 'never' ? 'never' : 'stopped' },
    jobs: JOB_NAMES.map((name) => {
      const record = document.jobs.find((job) => job.name === name) ?? newRecord(name, ops[name]);
      return { ...record, schedule: ops[name], next: null, running_since: null };
    }),
  };
}

function withLeftRuns(jobs: readonly JobRecord[], dataFolder: string): JobRecord[] {
  const left = [...leftRuns(dataFolder).values()];
  return jobs.map((job) => left.reduce((record, one) => (one?.name === job.name ? withRun(record, one.run) : record), job));
}

function headLines({ scheduler }: OpsDocument, runs: boolean, zone: Zone, nowMs: number): string[] {
  if (runs) return [`OK        the scheduler runs since ${localTime(zone, scheduler.started, nowMs)}`];
  const seen =
    scheduler.state === 'never' ? 'none has run with this data folder' : `the last beat was ${localTime(zone, scheduler.beat, nowMs)}`;
  return [
    `UNKNOWN   no scheduler runs: ${seen}`,
    '          start it: sudo systemctl enable --now edge-health-ops (in a checkout: npm run ops); its log: journalctl -u edge-health-ops',
  ];
}

/** Nothing while alerts come by the event stream, or notifications are off. */
function notificationLines(state: OpsDocument['notifications'], zone: Zone, nowMs: number): string[] {
  if (!state || state.alerts === 'stream') return [];
  const since = localTime(zone, state.since, nowMs);
  return state.alerts === 'polling'
    ? [`OK        notifications poll the alerts since ${since}, the event stream is not available: ${state.problem}`]
    : [`WARNING   no alerts reach notifications since ${since}: ${state.problem}`];
}

/** `12:05`, with the day where it is another one than today. */
function localTime(zone: Zone, iso: string | null, nowMs: number): string {
  if (iso === null) return '-';
  const ms = Date.parse(iso);
  const text = isoUtc(ms + zone.offsetMs(ms));
  return dayAt(zone, ms) === dayAt(zone, nowMs) ? text.slice(11, 16) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

function duration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

const HEADINGS = ['job', 'schedule', 'last run', 'took', 'outcome', 'by', 'next run', 'runs', 'failed', 'missed', 'skipped'];

function table(jobs: readonly JobRecord[], zone: Zone, nowMs: number): string[] {
  const rows = jobs.map(({ failures, last, missed, name, next, overlaps, running_since, runs, schedule }) => [
    name,
    schedule,
    localTime(zone, last?.started ?? null, nowMs),
    last ? duration(last.duration_seconds) : '-',
    last?.status ?? '-',
    last?.trigger ?? '-',
    running_since === null ? localTime(zone, next, nowMs) : `runs since ${localTime(zone, running_since, nowMs)}`,
    ...[runs, failures, missed, overlaps].map(String),
  ]);
  const widths = HEADINGS.map((heading, column) =>
    Math.max(...[heading, ...rows.map((row) => row[column] as string)].map(({ length }) => length)),
  );
  return [HEADINGS, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] as number))
      .join('  ')
      .trimEnd(),
  );
}

function failureLines(jobs: readonly JobRecord[]): string[] {
  return jobs.flatMap(({ last, name }) => {
    if (!last || !hasFailed(last)) return [];
    return ['', `${last.status.padEnd(10)}${name} failed last (exit code ${last.exit_code}):`, ...last.lines.map((line) => `  ${line}`)];
  });
}
