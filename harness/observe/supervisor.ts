import { constants } from 'node:os';
import type { Cause } from '../record/entries.ts';

/** The current run of the service, as reported by its supervisor (systemd, or the harness itself). */
export interface SupervisedRun {
  /** Id of the main process; null if unknown. */
  readonly pid: number | null;
  /** Distinguishes runs. */
  readonly invocation: string | null;
  /** Automatic restarts. A manual start resets the count to 0. */
  readonly restarts: number | null;
  /** Path below the root of the control groups. */
  readonly controlGroup: string | null;
  /** CPU time of this run only, because its control group may have counted earlier runs. Null if not counted. */
  readonly cpuSeconds: number | null;
}

/** Facts about the previous run. */
export interface KnownRun {
  readonly started: string;
  readonly version: string;
  readonly pid: number | null;
  readonly invocation: string | null;
  readonly restarts: number | null;
  /** Id of the boot in which it was seen. */
  readonly bootId: string | null;
}

/** How a run of the service ended. */
export interface RunEnd {
  readonly cause: Cause;
  /** For display, such as "SIGKILL" or "exit status 70"; may be empty. */
  readonly detail: string;
}

/** How the run before the current one ended, and the number of runs that were not observed. */
export interface RunsBetween extends RunEnd {
  readonly unseen: number;
}

export interface Supervisor {
  /** Null if there is no run, or if it is unknown. */
  now(): Promise<SupervisedRun | null>;
  /** What happened between two runs of one boot of the machine; null if unknown. */
  between(before: KnownRun, now: SupervisedRun): Promise<RunsBetween | null>;
  /** Called while the service does not respond: reads how its run ended while that information is available. */
  onNoResponse?(invocation: string | null): Promise<void>;
}

/** The end of a service process that the harness started. */
export interface Exit {
  /** Wall clock, in ms since the epoch. */
  readonly at: number;
  readonly pid: number;
  readonly code: number | null;
  /** `KILL` or `SIGKILL`; null if it exited. */
  readonly signal: string | null;
  /** True if the harness stopped it. */
  readonly stopped?: boolean;
}

/** A supervisor for a service that the harness itself runs. It records how each of its processes ends. */
export abstract class ProcessSupervisor implements Supervisor {
  /** Id of the current process; null if there is none. */
  abstract pid(): number | null;
  /** All recorded exits, oldest first. */
  abstract exits(): readonly Exit[];

  async now(): Promise<SupervisedRun | null> {
    const pid = this.pid();
    if (pid === null) return null;
    return { pid, invocation: null, restarts: this.exits().length, controlGroup: null, cpuSeconds: null };
  }

  async between(before: KnownRun): Promise<RunsBetween | null> {
    const exits = this.exits();
    const at = exits.findLastIndex(({ pid }) => pid === before.pid);
    const last = exits.at(-1);
    // An exit after the supervisor itself was killed is not recorded.
    if (at < 0 || !last) return null;
    const end: RunEnd = last.stopped === true ? { cause: 'stopped', detail: 'with the harness' } : endOfProcess(last.code, last.signal);
    return { ...end, unseen: exits.length - 1 - at };
  }
}

/** How a process ended, by its exit status or the name of the signal. */
export function endOfProcess(code: number | null, signal: string | null): RunEnd {
  if (signal !== null) return { cause: 'signal', detail: signalName(signal) };
  return code === null ? { cause: 'unknown', detail: '' } : { cause: 'exit', detail: `exit status ${code}` };
}

/** Normalises `KILL`, `SIGKILL` or `9` to `SIGKILL`. */
export function signalName(signal: string): string {
  const number = Number(signal);
  if (Number.isInteger(number)) return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${signal}`;
  return signal.startsWith('SIG') ? signal : `SIG${signal}`;
}

/** Parses JSON documents, one per line. Skips other lines: empty ones, and one that is still being written. */
export function parseJsonLines<T>(text: string): T[] {
  return text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as T];
    } catch {
      return [];
    }
  });
}
