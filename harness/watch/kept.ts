import { endOfProcess } from './causes.ts';
import type { KnownRun, RunEnd, RunsBetween, SupervisedRun, Supervisor } from './supervisor.ts';

/** An end of a process that the harness itself had started to be the service. */
export interface Exit {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly pid: number;
  readonly code: number | null;
  /** `KILL` or `SIGKILL`; null: it ended by itself. */
  readonly signal: string | null;
  /** The harness, or somebody through it, asked for it. */
  readonly asked?: boolean;
}

export interface KeptOptions {
  /** Of the process that is there now; null: there is none. */
  readonly pid: () => number | null;
  /** All that were noted, oldest first. */
  readonly exits: () => readonly Exit[];
}

/** The harness runs the service by itself, and notes how each of its processes ended. */
export class KeptSupervisor implements Supervisor {
  readonly #options: KeptOptions;

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  async now(): Promise<SupervisedRun | null> {
    const pid = this.#options.pid();
    if (pid === null) return null;
    return { pid, invocation: null, restarts: this.#options.exits().length, controlGroup: null, cpuSeconds: null };
  }

  async between(before: KnownRun): Promise<RunsBetween | null> {
    const exits = this.#options.exits();
    const at = exits.findLastIndex(({ pid }) => pid === before.pid);
    const last = exits.at(-1);
    // Nobody may have been there to note the end of the one before.
    if (at < 0 || !last) return null;
    const end: RunEnd = last.asked === true ? { cause: 'stopped', detail: 'with the harness' } : endOfProcess(last.code, last.signal);
    return { ...end, unseen: exits.length - 1 - at };
  }
}
