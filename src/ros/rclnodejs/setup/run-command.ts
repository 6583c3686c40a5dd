import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import type { RosPaths } from '../prepared.ts';
import type { User } from '../probe.ts';
import type { SourcedRos } from '../sourced-environment.ts';

/** A step of the preparation failed; the message includes the remedy. */
export class SetupFailed extends Error {
  override readonly name = 'SetupFailed';
}

/** A private copy of rclnodejs in preparation. */
export interface Workspace {
  readonly ros: SourcedRos;
  readonly paths: Pick<RosPaths, 'interfaces' | 'rclnodejs'>;
  /** The folder of the copy. */
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** The user to test the compiled addon as; null: this process's user. */
  readonly user: User | null;
  /** The output of all programs is appended to this file. */
  readonly logFile: string;
  /** Receives progress lines. */
  readonly onProgress: (line: string) => void;
}

const SHOWN_LINES = 12;

/**
 * Runs a program to its end, by default in the workspace's folder and environment. If it fails, rejects with SetupFailed with its first
 * errors or its last lines.
 */
export function runCommand(
  { logFile, ...workspace }: Pick<Workspace, 'folder' | 'environment' | 'logFile'>,
  what: string,
  program: string,
  args: readonly string[],
  { folder = workspace.folder, environment = workspace.environment }: { folder?: string; environment?: NodeJS.ProcessEnv } = {},
): Promise<void> {
  const log = openSync(logFile, 'a');
  const start = statSync(logFile).size;
  return new Promise<void>((resolve, reject) => {
    const child = spawn(program, args, { cwd: folder, env: environment, stdio: ['ignore', log, log] });
    child.once('error', (error) => reject(new SetupFailed(`${what}: ${program} cannot be started: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve();
      const output = readFileSync(logFile).subarray(start).toString();
      reject(new SetupFailed(`${what} failed (${signal ?? `exit code ${code}`}):\n${relevantLines(output)}\nFull output: ${logFile}`));
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
