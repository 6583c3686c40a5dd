import { $, type ProcessOutput, which } from 'zx/core';
import { TimeoutError, withTimeout } from './timeout.ts';

export interface RunOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** If omitted, only the timeout of the job applies. */
  readonly timeoutSeconds?: number;
  /** From SIGTERM to SIGKILL, for a program that needs to clean up. */
  readonly graceSeconds?: number;
}

/** The exit code of a shell for a program that is not installed. */
export const NOT_INSTALLED = 127;
/** The longest timeout of a job. */
const DAY_SECONDS = 86_400;

/** The path of a program, or null if it is not on the PATH. */
export async function findProgram(program: string, environment: NodeJS.ProcessEnv): Promise<string | null> {
  return which(program, { nothrow: true, path: environment['PATH'] ?? '' });
}

/**
 * zx's $: runs a command until it exits, with any exit code (null if a signal ended it). After a timeout (TimeoutError), or when the signal
 * is aborted (its reason is thrown), the command is killed with its children without waiting for it, because it may hang in the kernel.
 * zx's own timeout would wait, and needs `ps` to find the children.
 */
export function shell({ environment, graceSeconds = 0, signal, timeoutSeconds = DAY_SECONDS }: RunOptions) {
  const start = $({
    quiet: true,
    nothrow: true,
    detached: true, // Its own process group, so that signals reach its children.
    prefix: 'exec ', // Avoids a separate shell process.
    cwd: '/',
    // If the input were a socket, the shell would assume a remote login and read ~/.bashrc.
    stdio: ['ignore', 'pipe', 'pipe'],
    // Makes the output parseable.
    env: { ...environment, LC_ALL: 'C.UTF-8', SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' },
  });
  return async (pieces: TemplateStringsArray, ...args: readonly unknown[]): Promise<ProcessOutput> => {
    signal.throwIfAborted();
    const running = start(pieces, ...args);
    const kill = (name: NodeJS.Signals): void => {
      try {
        if (running.pid !== undefined) process.kill(-running.pid, name);
      } catch {
        // It has just exited.
      }
    };
    try {
      return await withTimeout(timeoutSeconds, running, signal);
    } catch (error) {
      if (graceSeconds > 0) {
        kill('SIGTERM');
        await withTimeout(graceSeconds, running, new AbortController().signal).catch(() => undefined); // It is killed after this.
      }
      kill('SIGKILL');
      throw error;
    }
  };
}

/**
 * Runs a program without shell syntax; see `shell`. `exitCode` is null if a signal ended it; `complaint` is its
 * last line on standard error.
 */
export async function runProgram(argv: readonly string[], options: RunOptions) {
  try {
    const { exitCode, stderr, stdout } = await shell(options)`${argv}`;
    return { exitCode, stdout, complaint: stderr.trim().split('\n').at(-1)?.trim() ?? '' };
  } catch (error) {
    if (error instanceof TimeoutError) throw new TimeoutError(`${argv.slice(0, 2).join(' ')}: ${error.message}`);
    throw error;
  }
}
