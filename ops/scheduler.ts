import { once } from 'node:events';
import { systemClocks } from '../src/core/platform/clocks.ts';
import { createLogger } from '../src/core/platform/log.ts';
import { releaseProgramPagesHourly } from '../src/core/platform/program-pages.ts';
import type { Job } from './lib/job.ts';
import { createNotifier } from './notify/notifier.ts';
import { jobRunner } from './schedule/execution.ts';
import { lockScheduler } from './schedule/job-lock.ts';
import { JobScheduler } from './schedule/job-scheduler.ts';
import { takeRuns } from './schedule/manual-run.ts';
import { beatSeconds, connectServiceManager, statusLine, watchdogPing } from './schedule/service-status.ts';
import { reloadSettings, type Settings } from './schedule/settings.ts';
import { StateFiles } from './schedule/state.ts';

export const scheduler: Job = {
  name: 'run',
  summary: 'Run the scheduler until SIGTERM or Ctrl-C',
  usage: 'run [OPTIONS]',
  help: `Runs the jobs of ops.* in the configuration on schedule, and sends notifications of alerts and failed jobs. Only one scheduler can use
a data folder: a second one exits with 3. SIGHUP reloads the configuration; SIGTERM and SIGINT stop it, running jobs within 10 s.
`,
  options: {},
  positionals: 0,
  run: async (context, { options }) => {
    process.title = 'edge-health-ops'; // The name in systemctl status and top; otherwise it would be the runtime's.
    const { config, configFile, dataFolder, environment, rest, signal, version } = context;
    const { log, setLevel } = createLogger(process.stderr, config.log.level);
    const lock = lockScheduler(context, log);
    if (typeof lock === 'string') return { status: lock, lines: [], document: { status: lock } };

    const url = (options['url'] as string | undefined) ?? null;
    let settings: Settings = { config, rest };
    const notifier = createNotifier({ ...context, log, onState: (state) => jobs.setNotifications(state) });
    const systemd = connectServiceManager(environment, log);
    const ping = watchdogPing(systemd);
    // Calls cron.schedule for each job, without overlap and in the configured time zone, and catches up on missed runs.
    const jobs = new JobScheduler({
      config: config.ops,
      clocks: systemClocks(),
      log,
      runner: jobRunner({ ...context, log }, url, () => settings),
      state: new StateFiles(dataFolder, environment, log),
      takeRuns: () => takeRuns(dataFolder, log),
      onRun: (name, run) => notifier.jobEnded(name, run),
      onBeat: (document) => ping(statusLine(document, settings.config.ops.timezone)),
      beatSeconds: beatSeconds(environment),
    });
    const reload = (): void => {
      const reloaded = reloadSettings(settings, { configFile, environment, log, url });
      if (!reloaded) return;
      settings = reloaded;
      setLevel(settings.config.log.level);
      jobs.reload(settings.config.ops);
      notifier.reload(settings.config, settings.rest);
      log('notice', 'configuration reloaded: schedules, timeouts, notifications', { file: configFile });
    };

    jobs.start();
    notifier.start();
    process.on('SIGHUP', reload);
    log('notice', `the scheduler of edge-health ${version} is running`, { config: configFile, data: dataFolder });
    const stopReleasing = releaseProgramPagesHourly();
    if (!signal.aborted) await once(signal, 'abort');
    stopReleasing();
    log('notice', `${(signal.reason as Error).message}, shutting down`);
    systemd?.notify('STOPPING=1\nSTATUS=stopping: waiting for jobs to end');
    await jobs.stop();
    await notifier.stop();
    process.off('SIGHUP', reload);
    lock.release();
    return { status: 'OK', lines: [], document: { scheduler: 'ended' } };
  },
};
