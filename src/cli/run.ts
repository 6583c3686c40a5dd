import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAMS } from '../app/programs.ts';
import { Service } from '../app/service.ts';
import { productVersion } from '../app/version.ts';
import { configPath, loadConfig } from '../config/load.ts';
import { formatConfigError } from '../config/parse.ts';
import type { Config } from '../config/schema.ts';
import { systemClocks } from '../system/clocks.ts';
import { createLogger, type Logger } from '../system/log.ts';
import type { Command } from './command.ts';
import { EXIT } from './exit-codes.ts';

export const run: Command = {
  summary: 'Run the monitor until SIGTERM or Ctrl-C',
  usage: 'run [--config FILE]',
  help: `  --config FILE   configuration; otherwise EDGE_HEALTH_CONFIG, /etc/edge-health/edge_health_config.yaml,
                  or config/edge_health_config.yaml of the checkout
  --proc DIR      read DIR instead of /proc (a recorded tree)
  --sys DIR       read DIR instead of /sys

SIGHUP reloads thresholds, alert timing and the log level. SIGTERM and SIGINT end the service.
Exit codes: 0 ended as asked, 1 failed, 64 wrong usage, 75 port or data folder in use, 78 configuration invalid.`,
  options: { config: { type: 'string' }, proc: { type: 'string' }, sys: { type: 'string' } },
  positionals: 0,
  run: async ({ options }) => {
    const file = configPath((options['config'] as string | undefined) ?? null, process.env, fileURLToPath(PROGRAMS.config));
    const loaded = loadConfig(file);
    const logger = createLogger(process.stderr, loaded.ok ? loaded.config.log.level : 'info');
    if (!loaded.ok) {
      for (const error of loaded.errors) logger.log('error', formatConfigError(error));
      logger.log('error', 'not started: the configuration has errors', { errors: loaded.errors.length, file });
      return EXIT.config;
    }
    const { config } = loaded;
    const signals = new Signals();
    let service: Service;
    try {
      service = new Service({
        config,
        configFile: resolve(file),
        dataPath: dataPath(config, process.env),
        version: productVersion(),
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
    signals.onReload = () => reload(service, file, logger);
    try {
      const { port } = await service.start();
      const host = config.rest.host === null || config.rest.host === '0.0.0.0' ? 'localhost' : config.rest.host;
      const at = `http://${host.includes(':') ? `[${host}]` : host}:${port}/`;
      logger.log('notice', `edge-health ${productVersion()} is running; dashboard: ${at}`, {
        config: file,
        data: dataPath(config, process.env),
      });
    } catch (error) {
      return failed(error as NodeJS.ErrnoException, config, logger);
    }
    const signal = await signals.ended;
    logger.log('notice', `ending on ${signal}`);
    await service.stop();
    return EXIT.ok;
  },
};

/** The configured folder, else systemd's state directory, else ./data. */
function dataPath(config: Config, environment: NodeJS.ProcessEnv): string {
  const state = environment['STATE_DIRECTORY']?.split(':')[0];
  return resolve(config.storage.path ?? state ?? 'data');
}

function failed(error: NodeJS.ErrnoException, config: Config, { log }: Logger): number {
  if (error.code === 'EADDRINUSE') {
    log('error', `port ${config.rest.port} is in use; stop the other program or set another rest.port`);
    return EXIT.inUse;
  }
  if (error.code === 'EACCES' || error.code === 'EADDRNOTAVAIL') {
    log('error', `cannot listen on ${config.rest.host ?? 'all addresses'}, port ${config.rest.port}: ${error.message}`);
    return EXIT.config;
  }
  log('error', error.message);
  return error.name === 'DataFolderInUse' ? EXIT.inUse : EXIT.failure;
}

/** A file with errors leaves everything as it is, and says why. */
function reload(service: Service, file: string, logger: Logger): void {
  const loaded = loadConfig(file);
  if (loaded.ok) {
    service.reload(loaded.config);
    logger.setLevel(loaded.config.log.level);
    logger.log('notice', 'configuration reloaded: thresholds, alert timing and log level', { file });
    return;
  }
  const lines = loaded.errors.map(formatConfigError);
  for (const line of lines) logger.log('error', line);
  logger.log('error', 'not reloaded: the running configuration stays in force', { errors: lines.length });
  service.reloadFailed(lines.join('; '));
}

/** SIGTERM and SIGINT end; the second of them (npm passes on what the terminal sent already) changes nothing. */
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
