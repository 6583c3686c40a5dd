import { constants } from 'node:os';
import type { Cause } from '../record/entries.ts';

/** The present run of the service, as its supervisor (systemd, or the harness itself) knows it. */
export interface SupervisedRun {
  /** Of the main process; null: not known. */
  readonly pid: number | null;
  /** Distinguishes runs. */
  readonly invocation: string | null;
  /** Automatic restarts; the count begins at 0 again with each start on request. */
  readonly restarts: number | null;
  /** Path below the root of the control groups. */
  readonly controlGroup: string | null;
  /** CPU time of this run alone: its control group may have counted earlier runs. Null: not counted. */
  readonly cpuSeconds: number | null;
}

/** What is remembered of the previous run. */
export interface KnownRun {
  readonly started: string;
  readonly version: string;
  readonly pid: number | null;
  readonly invocation: string | null;
  readonly restarts: number | null;
  /** Of the boot in which it was seen. */
  readonly bootId: string | null;
}

/** How a run of the service ended. */
export interface RunEnd {
  readonly cause: Cause;
  /** For people, such as "SIGKILL" or "exit status 70"; may be empty. */
  readonly detail: string;
}

/** How the run right before the present one ended, and the number of runs that were not observed. */
export interface RunsBetween extends RunEnd {
  readonly unseen: number;
}

export interface Supervisor {
  /** Null: there is no run, or it is not known. */
  now(): Promise<SupervisedRun | null>;
  /** What happened between two runs of one boot of the machine; null: not known. */
  between(before: KnownRun, now: SupervisedRun): Promise<RunsBetween | null>;
  /** Called while the service does not respond: reads how its run ended, as long as that is known. */
  absent?(invocation: string | null): Promise<void>;
}

/** One end of a process of the service that the harness started. */
export interface Exit {
  /** Wall clock, in ms since the epoch. */
  readonly at: number;
  readonly pid: number;
  readonly code: number | null;
  /** `KILL` or `SIGKILL`; null: it exited. */
  readonly signal: string | null;
  /** The harness stopped it. */
  readonly stopped?: boolean;
}

/** The harness itself runs the service and records how each of its processes ends. */
export abstract class ProcessSupervisor implements Supervisor {
  /** Of the present process; null: there is none. */
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
    // After the supervisor itself was killed, the exit is not recorded.
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

/** `SIGKILL` of `KILL`, `SIGKILL` or `9`. */
export function signalName(signal: string): string {
  const number = Number(signal);
  if (Number.isInteger(number)) return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${signal}`;
  return signal.startsWith('SIG') ? signal : `SIG${signal}`;
}

/** The documents in lines of JSON. Lines that are none are skipped: empty ones, and one that is being written. */
export function parseJsonLines<T>(text: string): T[] {
  return text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as T];
    } catch {
      return [];
    }
  });
}
