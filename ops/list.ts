import { accessSync, constants } from 'node:fs';
import type { OpsDocument } from '../src/client/documents.ts';
import type { Config } from '../src/config/schema.ts';
import { alignedRows } from '../src/core/platform/output.ts';
import { formatDuration } from '../src/core/time/duration.ts';
import { isoUtc } from '../src/core/time/time.ts';
import { JOB_NAMES, type JobName } from './jobs.ts';
import type { Job } from './lib/job.ts';
import { type JobRecord, newRecord, withRun } from './schedule/job-records.ts';
import { LocalClock } from './schedule/local-time.ts';
import { leftRuns } from './schedule/manual-run.ts';
import { isRunning, readState } from './schedule/state.ts';

export const list: Job = {
  name: 'list',
  summary: 'Show the scheduled jobs with their last outcome and their next run',
  usage: 'list [OPTIONS]',
  help: `Reads the scheduler's state in the data folder: it works whether the service runs or not.
Exit code 0 while a scheduler runs and no job failed last, 1 while one failed or alerts do not reach notifications, 3 while no scheduler runs.
`,
  options: {},
  positionals: 0,
  run: async ({ config, dataFolder, nowMs }) => {
    const hidden = hiddenFrom(dataFolder);
    if (hidden !== null) return { status: 'UNKNOWN', lines: [`UNKNOWN   ${hidden}`], document: { error: hidden } };
    const state = readState(dataFolder);
    const runs = isRunning(state, nowMs());
    const document = withLeftRuns(runs ? state.document : withoutScheduler(state.document, config.ops), dataFolder);
    const { jobs, notifications } = document;
    const isWarning = notifications?.alerts === 'unreachable' || jobs.some(({ last, schedule }) => last?.failed && schedule !== 'off');

    const clock = new LocalClock(config.ops.timezone);
    const today = clock.text(isoUtc(nowMs())).slice(0, 11);
    const time = (iso: string | null): string => (iso === null ? '-' : clock.text(iso).replace(today, ''));
    return {
      status: !runs ? 'UNKNOWN' : isWarning ? 'WARNING' : 'OK',
      lines: [...headLines(document, time), '', ...table(jobs, time), ...jobs.flatMap(detailLines)],
      document,
    };
  },
};

/** Why the state cannot be read, and what to do; null if it is readable or does not exist. */
function hiddenFrom(dataFolder: string): string | null {
  try {
    accessSync(dataFolder, constants.R_OK | constants.X_OK);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
      ? `permission denied: ${dataFolder}; run: sudo edge-health ops list, or as a member of its group (edge-health on an appliance)`
      : null;
  }
}

/** Without a running scheduler, the schedules come from the configuration, and no next run is shown. */
function withoutScheduler({ jobs, scheduler }: OpsDocument, ops: Config['ops']): OpsDocument {
  const recordOf = (name: JobName): JobRecord => jobs.find((job) => job.name === name) ?? newRecord(name, ops[name]);
  return {
    scheduler: { ...scheduler, state: scheduler.state === 'never' ? 'never' : 'stopped' },
    jobs: JOB_NAMES.map((name) => ({ ...recordOf(name), schedule: ops[name], next: null, running_since: null })),
  };
}

/** Adds the manual runs that no scheduler has loaded yet. */
function withLeftRuns(document: OpsDocument, dataFolder: string): OpsDocument {
  const left = [...leftRuns(dataFolder).values()];
  const jobs = document.jobs.map((job) => left.reduce((record, one) => (one?.name === job.name ? withRun(record, one.run) : record), job));
  return { ...document, jobs };
}

/** Omits the date of a time that is today. */
type TimeFormat = (iso: string | null) => string;

function headLines({ notifications, scheduler }: OpsDocument, time: TimeFormat): string[] {
  if (scheduler.state !== 'running') {
    const seen = scheduler.state === 'never' ? 'none has run on this data folder' : `the last beat was ${time(scheduler.beat)}`;
    return [
      `UNKNOWN   no scheduler runs: ${seen}`,
      '          start it: sudo systemctl enable --now edge-health-ops (in a checkout: npm run ops); its log: journalctl -u edge-health-ops',
    ];
  }
  const running = `OK        the scheduler has been running since ${time(scheduler.started)}`;
  if (!notifications || notifications.alerts === 'stream') return [running];
  const { alerts, problem, since } = notifications;
  return alerts === 'polling'
    ? [running, `OK        notifications poll the alerts since ${time(since)}, the event stream is not available: ${problem}`]
    : [running, `WARNING   no alerts reach notifications since ${time(since)}: ${problem}`];
}

const took = (seconds: number): string => (seconds < 10 ? `${seconds.toFixed(1)} s` : formatDuration(seconds));

const HEADINGS = ['job', 'schedule', 'last run', 'took', 'outcome', 'by', 'next run', 'runs', 'failed', 'missed', 'skipped'];

function table(jobs: readonly JobRecord[], time: TimeFormat): string[] {
  const rows = jobs.map(({ failures, last, missed, name, next, overlaps, running_since, runs, schedule }) => [
    name,
    schedule,
    time(last?.started ?? null),
    last ? took(last.duration_seconds) : '-',
    last?.status ?? '-',
    last?.trigger ?? '-',
    running_since === null ? time(next) : `runs since ${time(running_since)}`,
    ...[runs, failures, missed, overlaps].map(String),
  ]);
  return alignedRows([HEADINGS, ...rows]);
}

/** The output of a last run that failed, or that found something serious. */
function detailLines({ last, name }: JobRecord): string[] {
  if (last === null || last.status === 'OK' || last.status === 'WARNING') return [];
  const what = last.failed ? `failed last (exit code ${last.exit_code}):` : 'did its work and found:';
  return ['', `${last.status.padEnd(10)}${name} ${what}`, ...last.lines.map((line) => `  ${line}`)];
}
