import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { optionsForShortLived } from '../../src/installation/node-options.ts';
import { PROGRAMS } from '../../src/installation/programs.ts';

/** Exit codes of verdicts are 0 to 2; any other means that there is no report. */
const HIGHEST_VERDICT = 2;

/**
 * Writes the report in a separate process, which returns its memory when it exits, so that the observer stays small. Resolves to the
 * verdict's exit code; null: it failed and has printed why.
 */
export function renderReport(folder: string): Promise<number | null> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...optionsForShortLived(), fileURLToPath(PROGRAMS.harness), 'report', folder], {
      stdio: ['ignore', 'inherit', 'inherit'],
      // Ctrl-C on a terminal is for the observer, which waits for the report.
      detached: true,
    });
    child.once('error', (error) => {
      process.stderr.write(`edge-health harness: the report cannot be written: ${error.message}\n`);
      resolve(null);
    });
    child.once('exit', (code) => resolve(code !== null && code <= HIGHEST_VERDICT ? code : null));
  });
}
