import { type Finished, startProgram } from '../lib/start-program.ts';

/** What a shell says of a program that is not there. */
export const NOT_INSTALLED = 127;

export interface RunOptions {
  readonly environment: NodeJS.ProcessEnv;
  /** Ends it; what it threw is thrown. */
  readonly signal?: AbortSignal;
  readonly seconds?: number;
}

/** How long a program that is asked to end may take to clean up. */
const GRACE_MS = 3000;

/** Runs a program to its end, whatever that is; it and its children are ended by the signal, whose reason is thrown, and when it takes too long. */
export async function runProgram(
  program: string,
  given: readonly string[],
  { environment, seconds, signal }: RunOptions,
): Promise<Finished> {
  signal?.throwIfAborted();
  const running = startProgram([program, ...given], environment);
  const timers: NodeJS.Timeout[] = [];
  const end = (): void => {
    running.signal('SIGTERM');
    timers.push(setTimeout(() => running.signal('SIGKILL'), GRACE_MS));
  };
  signal?.addEventListener('abort', end, { once: true });
  if (seconds !== undefined) timers.push(setTimeout(end, seconds * 1000));
  try {
    const finished = await running.finished;
    signal?.throwIfAborted();
    return finished;
  } finally {
    signal?.removeEventListener('abort', end);
    for (const timer of timers) clearTimeout(timer);
  }
}
