import { fileURLToPath } from 'node:url';
import { configPath, isUnreadable, loadConfig } from '../config/load.ts';
import { formatConfigError } from '../config/parse.ts';
import { PROGRAMS } from '../core/files/programs.ts';
import { printJson, printLines, printProblem } from '../core/platform/output.ts';
import type { Command } from './command.ts';
import { EXIT } from './exit-codes.ts';

export const checkConfig: Command = {
  summary: 'Check a configuration file without starting',
  usage: 'check-config [FILE] [--json]',
  help: `  FILE     file to check. Default as for "run": EDGE_HEALTH_CONFIG in the environment or in /etc/default/edge-health,
           /etc/edge-health/edge_health_config.yaml, or config/edge_health_config.yaml of the checkout
  --json   print the errors as JSON

Prints every error with file, line, column and key, the value found and the values allowed.
Exit codes: 0 valid, 64 wrong usage, 77 permission denied, 78 invalid.`,
  options: { json: { type: 'boolean' } },
  positionals: 1,
  run: async ({ options, positionals }) => {
    const file = positionals[0] ?? configPath(null, process.env, fileURLToPath(PROGRAMS.config));
    const loaded = loadConfig(file);
    if (options['json']) {
      printJson(loaded.ok ? { valid: true, errors: [] } : { valid: false, errors: loaded.errors }, 2);
    } else if (loaded.ok) {
      printLines([`${file}: valid`]);
    } else {
      for (const error of loaded.errors) printProblem(formatConfigError(error));
    }
    return loaded.ok ? EXIT.ok : isUnreadable(loaded) ? EXIT.noPermission : EXIT.config;
  },
};
