import { $ } from 'zx/core';

export interface Run {
  /** Null: it was ended by a signal. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

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

function signalGroup(group: number | undefined, name: NodeJS.Signals): void {
  try {
    if (group !== undefined) process.kill(-group, name);
  } catch {
    // It has just ended by itself.
  }
}

/** Runs a program to its end, whatever that is; it and its children are ended by the signal, whose reason is thrown, and when it takes too long. */
export async function runProgram(program: string, given: readonly string[], { environment, seconds, signal }: RunOptions): Promise<Run> {
  signal?.throwIfAborted();
  const run = $({
    // What it says is looked into.
    env: { ...environment, LC_ALL: 'C.UTF-8' },
    nothrow: true,
    quiet: true,
    // In a group of its own, to be ended with its children; zx would look for those with ps, which may be missing.
    detached: true,
    // A shell whose input is a socket takes itself for one of a remote login, and reads ~/.bashrc first.
    stdio: ['ignore', 'pipe', 'pipe'],
  })`exec ${program} ${given}`;
  const timers: NodeJS.Timeout[] = [];
  const end = (): void => {
    signalGroup(run.pid, 'SIGTERM');
    timers.push(setTimeout(() => signalGroup(run.pid, 'SIGKILL'), GRACE_MS));
  };
  signal?.addEventListener('abort', end, { once: true });
  if (seconds !== undefined) timers.push(setTimeout(end, seconds * 1000));
  try {
    const { exitCode, stderr, stdout } = await run;
    signal?.throwIfAborted();
    return { exitCode, stderr, stdout };
  } finally {
    signal?.removeEventListener('abort', end);
    for (const timer of timers) clearTimeout(timer);
  }
}
