import { accessSync, constants } from 'node:fs';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { isAbsolute, resolve } from 'node:path';
import { readToken, UnusableToken } from '../app/token.ts';
import { forbiddenFolder, limitsOf, mayUseLowPorts, SCHEDULER_UNIT } from '../client/unit-limits.ts';
import { configPath, dataPath, isUnreadable, loadConfig } from '../config/load.ts';
import { formatConfigError } from '../config/parse.ts';
import type { Config } from '../config/schema.ts';
import { dataFolderProblem } from '../core/files/data-folder.ts';
import { installation } from '../core/files/installation.ts';
import { printJson, printLines, printProblem } from '../core/platform/output.ts';
import { becomeOwnerOf, identity, LOW_PORT_REMEDY } from '../core/platform/privileges.ts';
import { type Command, EXIT } from './command.ts';

export const checkConfig: Command = {
  summary: 'Check a configuration file without starting',
  usage: 'check-config [FILE] [--json]',
  help: `  FILE     file to check. Default as for "run": EDGE_HEALTH_CONFIG in the environment or in /etc/default/edge-health,
           /etc/edge-health/edge_health_config.yaml, or config/edge_health_config.yaml of the checkout
  --json   print the errors as JSON

Prints every error with file, line, column and key, the value found and the values allowed; and notes on what would prevent the
service from starting on this machine or a notification from being sent, such as a missing token file or a data folder to which
the units may not write.
Exit codes: 0 valid, 64 wrong usage, 77 permission denied, 78 invalid.`,
  options: { json: { type: 'boolean' } },
  positionals: 1,
  run: async ({ options, positionals }) => {
    const file = positionals[0] ?? configPath(null);
    const loaded = loadConfig(file);
    const notes = loaded.ok ? await notesOn(loaded.config, file) : [];
    if (options['json']) {
      const found = notes.length === 0 ? {} : { notes };
      printJson(loaded.ok ? { valid: true, errors: [], ...found } : { valid: false, errors: loaded.errors }, 2);
    } else if (loaded.ok) {
      printLines([`${file}: valid`, ...notes.map((note) => `note: ${note}`)]);
    } else {
      for (const error of loaded.errors) printProblem(formatConfigError(error));
    }
    return loaded.ok ? EXIT.ok : isUnreadable(loaded) ? EXIT.noPermission : EXIT.config;
  },
};

const EVERY_ADDRESS = ['0.0.0.0', '::'];

/** First port that needs no permission, unless the kernel is configured otherwise. */
const FIRST_FREE_PORT = 1024;

/**
 * What would prevent the start of a valid configuration or the delivery of a notification on this machine. It may be corrected later, or
 * the file may be for another machine.
 */
async function notesOn(config: Config, file: string): Promise<string[]> {
  const { ops, rest } = config;
  const installed = installation();
  const units = installed.isPackage ? await limitsOf(resolve(file), process.env) : [];
  // The files must be readable for the user of the service.
  if (installed.isPackage) becomeOwnerOf(installed.dataFolder, process.env);
  const notes: string[] = [];
  const data = dataPath(config, file, process.env, installed);
  const problem = forbiddenFolder(data, units) ?? dataFolderProblem(data);
  if (problem !== null) notes.push(`storage.path: ${problem}`);
  const scheduler = units.filter(({ Id }) => Id === SCHEDULER_UNIT);
  for (const target of ops.backup.copy_to.filter((target) => target.startsWith('/'))) {
    const forbidden = forbiddenFolder(target, scheduler);
    if (forbidden !== null) notes.push(`ops.backup.copy_to: ${forbidden}`);
  }
  try {
    readToken(rest.token_file);
  } catch (error) {
    if (!(error instanceof UnusableToken)) throw error;
    notes.push(`${error.message}; the service does not start without it`);
  }
  const addresses = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
  if (rest.host !== null && isIP(rest.host) !== 0 && !EVERY_ADDRESS.includes(rest.host) && !addresses.includes(rest.host))
    notes.push(`rest.host: ${rest.host} is not an address of this machine now; until it is, the service runs without its REST API`);
  const mayUseLowPort = installed.isPackage
    ? units.every((unit) => unit.Id === SCHEDULER_UNIT || mayUseLowPorts(unit))
    : process.geteuid?.() === 0;
  if (rest.port < FIRST_FREE_PORT && !mayUseLowPort)
    notes.push(`rest.port: the service may not listen on ${rest.port}, and runs without its REST API; ${LOW_PORT_REMEDY}`);
  const { command, email, webhook } = ops.notify;
  if (webhook.url !== null && !/^https?:$/.test(URL.parse(webhook.url)?.protocol ?? ''))
    notes.push('ops.notify.webhook.url is not an address such as https://host/path; nothing is sent to it');
  if (command !== null && !isAbsolute(command)) notes.push(`ops.notify.command: ${command} is not an absolute path; it is not run`);
  for (const [key, path, mode] of [
    ['ops.notify.command', command, constants.X_OK],
    ['ops.notify.webhook.url_file', webhook.url_file, constants.R_OK],
    ['ops.notify.webhook.token_file', webhook.token_file, constants.R_OK],
    ['ops.notify.webhook.template_file', webhook.template_file, constants.R_OK],
    ['ops.notify.webhook.ca_file', webhook.ca_file, constants.R_OK],
    ['ops.notify.email.password_file', email.password_file, constants.R_OK],
    ['ops.notify.email.ca_file', email.ca_file, constants.R_OK],
    ['ops.backup.s3_credentials_file', ops.backup.s3_credentials_file, constants.R_OK],
  ] as const) {
    try {
      if (path !== null && isAbsolute(path)) accessSync(path, mode);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const needed = mode === constants.X_OK ? 'run' : 'read';
      notes.push(`${key}: ${path} cannot be ${needed} by ${identity().USER} (${code}); nothing is sent without it`);
    }
  }
  if (email.host !== null && email.to.length === 0) notes.push('ops.notify.email.to is empty: no e-mail is sent');
  return notes;
}
