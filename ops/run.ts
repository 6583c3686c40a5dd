import { fileURLToPath } from 'node:url';
import { serviceOf } from '../src/client/rest.ts';
import { loadConfig } from '../src/config/load.ts';
import { formatConfigError } from '../src/config/parse.ts';
import { printable } from '../src/core/text.ts';
import { PROGRAMS } from '../src/installation/programs.ts';
import { systemClocks } from '../src/system/clocks.ts';
import { prepareDataFolder } from '../src/system/data-folder.ts';
import { createLogger } from '../src/system/log.ts';
import { serviceManager, watchdogSeconds } from '../src/system/notify.ts';
import { findService } from '../src/system/running-service.ts';
import { diskProblem } from './lib/disk-problem.ts';
import type { Job, JobArguments, JobContext, JobResult } from './lib/job.ts';
import { createNotifier, type NotifierState } from './notify/notifier.ts';
import { Announcer, pingEveryMs, statusLine } from './schedule/announce.ts';
import { liveFolder } from './schedule/folders.ts';
import { takeRuns } from './schedule/inbox.ts';
import { type Held, lockNamed } from './schedule/job-lock.ts';
import { HEAVY, JOB_NAMES, type JobName } from './schedule/jobs.ts';
import { asChild, inProcess, type Runner } from './schedule/runners.ts';
import { Scheduler } from './schedule/scheduler.ts';
import { StateFiles } from './schedule/state.ts';
import { zoneOf } from './schedule/zone.ts';

/** From SIGTERM to SIGKILL for a job's processes, and until a job is given up; systemd waits a little longer. */
const CHILD_GRACE_SECONDS = 6;
const GRACE_SECONDS = 10;
/** Just after the start, or waking up, the service and the network come up. */
const MAKE_UP_AFTER_SECONDS = 10;

/** Loaded when they run first. */
const LIGHT = {
  health_check: async () => (await import('./health_check.ts')).healthCheck,
  collect_metrics: async () => (await import('./collect_metrics.ts')).collectMetrics,
  collect_alerts: async () => (await import('./collect_alerts.ts')).collectAlerts,
} as const;

const options = (context: JobContext, given: JobArguments) => {
  const url = (given.options['url'] as string | undefined) ?? null;
  return { url, more: ['--config', context.configFile, ...(url === null ? [] : ['--url', url])] };
};

export const run: Job = {
  name: 'run',
  summary: 'Run the scheduler until SIGTERM or Ctrl-C',
  usage: 'run [OPTIONS]',
  help: `Runs the jobs of ops.* in the configuration at their times, and tells of alerts and failed jobs. One scheduler a data folder: a second
one ends at once with exit code 3. SIGHUP reads the configuration again; SIGTERM and SIGINT end it, running jobs within 10 s.
`,
  options: {},
  positionals: 0,
  run: async (context, given): Promise<JobResult> => {
    process.title = 'edge-health-ops'; // What systemctl status and top call it; else it would be the runtime's name.
    const { log, setLevel } = createLogger(process.stderr, context.config.log.level);
    const { dataFolder } = context;
    const lock = takeSchedulerLock(context, log);
    if (typeof lock === 'string') return { status: lock, lines: [], document: { status: lock } };
    const { more, url } = options(context, given);
    let config = context.config;
    const rest = () => serviceOf(config.rest, url, () => findService(context.configFile, context.environment)?.url ?? null);
    const light = inProcess(LIGHT, () => ({ ...context, config, log, rest: rest(), progress: () => undefined }));
    const heavy = asChild({
      command: [process.execPath, ...process.execArgv.filter((option) => option !== '--lite-mode'), fileURLToPath(PROGRAMS.ops)],
      arguments: more,
      environment: context.environment,
      graceSeconds: CHILD_GRACE_SECONDS,
      onLogLine: (line) => process.stderr.write(`${printable(line)}\n`),
    });
    const runners = Object.fromEntries(JOB_NAMES.map((name) => [name, HEAVY.includes(name) ? heavy : light])) as Record<JobName, Runner>;
    const { environment, nowMs } = context;
    let notifications: NotifierState | null = null;
    const notifier = createNotifier({
      ...{ config, rest: context.rest, dataFolder, log, nowMs, environment },
      onState: (state) => {
        notifications = state;
        scheduler.saveLive();
      },
    });
    const scheduler = new Scheduler({
      config: config.ops,
      clocks: systemClocks(),
      log,
      runners,
      state: new StateFiles(dataFolder, liveFolder(dataFolder, environment), log),
      takeRuns: () => takeRuns(dataFolder, log),
      onRun: (name, ended) => notifier.jobEnded(name, ended),
      notifications: () => notifications,
      graceSeconds: GRACE_SECONDS,
      catchUpAfterSeconds: MAKE_UP_AFTER_SECONDS,
    });

    const reload = (): void => {
      const loaded = loadConfig(context.configFile);
      if (!loaded.ok) {
        for (const error of loaded.errors) log('error', formatConfigError(error));
        log('error', 'not reloaded: the running configuration stays in force', { errors: loaded.errors.length });
        return;
      }
      const before = config;
      config = loaded.config;
      setLevel(config.log.level);
      if (config.storage.path !== before.storage.path)
        log('warning', 'storage.path changes with a restart: systemctl restart edge-health-ops');
      scheduler.reload(config.ops);
      notifier.reload(config, restOr(rest, context, log));
      log('notice', 'configuration reloaded: schedules, timeouts, notifications', { file: context.configFile });
    };

    scheduler.start();
    notifier.start();
    const announcer = new Announcer(serviceManager(environment, fileURLToPath(PROGRAMS.sdNotify), log));
    const beats = new Beats(scheduler, pingEveryMs(watchdogSeconds(environment, process.pid)), () =>
      announcer.beat(statusLine(scheduler.document(), zoneOf(config.ops.timezone))),
    );
    beats.begin();
    process.on('SIGHUP', reload);
    log('notice', `the scheduler of edge-health ${context.version} is running`, { config: context.configFile, data: dataFolder });
    await aborted(context.signal);
    log('notice', `${(context.signal.reason as Error).message}, shutting down`);
    announcer.stopping();
    beats.end();
    await scheduler.stop();
    await notifier.stop();
    process.off('SIGHUP', reload);
    lock.release();
    return { status: 'OK', lines: [], document: { scheduler: 'ended' } };
  },
};

/** The lock of the data folder, or with what status to end: UNKNOWN where trying again would change nothing. */
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

/** The service as the new configuration has it; where its token cannot be read, as before. */
function restOr(rest: () => JobContext['rest'], context: JobContext, log: JobContext['log']): JobContext['rest'] {
  try {
    return rest();
  } catch (error) {
    log('error', 'rest.token_file cannot be read', { error: (error as Error).message });
    return context.rest;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The one timer: it obeys the scheduler, and wakes it often enough for the watchdog. */
class Beats {
  readonly #scheduler: Scheduler;
  readonly #atMostMs: number;
  readonly #afterBeat: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(scheduler: Scheduler, atMostMs: number, afterBeat: () => void) {
    this.#scheduler = scheduler;
    this.#atMostMs = atMostMs;
    this.#afterBeat = afterBeat;
  }

  begin(): void {
    this.#scheduler.beat();
    this.#afterBeat();
    this.#timer = setTimeout(() => this.begin(), Math.min(this.#atMostMs, this.#scheduler.nextBeatMilliseconds()));
  }

  end(): void {
    if (this.#timer) clearTimeout(this.#timer);
  }
}
