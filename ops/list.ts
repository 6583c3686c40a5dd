import { accessSync, constants } from 'node:fs';
import { isoUtc } from '../src/core/time.ts';
import type { OpsDocument } from '../src/http/api/ops-schema.ts';
import type { Job, JobResult } from './lib/job.ts';
import { hasFailed, JOB_NAMES, type JobRecord, newRecord, withRun } from './schedule/job-record.ts';
import { LocalClock } from './schedule/local-clock.ts';
import { leftRuns } from './schedule/manual-run.ts';
import { isRunning, readState } from './schedule/state.ts';

export const list: Job = {
  name: 'list',
  summary: 'Show the scheduled jobs: when they ran last, how that went, when they run next',
  usage: 'list [OPTIONS]',
  help: `Reads the scheduler's state in the data folder: it works whether the service runs or not.
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
    const time = timeFormat(config.ops.timezone, now);
    const { notifications } = document;
    const hasFailures =
      notifications?.alerts === 'unreachable' || jobs.some(({ last, schedule }) => schedule !== 'off' && last !== null && hasFailed(last));
    return {
      status: !runs ? 'UNKNOWN' : hasFailures ? 'WARNING' : 'OK',
      lines: [
        ...headLines(document, runs, time),
        ...notificationLines(notifications, time),
        '',
        ...table(jobs, time),
        ...failureLines(jobs),
      ],
      document: { ...document, jobs },
    };
  },
};

/** Why the state cannot be read, and what to do; null: it can be, or there is none. */
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

/** Without a running scheduler the schedules come from the configuration, and no run is next. */
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

function headLines({ scheduler }: OpsDocument, runs: boolean, time: TimeFormat): string[] {
  if (runs) return [`OK        the scheduler runs since ${time(scheduler.started)}`];
  const seen = scheduler.state === 'never' ? 'none has run on this data folder' : `the last beat was ${time(scheduler.beat)}`;
  return [
    `UNKNOWN   no scheduler runs: ${seen}`,
    '          start it: sudo systemctl enable --now edge-health-ops (in a checkout: npm run ops); its log: journalctl -u edge-health-ops',
  ];
}

/** Nothing while alerts come by the event stream, or notifications are off. */
function notificationLines(state: OpsDocument['notifications'], time: TimeFormat): string[] {
  if (!state || state.alerts === 'stream') return [];
  const since = time(state.since);
  return state.alerts === 'polling'
    ? [`OK        notifications poll the alerts since ${since}, the event stream is not available: ${state.problem}`]
    : [`WARNING   no alerts reach notifications since ${since}: ${state.problem}`];
}

type TimeFormat = (iso: string | null) => string;

/** `12:05` in local time, with the date where it is not today's. */
function timeFormat(timezone: string | null, nowMs: number): TimeFormat {
  const clock = new LocalClock(timezone);
  const today = clock.text(isoUtc(nowMs)).slice(0, 10);
  return (iso) => (iso === null ? '-' : clock.text(iso).replace(`${today} `, ''));
}

function duration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

const HEADINGS = ['job', 'schedule', 'last run', 'took', 'outcome', 'by', 'next run', 'runs', 'failed', 'missed', 'skipped'];

function table(jobs: readonly JobRecord[], time: TimeFormat): string[] {
  const rows = jobs.map(({ failures, last, missed, name, next, overlaps, running_since, runs, schedule }) => [
    name,
    schedule,
    time(last?.started ?? null),
    last ? duration(last.duration_seconds) : '-',
    last?.status ?? '-',
    last?.trigger ?? '-',
    running_since === null ? time(next) : `runs since ${time(running_since)}`,
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
