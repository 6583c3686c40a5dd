import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** A failed step of the build. The message contains the cause and the remedy. */
export class BuildFailed extends Error {
  override readonly name = 'BuildFailed';
}

/** Prints the progress of the build. */
export function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

export interface CommandOptions {
  readonly folder?: string;
  /** Added to this process's environment; an undefined value removes a variable. */
  readonly environment?: NodeJS.ProcessEnv;
}

/** Runs a program and returns its standard output. Throws BuildFailed with the last lines of the output. */
export function output(program: string, args: readonly string[], { folder, environment }: CommandOptions = {}): string {
  const { status, signal, error, stdout, stderr } = spawnSync(program, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    encoding: 'utf8',
    maxBuffer: 256e6,
  });
  if (status === 0) return stdout;
  throw failure(program, args, error?.message ?? signal ?? `exit code ${status}`, `${stdout}${stderr}`);
}

/** Runs a program with its output redirected to a file. Throws BuildFailed with the last lines of the file. */
export function logged(logFile: string, program: string, args: readonly string[], { folder, environment }: CommandOptions = {}): void {
  mkdirSync(dirname(logFile), { recursive: true });
  const log = openSync(logFile, 'a');
  const { status, signal, error } = spawnSync(program, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  if (status === 0) return;
  throw failure(program, args, error?.message ?? signal ?? `exit code ${status}`, readFileSync(logFile, 'utf8'), logFile);
}

function failure(program: string, args: readonly string[], reason: string, printed: string, logFile?: string): BuildFailed {
  const last = printed.trimEnd().split('\n').slice(-30).join('\n  ');
  const more = logFile === undefined ? '' : `\nAll of it: ${logFile}`;
  return new BuildFailed(`${[program, ...args].join(' ')} failed (${reason}):\n  ${last}${more}`);
}
