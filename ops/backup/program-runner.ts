import { type Finished, type Started, startCommand } from '../lib/start-program.ts';

/** The exit code of a shell for a program that is not installed. */
export const NOT_INSTALLED = 127;

export interface RunOptions {
  readonly environment: NodeJS.ProcessEnv;
  /** Stops the program and its children; the signal's reason is thrown. */
  readonly signal?: AbortSignal;
  readonly timeoutSeconds?: number;
}

/** From SIGTERM to SIGKILL, for the program to clean up. */
const GRACE_MS = 3000;

/** zx's $: runs a command until it exits, with whatever code. */
export function shell(options: RunOptions): (pieces: TemplateStringsArray, ...args: readonly unknown[]) => Promise<Finished> {
  return (pieces, ...args) => finish(() => startCommand(options.environment)(pieces, ...args), options);
}

async function finish(start: () => Started, { signal, timeoutSeconds }: RunOptions): Promise<Finished> {
  signal?.throwIfAborted();
  const running = start();
  const timers: NodeJS.Timeout[] = [];
  const stop = (): void => {
    running.signal('SIGTERM');
    timers.push(setTimeout(() => running.signal('SIGKILL'), GRACE_MS));
  };
  signal?.addEventListener('abort', stop, { once: true });
  if (timeoutSeconds !== undefined) timers.push(setTimeout(stop, timeoutSeconds * 1000));
  try {
    const finished = await running.finished;
    signal?.throwIfAborted();
    return finished;
  } finally {
    signal?.removeEventListener('abort', stop);
    for (const timer of timers) clearTimeout(timer);
  }
}
