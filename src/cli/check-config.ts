import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { readToken, UnusableToken } from '../app/token.ts';
import { configPath, isUnreadable, loadConfig } from '../config/load.ts';
import { formatConfigError } from '../config/parse.ts';
import type { Config } from '../config/schema.ts';
import { printJson, printLines, printProblem } from '../core/platform/output.ts';
import { type Command, EXIT } from './command.ts';

export const checkConfig: Command = {
  summary: 'Check a configuration file without starting',
  usage: 'check-config [FILE] [--json]',
  help: `  FILE     file to check. Default as for "run": EDGE_HEALTH_CONFIG in the environment or in /etc/default/edge-health,
           /etc/edge-health/edge_health_config.yaml, or config/edge_health_config.yaml of the checkout
  --json   print the errors as JSON

Prints every error with file, line, column and key, the value found and the values allowed; and notes on what would prevent the
service from starting on this machine, such as a missing token file.
Exit codes: 0 valid, 64 wrong usage, 77 permission denied, 78 invalid.`,
  options: { json: { type: 'boolean' } },
  positionals: 1,
  run: async ({ options, positionals }) => {
    const file = positionals[0] ?? configPath(null);
    const loaded = loadConfig(file);
    const notes = loaded.ok ? notesOn(loaded.config) : [];
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

/** What a valid configuration refers to but this machine lacks. It may be installed later, or the file may be for another machine. */
function notesOn({ ops, rest }: Config): string[] {
  const notes: string[] = [];
  try {
    readToken(rest.token_file);
  } catch (error) {
    if (!(error instanceof UnusableToken)) throw error;
    notes.push(`${error.message}; the service does not start without it`);
  }
  const addresses = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
  if (rest.host !== null && isIP(rest.host) !== 0 && !EVERY_ADDRESS.includes(rest.host) && !addresses.includes(rest.host))
    notes.push(`rest.host: ${rest.host} is not an address of this machine now; the service does not start without it`);
  const { email } = ops.notify;
  if (email.host !== null && email.to.length === 0) notes.push('ops.notify.email.to is empty: no e-mail is sent');
  return notes;
}
