import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { optionsForShortLived } from '../../src/installation/node-options.ts';
import { PROGRAMS } from '../../src/installation/programs.ts';

/** Verdicts are 0 to 2; anything else means that there is no report. */
const HIGHEST_VERDICT = 2;

/**
 * Has the report written by a process of its own: what that takes goes with it, and the watcher stays small. Its exit code is that of the
 * verdict; null: it failed, and has said why.
 */
export function renderReport(folder: string): Promise<number | null> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...optionsForShortLived(), fileURLToPath(PROGRAMS.harness), 'report', folder], {
      stdio: ['ignore', 'inherit', 'inherit'],
      // A terminal's Ctrl-C is for the watcher, which waits for the report.
      detached: true,
    });
    child.once('error', (error) => {
      process.stderr.write(`edge-health harness: the report cannot be written: ${error.message}\n`);
      resolve(null);
    });
    child.once('exit', (code) => resolve(code !== null && code <= HIGHEST_VERDICT ? code : null));
  });
}
