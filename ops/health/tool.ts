import { which } from 'zx/core';
import { startProgram } from '../lib/start-program.ts';
import { TooLong, within } from './patience.ts';

export interface ToolResult {
  /** Null: it was ended by a signal. */
  readonly code: number | null;
  readonly stdout: string;
  /** The last line that it complained with; '' if none. */
  readonly complaint: string;
}

export interface ToolOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/** Where a program lies; null: it is not on the PATH. */
export async function find(program: string, environment: NodeJS.ProcessEnv): Promise<string | null> {
  return which(program, { nothrow: true, path: environment['PATH'] ?? '' });
}

/** Runs a program of this machine to its end; throws TooLong when it takes more than so many seconds, and kills it and its children then. */
export async function runTool(argv: readonly string[], { environment, seconds, signal }: ToolOptions): Promise<ToolResult> {
  const running = startProgram(argv, environment);
  try {
    const { exitCode, stderr, stdout } = await within(seconds, running.finished, signal);
    return { code: exitCode, stdout, complaint: stderr.trim().split('\n').at(-1)?.trim() ?? '' };
  } catch (error) {
    running.signal('SIGKILL');
    if (error instanceof TooLong) throw new TooLong(`${argv.slice(0, 2).join(' ')} gave ${error.message}`);
    throw error;
  }
}
