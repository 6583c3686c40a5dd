import { fileURLToPath } from 'node:url';
import { serviceOf } from '../src/client/rest.ts';
import { loadConfig } from '../src/config/load.ts';
import { formatConfigError } from '../src/config/parse.ts';
import type { ServiceManager } from '../src/core/supervision.ts';
import { printable } from '../src/core/text.ts';
import type { OpsDocument } from '../src/http/api/ops-schema.ts';
import { PROGRAMS } from '../src/installation/programs.ts';
import { systemClocks } from '../src/system/clocks.ts';
import { prepareDataFolder } from '../src/system/data-folder.ts';
import { createLogger } from '../src/system/log.ts';
import { serviceManager, watchdogSeconds } from '../src/system/notify.ts';
import { findService } from '../src/system/running-service.ts';
import { JOBS } from './jobs.ts';
import { diskProblem } from './lib/disk-problem.ts';
import type { Job, JobContext, JobResult } from './lib/job.ts';
import { createNotifier, type NotifierState } from './notify/notifier.ts';
import { asChild, inProcess, type Runner } from './schedule/execution.ts';
import { type Held, lockNamed } from './schedule/job-lock.ts';
import { HEAVY, JOB_NAMES, type JobName } from './schedule/job-record.ts';
import { JobScheduler } from './schedule/job-scheduler.ts';
import { LocalClock } from './schedule/local-clock.ts';
import { takeRuns } from './schedule/manual-run.ts';
import { liveFolder, StateFiles } from './schedule/state.ts';

/** From SIGTERM to SIGKILL for a job's processes, and until a job is considered hung; systemd waits a little longer. */
const CHILD_GRACE_SECONDS = 6;
const GRACE_SECONDS = 10;
const CATCH_UP_AFTER_SECONDS = 10;
/** Without a watchdog; with one a quarter of its time, so that two pings may come late. */
const BEAT_SECONDS = 15;

export const scheduler: Job = {
  name: 'run',
  summary: 'Run the scheduler until SIGTERM or Ctrl-C',
  usage: 'run [OPTIONS]',
  help: `Runs the jobs of ops.* in the configuration on schedule, and sends notifications of alerts and failed jobs. Only one scheduler can use
a data folder: a second one exits with 3. SIGHUP reloads the configuration; SIGTERM and SIGINT stop it, running jobs within 10 s.
`,
  options: {},
  positionals: 0,
  run: async (context, given): Promise<JobResult> => {
    process.title = 'edge-health-ops'; // The name in systemctl status and top; else it would be the runtime's.
    const { log, setLevel } = createLogger(process.stderr, context.config.log.level);
    const { configFile, dataFolder, environment, nowMs } = context;
    const lock = takeSchedulerLock(context, log);
    if (typeof lock === 'string') return { status: lock, lines: [], document: { status: lock } };
    const url = (given.options['url'] as string | undefined) ?? null;
    let { config, rest } = context;
    let notifications: NotifierState | null = null;
    const onState = (state: NotifierState | null): void => {
      notifications = state;
      jobs.saveLive();
    };
    const notifier = createNotifier({ config, rest, dataFolder, log, nowMs, environment, onState });
    const manager = serviceManager(environment, fileURLToPath(PROGRAMS.sdNotify), log);
    const ping = watchdogPing(manager);
    const jobs = new JobScheduler({
      config: config.ops,
      clocks: systemClocks(),
      log,
      runners: runnersOf({ ...context, log, progress: () => undefined }, url, () => ({ config, rest })),
      state: new StateFiles(dataFolder, liveFolder(dataFolder, environment), log),
      takeRuns: () => takeRuns(dataFolder, log),
      onRun: (name, ended) => notifier.jobEnded(name, ended),
      onBeat: () => ping(statusLine(jobs.document(), config.ops.timezone)),
      notifications: () => notifications,
      beatSeconds: Math.min(BEAT_SECONDS, Math.max(0.05, (watchdogSeconds(environment, process.pid) ?? 60) / 4)),
      graceSeconds: GRACE_SECONDS,
      catchUpAfterSeconds: CATCH_UP_AFTER_SECONDS,
    });

    const reload = (): void => {
      const loaded = loadConfig(configFile);
      if (!loaded.ok) {
        for (const error of loaded.errors) log('error', formatConfigError(error));
        log('error', 'not reloaded: the running configuration stays in force', { errors: loaded.errors.length });
        return;
      }
      if (loaded.config.storage.path !== config.storage.path)
        log('warning', 'storage.path changes with a restart: systemctl restart edge-health-ops');
      config = loaded.config;
      setLevel(config.log.level);
      try {
        rest = serviceOf(config.rest, url, () => findService(configFile, environment)?.url ?? null);
      } catch (error) {
        log('error', 'rest.token_file cannot be read; the former token is used', { error: (error as Error).message });
      }
      jobs.reload(config.ops);
      notifier.reload(config, rest);
      log('notice', 'configuration reloaded: schedules, timeouts, notifications', { file: configFile });
    };

    jobs.start();
    notifier.start();
    process.on('SIGHUP', reload);
    log('notice', `the scheduler of edge-health ${context.version} is running`, { config: configFile, data: dataFolder });
    await aborted(context.signal);
    log('notice', `${(context.signal.reason as Error).message}, shutting down`);
    manager?.notify('STOPPING=1\nSTATUS=stopping: waiting for jobs to end');
    await jobs.stop();
    await notifier.stop();
    process.off('SIGHUP', reload);
    lock.release();
    return { status: 'OK', lines: [], document: { scheduler: 'ended' } };
  },
};

/** Light jobs run in this process: a process each minute would cost five times the CPU of everything else. */
function runnersOf(
  context: JobContext,
  url: string | null,
  present: () => Pick<JobContext, 'config' | 'rest'>,
): Readonly<Record<JobName, Runner>> {
  const light = inProcess(
    (name) => JOBS[name](),
    () => ({ ...context, ...present() }),
  );
  const heavy = asChild({
    command: [process.execPath, ...process.execArgv.filter((option) => option !== '--lite-mode'), fileURLToPath(PROGRAMS.ops)],
    arguments: ['--config', context.configFile, ...(url === null ? [] : ['--url', url])],
    environment: context.environment,
    graceSeconds: CHILD_GRACE_SECONDS,
    onLogLine: (line) => process.stderr.write(`${printable(line)}\n`),
  });
  return Object.fromEntries(JOB_NAMES.map((name) => [name, HEAVY.includes(name) ? heavy : light])) as Record<JobName, Runner>;
}

/** The lock of the data folder, or the status to exit with: UNKNOWN where trying again would change nothing. */
function takeSchedulerLock({ dataFolder, environment }: JobContext, log: JobContext['log']): Held | 'CRITICAL' | 'UNKNOWN' {
  const problem = prepareDataFolder(dataFolder, environment);
  if (problem !== null) {
    const byHand = environment['INVOCATION_ID'] === undefined ? '; or run: sudo edge-health ops run' : ''; // systemd sets it for units.
    log('error', `storage.path: ${problem.text}${byHand}`);
    return 'UNKNOWN';
  }
  try {
    const lock = lockNamed(dataFolder, 'scheduler');
    if (lock) return lock;
    log('error', `another scheduler uses the data folder ${dataFolder}; stop that one, or set another storage.path`);
    return 'UNKNOWN';
  } catch (error) {
    log('error', diskProblem(error, dataFolder) ?? (error as Error).message);
    return 'CRITICAL';
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Each call must follow a heartbeat in which every job that was due was started: it pings the watchdog. */
export function watchdogPing(manager: ServiceManager | null): (status: string) => void {
  let isReady = false;
  let sent = '';
  return (status) => {
    const state = isReady ? ['WATCHDOG=1'] : ['READY=1', 'WATCHDOG=1'];
    if (status !== sent) state.push(`STATUS=${printable(status)}`);
    isReady = true;
    sent = status;
    manager?.notify(state.join('\n'));
  };
}

/** One line for `systemctl status`. */
export function statusLine({ jobs }: OpsDocument, timezone: string | null): string {
  const clock = new LocalClock(timezone);
  const time = (iso: string): string => clock.text(iso).slice(11);
  const scheduled = jobs.filter(({ schedule }) => schedule !== 'off');
  const running = scheduled.filter(({ running_since }) => running_since !== null).map(({ name }) => name);
  const last = scheduled.flatMap(({ last, name }) => (last ? [{ ...last, name }] : [])).sort((a, b) => (a.started < b.started ? 1 : -1))[0];
  const next = scheduled.flatMap(({ name, next }) => (next ? [{ name, next }] : [])).sort((a, b) => (a.next < b.next ? -1 : 1))[0];
  return [
    `${scheduled.length} ${scheduled.length === 1 ? 'job' : 'jobs'}`,
    ...(running.length > 0 ? [`running: ${running.join(', ')}`] : []),
    ...(last ? [`last: ${last.name} ${last.status} ${time(last.started)}`] : []),
    ...(next ? [`next: ${next.name} ${time(next.next)}`] : []),
  ].join('; ');
}
