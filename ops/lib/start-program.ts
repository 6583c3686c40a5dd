import { $ } from 'zx/core';

export interface Finished {
  /** Null: a signal ended it. */
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

/** Starts a program without input. Its output can be parsed: C locale, no colours. */
export function startProgram(argv: readonly string[], environment: NodeJS.ProcessEnv): Started {
  return startCommand(environment)`${argv}`;
}

/** As startProgram, for a command line as zx has it. */
export function startCommand(environment: NodeJS.ProcessEnv): (pieces: TemplateStringsArray, ...args: readonly unknown[]) => Started {
  const shell = $({
    quiet: true,
    nothrow: true,
    // In its own process group, to be ended with its children. zx itself would need `ps` for that.
    detached: true,
    // Saves the process of the shell.
    prefix: 'exec ',
    cwd: '/',
    // With a socket as input the shell would assume a remote login and read ~/.bashrc.
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
