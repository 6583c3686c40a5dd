import { which } from 'zx/core';
import { startProgram } from './start-program.ts';
import { TimeoutError, withTimeout } from './timeout.ts';

export interface ProgramResult {
  /** Null: ended by a signal. */
  readonly exitCode: number | null;
  readonly stdout: string;
  /** The last line on standard error; '' if none. */
  readonly complaint: string;
}

export interface RunOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

/** The path of a program; null: it is not on the PATH. */
export async function findProgram(program: string, environment: NodeJS.ProcessEnv): Promise<string | null> {
  return which(program, { nothrow: true, path: environment['PATH'] ?? '' });
}

/**
 * Runs a program to its end. On a timeout it is killed with its children and TimeoutError is thrown, even if it hangs in the kernel
 * and cannot be killed: zx's own timeout would wait for its end, and needs `ps` to find its children.
 */
export async function runProgram(argv: readonly string[], { environment, signal, timeoutSeconds }: RunOptions): Promise<ProgramResult> {
  const running = startProgram(argv, environment);
  try {
    const { exitCode, stderr, stdout } = await withTimeout(timeoutSeconds, running.finished, signal);
    return { exitCode, stdout, complaint: stderr.trim().split('\n').at(-1)?.trim() ?? '' };
  } catch (error) {
    running.signal('SIGKILL');
    if (error instanceof TimeoutError) throw new TimeoutError(`${argv.slice(0, 2).join(' ')}: ${error.message}`);
    throw error;
  }
}
