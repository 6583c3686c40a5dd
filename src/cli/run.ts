import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Service } from '../app/service.ts';
import { UnusableToken } from '../app/token.ts';
import {
  announceService,
  REST_SOCKET,
  type ReloadOutcome,
  runningFolder,
  withdrawService,
  writeReloadOutcome,
} from '../client/running-service.ts';
import { configPath, dataPath, loadConfig } from '../config/load.ts';
import { formatConfigError } from '../config/parse.ts';
import { reloaded } from '../config/reload.ts';
import type { Config } from '../config/schema.ts';
import { isWorkingDirectoryDeleted, prepareDataFolder, WORKING_DIRECTORY_DELETED } from '../core/files/data-folder.ts';
import { installation } from '../core/files/installation.ts';
import { PROGRAMS } from '../core/files/programs.ts';
import { rosPaths } from '../core/files/ros-paths.ts';
import { MAX_NODE_NAME } from '../core/node-name.ts';
import { systemClocks } from '../core/platform/clocks.ts';
import { createLogger, type Logger } from '../core/platform/log.ts';
import { serviceManager, watchdogSeconds } from '../core/platform/notify.ts';
import { releaseProgramPagesHourly } from '../core/platform/program-pages.ts';
import { retryUntilDone } from '../core/platform/retry.ts';
import type { LogLevel } from '../core/ports.ts';
import { graphNames, monitorName } from '../ros/names.ts';
import { environmentFor, findRos } from '../ros/rclnodejs/prepared.ts';
import { UsageError } from './arguments.ts';
import { type Command, EXIT } from './command.ts';

/** Time for a start in progress to complete after SIGTERM, before the process is killed. */
const START_GRACE_MS = 5000;
const EXIT_GRACE_MS = 5000;

export const run: Command = {
  summary: 'Run the monitor until SIGTERM or Ctrl-C',
  usage: 'run [--config FILE] [--ros-args …]',
  help: `  --config FILE   configuration; default: EDGE_HEALTH_CONFIG in the environment or in /etc/default/edge-health,
                  /etc/edge-health/edge_health_config.yaml, or config/edge_health_config.yaml of the checkout
  --proc DIR      read DIR instead of /proc (a recorded tree)
  --sys DIR       read DIR instead of /sys
  --ros-args …    ROS 2 arguments: -r __node:=NAME, -r __ns:=/NAMESPACE, -r FROM:=TO, --log-level LEVEL

SIGHUP reloads the keys marked "reload" in edge_health_config(5), and the token. SIGTERM and SIGINT stop the service.
If rest.port cannot be used, the service runs without it and retries.
Exit codes: 0 stopped by a signal, 1 failed, 64 wrong usage, 75 data folder in use, 78 configuration invalid.`,
  options: { config: { type: 'string' }, proc: { type: 'string' }, sys: { type: 'string' } },
  positionals: 0,
  takesRosArguments: true,
  run: async ({ options, ros }) => {
    if (isWorkingDirectoryDeleted()) {
      process.stderr.write(`edge-health: ${WORKING_DIRECTORY_DELETED}\n`);
      return EXIT.config;
    }
    const file = configPath((options['config'] as string | undefined) ?? null);
    const loaded = loadConfig(file);
    const logger = createLogger(process.stderr, loaded.ok ? loaded.config.log.level : 'info');
    if (!loaded.ok) {
      for (const error of loaded.errors) logger.log('error', formatConfigError(error));
      logger.log('error', 'not started: the configuration has errors', { errors: loaded.errors.length, file });
      return EXIT.config;
    }
    const { config } = loaded;
    const names = graphNames({ node_name: config.node_name, namespace: config.ros.namespace }, ros?.rules ?? []);
    const nodeName = monitorName(names);
    if (nodeName.length > MAX_NODE_NAME)
      throw new UsageError(`namespace and node name are ${nodeName.length} characters with the / between them; at most ${MAX_NODE_NAME}`);
    process.title = 'edge-health'; // The name in systemctl status and top, instead of the runtime's.
    if (ros?.logLevel) logger.setLevel(ros.logLevel);
    for (const note of ros?.notes ?? []) logger.log('warning', note);
    const installed = installation();
    const { isPackage, standardAction, version } = installed;
    const data = dataPath(config, file, process.env, installed);
    restartForRos(config, data, logger);
    const problem = prepareDataFolder(data, process.env);
    if (problem !== null) logger.log('error', `storage.path: ${problem.text}`);
    if (problem?.isMissing) return EXIT.config;
    const folder = runningFolder(file, process.env);
    if (folder === null) logger.log('error', 'no folder for the sockets of this service; commands of this machine need --url');
    const signals = new Signals();
    let service: Service;
    try {
      service = new Service({
        config,
        configFile: resolve(file),
        dataPath: data,
        restSocket: folder && join(folder, REST_SOCKET),
        // The harness of the package always writes below its own data folder.
        reportFolders: [...new Set([data, ...(isPackage ? [installed.dataFolder] : [])])],
        names,
        enclave: ros?.enclave ?? null,
        version,
        isPackage,
        standardAction,
        manager: serviceManager(process.env, fileURLToPath(PROGRAMS.sdNotify), logger.log),
        watchdogSeconds: watchdogSeconds(process.env, process.pid),
        clocks: systemClocks(),
        log: logger.log,
        environment: process.env,
        procRoot: (options['proc'] as string | undefined) ?? '/proc',
        sysRoot: (options['sys'] as string | undefined) ?? '/sys',
      });
    } catch (error) {
      logger.log('error', (error as Error).message);
      return EXIT.config;
    }
    let reloads = 0;
    let writing = Promise.resolve(); // The writes are queued; an outcome that is no longer the last is skipped.
    signals.onReload = () => {
      const outcome = { reloads: ++reloads, ...reload(service, config, file, logger, ros?.logLevel ?? null) };
      writing = writing
        .then(() => (folder !== null && outcome.reloads === reloads ? writeReloadOutcome(folder, outcome) : undefined))
        .catch((error: Error) => logger.log('warning', 'reload result not written', { error: error.message }));
    };
    let hasStarted = false;
    void signals.ended.then((signal) => killUnless(() => hasStarted, signal, logger));
    try {
      const port = (await service.start())?.port;
      hasStarted = true;
      if (folder !== null)
        await retryUntilDone(() => announceService(folder, file), {
          onFailure: ({ message }) => logger.log('error', 'service not announced; commands of this machine need --url', { error: message }),
          onRecovery: () => logger.log('notice', 'service announced'),
        });
      const { host: given } = config.rest;
      const host = given === null || given === '0.0.0.0' || given === '::' ? 'localhost' : given;
      const at = port === undefined ? 'none yet' : `http://${host.includes(':') ? `[${host}]` : host}:${port}/`;
      logger.log('notice', `edge-health ${version} is running; dashboard: ${at}`, {
        config: file,
        data,
      });
    } catch (error) {
      if (folder !== null) await withdrawService(folder);
      logger.log('error', (error as Error).message);
      return (error as Error).name === 'DataFolderInUse' ? EXIT.inUse : EXIT.failure;
    }
    const stopReleasing = releaseProgramPagesHourly();
    const signal = await signals.ended;
    stopReleasing();
    logger.log('notice', `received ${signal}, shutting down`);
    await service.stop();
    if (folder !== null) await withdrawService(folder);
    // A thread that writes the log may hang: on a dead disk, or on a stopped terminal that this user may not open again. process.exit() would
    // wait for it.
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), EXIT_GRACE_MS).unref();
    return EXIT.ok;
  },
};

/**
 * Restarts this program under the same process id if the files prepared for rclnodejs need another library path, because the dynamic linker
 * reads it only when a process starts. Returns if no restart is needed.
 */
function restartForRos({ ros }: Config, data: string, { log }: Logger): void {
  if (ros.transport !== 'auto' && ros.transport !== 'rclnodejs') return;
  const found = findRos(process.env, rosPaths(data));
  const environment = found.state === 'prepared' ? environmentFor(found.prepared, process.env) : null;
  if (!environment || !process.execve) return;
  try {
    process.execve(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], environment);
  } catch (error) {
    log('warning', 'cannot restart with the libraries of edge_health_interfaces', { error: (error as Error).message });
  }
}

/** Kills this process if the start hangs after a signal; process.exit() would wait for the hanging thread. */
function killUnless(hasStarted: () => boolean, signal: string, { log }: Logger): void {
  setTimeout(() => {
    if (hasStarted()) return;
    log('error', `start timed out; killed ${START_GRACE_MS / 1000} s after ${signal}`);
    process.kill(process.pid, 'SIGKILL');
  }, START_GRACE_MS).unref();
}

/** Reloads the configuration; a file with errors changes nothing. `running`: the configuration at the start. `logLevel`: of --ros-args. */
function reload(
  service: Service,
  running: Config,
  file: string,
  logger: Logger,
  logLevel: LogLevel | null,
): Pick<ReloadOutcome, 'problem' | 'restart_needed'> {
  const loaded = loadConfig(file);
  let lines: string[];
  if (loaded.ok) {
    try {
      const next = reloaded(running, loaded.config);
      service.reload(next);
      logger.setLevel(logLevel ?? loaded.config.log.level);
      logger.log('notice', 'configuration reloaded', { file });
      for (const line of next.restartNeeded) logger.log('warning', line);
      return { problem: null, restart_needed: next.restartNeeded };
    } catch (error) {
      if (!(error instanceof UnusableToken)) throw error;
      lines = [error.message];
    }
  } else lines = loaded.errors.map(formatConfigError);
  for (const line of lines) logger.log('error', line);
  logger.log('error', 'not reloaded: the running configuration stays in force', { errors: lines.length });
  service.reloadFailed(lines.join('; '));
  return { problem: lines.join('\n'), restart_needed: [] };
}

/** SIGTERM and SIGINT stop the service. Further ones are ignored, because npm forwards a SIGINT that the terminal has already sent. */
class Signals {
  readonly ended: Promise<string>;
  onReload: () => void = () => {
    // Nothing to reload before the service exists.
  };

  constructor() {
    this.ended = new Promise((resolveSignal) => {
      process.on('SIGTERM', () => resolveSignal('SIGTERM'));
      process.on('SIGINT', () => resolveSignal('SIGINT'));
    });
    process.on('SIGHUP', () => this.onReload());
  }
}
