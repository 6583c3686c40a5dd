import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';

/** A step of the preparation failed; the message includes the remedy. */
export class SetupFailed extends Error {
  override readonly name = 'SetupFailed';
}

export interface Command {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Its output is appended to this file. */
  readonly logFile: string;
}

const SHOWN_LINES = 12;

/** Runs a program to its end. If it fails, rejects with SetupFailed with its first errors or its last lines. */
export function runCommand(what: string, command: Command): Promise<void> {
  const log = openSync(command.logFile, 'a');
  const start = statSync(command.logFile).size;
  return new Promise<void>((resolve, reject) => {
    const child = spawn(command.program, command.arguments, {
      cwd: command.folder,
      env: command.environment,
      stdio: ['ignore', log, log],
    });
    child.once('error', (error) => reject(new SetupFailed(`${what}: ${command.program} cannot be started: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve();
      const output = readFileSync(command.logFile).subarray(start).toString();
      reject(
        new SetupFailed(`${what} failed (${signal ?? `exit code ${code}`}):\n${relevantLines(output)}\nFull output: ${command.logFile}`),
      );
    });
  }).finally(() => closeSync(log));
}

/** The first error with the lines after it, otherwise the last lines. */
function relevantLines(output: string): string {
  const lines = output.trimEnd().split('\n');
  const first = lines.findIndex((line) => /\berror\b[: ]/i.test(line));
  const shown = first < 0 ? lines.slice(-SHOWN_LINES) : lines.slice(first, first + SHOWN_LINES);
  return shown.map((line) => `  ${line}`).join('\n');
}
