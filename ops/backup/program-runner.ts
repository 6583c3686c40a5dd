import { type Finished, startProgram } from '../lib/start-program.ts';

/** The exit code of a shell for a program that is not installed. */
export const NOT_INSTALLED = 127;

export interface RunOptions {
  readonly environment: NodeJS.ProcessEnv;
  /** Stops it; the signal's reason is thrown. */
  readonly signal?: AbortSignal;
  readonly seconds?: number;
}

/** From SIGTERM to SIGKILL, for the program to clean up. */
const GRACE_MS = 3000;

/** Runs a program until it exits, with whatever code. The signal and the timeout stop it and its children. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { environment, seconds, signal }: RunOptions,
): Promise<Finished> {
  signal?.throwIfAborted();
  const running = startProgram([program, ...args], environment);
  const timers: NodeJS.Timeout[] = [];
  const stop = (): void => {
    running.signal('SIGTERM');
    timers.push(setTimeout(() => running.signal('SIGKILL'), GRACE_MS));
  };
  signal?.addEventListener('abort', stop, { once: true });
  if (seconds !== undefined) timers.push(setTimeout(stop, seconds * 1000));
  try {
    const finished = await running.finished;
    signal?.throwIfAborted();
    return finished;
  } finally {
    signal?.removeEventListener('abort', stop);
    for (const timer of timers) clearTimeout(timer);
  }
}
