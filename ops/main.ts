import { resolve } from 'node:path';
import { type RestClient, serviceOf } from '../src/client/rest.ts';
import { localService } from '../src/client/running-service.ts';
import { configPath, dataPath, isUnreadable, loadConfig } from '../src/config/load.ts';
import { formatConfigError } from '../src/config/parse.ts';
import type { Config } from '../src/config/schema.ts';
import { installation } from '../src/core/files/installation.ts';
import { parseArguments } from '../src/core/platform/arguments.ts';
import { createLogger } from '../src/core/platform/log.ts';
import { exitWhenOutputFails, printJson, printLines, printProblem } from '../src/core/platform/output.ts';
import { permissionProblem } from '../src/core/platform/permission.ts';
import { becomeOwnerOf } from '../src/core/platform/privileges.ts';
import { printable } from '../src/core/text.ts';
import { JOBS } from './jobs.ts';
import { diskProblem } from './lib/files.ts';
import { EXIT, type Job, type JobArguments, type JobContext, type Trigger, UsageError } from './lib/job.ts';
import { resolveTimeZone } from './lib/time-zone.ts';
import { runInOwnProcess } from './schedule/manual-run.ts';

/** The longest time that open handles may delay the exit of a finished command. */
const LINGER_MS = 1000;
/** From SIGTERM to a forced exit; systemd waits slightly longer. */
const STOP_TIMEOUT_MS = 18_000;

const COMMON = {
  config: { type: 'string' },
  url: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  trigger: { type: 'string' },
} as const;

const TRIGGERS: readonly Trigger[] = ['schedule', 'catch_up', 'manual'];

const COMMANDS: Readonly<Record<string, () => Promise<Job>>> = {
  ...JOBS,
  restore_backup: async () => (await import('./restore_backup.ts')).restoreBackup,
  list: async () => (await import('./list.ts')).list,
  notify: async () => (await import('./notify.ts')).notify,
  run: async () => (await import('./scheduler.ts')).scheduler,
};

async function overview(): Promise<string> {
  const lines: string[] = [];
  for (const [name, load] of Object.entries(COMMANDS)) lines.push(`  ${name.padEnd(24)}${(await load()).summary}`);
  return `Maintenance jobs. The scheduler (edge-health-ops.service) runs them; each can also be run manually.

Usage: edge-health ops NAME [OPTIONS]

${lines.join('\n')}

Each has --help. Nagios-compatible exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN or wrong usage.
`;
}

function helpOf({ help, summary, usage }: Job): string {
  return `${summary}.

Usage: edge-health ops ${usage}

${help === '' ? '' : `${help}\n`}  --config FILE   configuration; default: the one the service uses
  --url URL       address of the service, which receives the token; default: the service of this machine that runs
                  with this configuration, over its Unix socket
  --json          one JSON document instead of text

Nagios-compatible exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN or wrong usage.
`;
}

function restOf(name: string, config: Config, url: string | null, file: string): RestClient {
  if (url !== null && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`--url is "${url}"; allowed: an address such as http://robot-7:5000`);
  const base = url ?? localService(file, process.env);
  try {
    return serviceOf(config.rest, base);
  } catch (error) {
    const denied = permissionProblem(error, `ops ${name}`);
    if (denied !== null) throw new UsageError(`rest.token_file cannot be read: ${denied}`);
    // Without the token, the service refuses requests that need it. Everything else works, such as restoring a backup on a new machine.
    printProblem(`rest.token_file cannot be read: ${(error as Error).message}`);
    return serviceOf({ ...config.rest, token_file: null }, base);
  }
}

function contextOf(command: Job, { options }: JobArguments, signal: AbortSignal): JobContext {
  const text = (name: string): string | null => (options[name] as string | undefined) ?? null;
  const file = resolve(configPath(text('config')));
  const loaded = loadConfig(file);
  if (isUnreadable(loaded))
    throw new UsageError(
      `permission denied: ${file}; run: sudo edge-health ops ${command.name}, or as a member of its group (edge-health on an appliance)`,
    );
  if (!loaded.ok) throw new UsageError(`the configuration has errors:\n${loaded.errors.map(formatConfigError).join('\n')}`);
  const { config } = loaded;
  const zoneProblem = resolveTimeZone(process.env);
  // The jobs that a scheduler starts have its TZ, which was resolved.
  if (zoneProblem !== null && config.ops.timezone === null) printProblem(zoneProblem);
  const installed = installation();
  const dataFolder = dataPath(config, file, process.env, installed);
  process.umask(0o027); // Same as in the units: files in the data folder are not readable by others.
  becomeOwnerOf(dataFolder, process.env);
  const trigger = TRIGGERS.find((known) => known === (text('trigger') ?? 'manual'));
  if (!trigger) throw new UsageError(`--trigger is "${text('trigger')}"; allowed: ${TRIGGERS.join(', ')}`);
  return {
    config,
    configFile: file,
    dataFolder,
    version: installed.version,
    rest: restOf(command.name, config, text('url'), file),
    environment: process.env,
    trigger,
    signal,
    nowMs: Date.now,
    log: createLogger(process.stderr, config.log.level).log,
    progress: (line) => {
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${printable(line)}`);
    },
  };
}

async function main([name, ...rest]: readonly string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(await overview());
    return name === undefined ? EXIT.UNKNOWN : EXIT.OK;
  }
  let dataFolder: string | null = null;
  try {
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!load) throw new UsageError(`unknown command "${name}"; allowed: ${Object.keys(COMMANDS).join(', ')}`);
    const command = await load();
    const refused = (reason: string): Error => new UsageError(`${reason}; see: edge-health ops ${command.name} --help`);
    const arguments_ = parseArguments(rest, { ...COMMON, ...command.options }, command.positionals, refused);
    if (arguments_.options['help']) {
      process.stdout.write(helpOf(command));
      return EXIT.OK;
    }
    const stopping = new AbortController();
    const stop = (signal: string): void => {
      stopping.abort(new Error(`received ${signal}`));
      setTimeout(() => process.exit(EXIT.UNKNOWN), STOP_TIMEOUT_MS).unref();
    };
    // process.once is not enough: npm forwards a signal that the terminal has already sent.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(signal));
    const context = contextOf(command, arguments_, stopping.signal);
    dataFolder = context.dataFolder;
    const outcome = await runInOwnProcess(command, context, arguments_);
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    if (arguments_.options['json']) printJson(outcome.document, 2);
    else printLines(outcome.lines);
    return outcome.exitCode ?? EXIT[outcome.status];
  } catch (error) {
    const { message, stack } = error as Error;
    const permission = permissionProblem(error, `ops ${name}`);
    const disk = permission === null && dataFolder !== null && !(error instanceof UsageError) ? diskProblem(error, dataFolder) : null;
    printProblem(`edge-health ops: ${error instanceof UsageError ? message : (permission ?? disk ?? stack ?? message)}`);
    return disk === null ? EXIT.UNKNOWN : EXIT.CRITICAL;
  }
}

exitWhenOutputFails();
main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
  // A hanging handle must not keep a finished process alive. Pending output is flushed first.
  setTimeout(() => process.exit(), LINGER_MS).unref();
});
