import { $ } from 'zx/core';

export interface Finished {
  /** Null: it was ended by a signal. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that runs, in a process group of its own. */
export interface Started {
  /** Rejects only when it cannot be started. */
  readonly finished: Promise<Finished>;
  /** Reaches its children as well. */
  signal(name: NodeJS.Signals): void;
}

/** Starts a program with its arguments, without input, so that what it says can be looked into: in no language, without colours. */
export function startProgram(argv: readonly string[], environment: NodeJS.ProcessEnv): Started {
  return startCommand(environment)`${argv}`;
}

/** As startProgram, for a command line as zx has it. */
export function startCommand(environment: NodeJS.ProcessEnv): (pieces: TemplateStringsArray, ...args: readonly unknown[]) => Started {
  const shell = $({
    quiet: true,
    nothrow: true,
    // In a group of its own, to be ended with its children: for zx's own way of that `ps` would have to be there.
    detached: true,
    // Spares the shell's process.
    prefix: 'exec ',
    cwd: '/',
    // A shell whose input is a socket takes itself for one of a remote login, and reads ~/.bashrc first.
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...environment, LC_ALL: 'C.UTF-8', SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' },
  });
  return (pieces, ...args) => {
    const running = shell(pieces, ...args);
    return {
      finished: Promise.resolve(running),
      signal: (name) => {
        try {
          if (running.pid !== undefined) process.kill(-running.pid, name);
        } catch {
          // It has just ended by itself.
        }
      },
    };
  };
}
