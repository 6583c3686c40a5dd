import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { isoUtc } from '../../src/core/time.ts';
import { EXIT, type Job, type JobContext, type JobResult, type JobStatus, type Trigger } from '../lib/job.ts';
import { lockNamed } from './job-lock.ts';
import type { JobName, Run } from './job-record.ts';

export type RunResult = Pick<JobResult, 'status' | 'lines'>;

/** A run of a job; 'busy': another process runs it. Never rejects. When `signal` is aborted it should end soon. */
export type Runner = (name: JobName, trigger: Trigger, signal: AbortSignal) => Promise<RunResult | 'busy'>;

/** Exit status of a scheduled run that finds the job running. */
export const BUSY_STATUS = 75;

const unknown = (line: string): RunResult => ({ status: 'UNKNOWN', lines: [`UNKNOWN   ${line}`] });

/** Runs jobs within this process. `context` has the configuration that is in force. */
export function inProcess(load: (name: JobName) => Promise<Job>, context: () => Omit<JobContext, 'trigger' | 'signal'>): Runner {
  return async (name, trigger, signal) => {
    try {
      const base = context();
      const lock = lockNamed(base.dataFolder, name);
      if (!lock) return 'busy';
      try {
        const job = await load(name);
        const { lines, status } = await job.run({ ...base, trigger, signal }, { options: {}, positionals: [] });
        return { status, lines };
      } finally {
        lock.release();
      }
    } catch (error) {
      return unknown(`${name}: ${(error as Error).message}`);
    }
  };
}

export interface ChildOptions {
  /** Node's executable and options, and the program that takes a job's name as its first argument. */
  readonly command: readonly [string, ...string[]];
  /** After the name and the trigger. */
  readonly arguments: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** From SIGTERM to SIGKILL. */
  readonly graceSeconds: number;
  /** Called for each line that a child writes to its standard error: its log. */
  readonly onLogLine: (line: string) => void;
}

const LINES = 50;
/** For output that was written before the exit and is still in the pipe. */
const DRAIN_MS = 100;
/** The priority that sd-daemon(3) puts before a line. */
const PRIORITY = /^<[0-7]>/;

/** Runs jobs as child processes, each in its own process group, which is ended with it. */
export function asChild({ arguments: more, command, environment, graceSeconds, onLogLine }: ChildOptions): Runner {
  const [executable, ...first] = command;
  // These are meant for this process alone.
  const { NOTIFY_SOCKET: _, WATCHDOG_PID: __, WATCHDOG_USEC: ___, ...env } = environment;
  return async (name, trigger, signal) => {
    const child = spawn(executable, [...first, name, '--trigger', trigger, ...more], {
      detached: true,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const collect = (lines: string[]) => (line: string) => {
      lines.push(line.replace(PRIORITY, ''));
      if (lines.length > LINES) lines.shift();
    };
    const output: string[] = [];
    const errors: string[] = [];
    createInterface({ input: child.stdout }).on('line', collect(output));
    createInterface({ input: child.stderr }).on('line', collect(errors)).on('line', onLogLine);
    let killer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      signalGroup(child.pid, 'SIGTERM');
      killer ??= setTimeout(() => signalGroup(child.pid, 'SIGKILL'), graceSeconds * 1000);
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    try {
      // Not 'close': a process that the child left behind may hold its output open for ever.
      const [code, by] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
        child.once('exit', (...exit) => resolve(exit)).once('error', reject);
      });
      signalGroup(child.pid, 'SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, DRAIN_MS));
      if (code === BUSY_STATUS) return 'busy';
      const status = (Object.keys(EXIT) as JobStatus[]).find((word) => EXIT[word] === code);
      if (status !== undefined) return { status, lines: output.length > 0 ? output : errors };
      const how = by === null ? `with exit status ${code}` : `by ${by}`;
      return { status: 'UNKNOWN', lines: [...output, ...errors, `UNKNOWN   ${name} ended ${how}`] };
    } catch (error) {
      return unknown(`${name} cannot be started: ${(error as Error).message}`);
    } finally {
      child.stdout.destroy();
      child.stderr.destroy();
      signal.removeEventListener('abort', stop);
      clearTimeout(killer);
    }
  };
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // The group has exited.
  }
}

/** How a run ended: by itself; not at all within the grace period after its timeout; by a stop of the scheduler; or it did not start. */
export type Ending =
  | { readonly kind: 'ended'; readonly run: Run }
  | { readonly kind: 'hung'; readonly run: Run }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'busy' };

/** A run that is under way. */
export interface Execution {
  /** Resolves when the run has ended, or is considered hung. */
  readonly ended: Promise<Ending>;
  /** Resolves when the run has truly ended. */
  readonly returned: Promise<void>;
  /** Stops it, since the scheduler stops. */
  stop(): void;
}

export interface ExecutionOptions {
  readonly name: JobName;
  readonly trigger: Exclude<Trigger, 'manual'>;
  readonly runner: Runner;
  readonly timeoutSeconds: number;
  /** From the request to stop until the run is considered hung. */
  readonly graceSeconds: number;
}

/** Starts a run. One that exceeds its timeout has failed, whatever status it returns. */
export function execute({ graceSeconds, name, runner, timeoutSeconds, trigger }: ExecutionOptions): Execution {
  const started = isoUtc(Date.now());
  const startedAt = performance.now();
  const runOf = (status: JobStatus, lines: readonly string[]): Run => ({
    started,
    duration_seconds: Math.round(performance.now() - startedAt) / 1000,
    status,
    exit_code: EXIT[status],
    trigger,
    lines: [...lines],
  });
  const late = `CRITICAL  ${name} did not end within ${timeoutSeconds} s (ops.timeouts.${name})`;
  const stopping = new AbortController();
  const hung = Promise.withResolvers<Ending>();
  let isInterrupted = false;
  let grace: NodeJS.Timeout | undefined;
  const stop = (reason: string): void => {
    if (stopping.signal.aborted) return;
    stopping.abort(new Error(reason));
    grace = setTimeout(() => {
      hung.resolve(isInterrupted ? { kind: 'interrupted' } : { kind: 'hung', run: runOf('CRITICAL', [late, HUNG]) });
    }, graceSeconds * 1000);
  };
  const timeout = setTimeout(() => stop(`not done within ${timeoutSeconds} s`), timeoutSeconds * 1000);
  const result = runner(name, trigger, stopping.signal).finally(() => {
    clearTimeout(timeout);
    clearTimeout(grace);
  });
  const ended = result.then((outcome): Ending => {
    if (outcome === 'busy') return { kind: 'busy' };
    const { lines, status } = outcome;
    if (!stopping.signal.aborted) return { kind: 'ended', run: runOf(status, lines) };
    if (!isInterrupted) return { kind: 'ended', run: runOf('CRITICAL', [...lines, late]) };
    // A run may succeed although it was asked to stop.
    return status === 'OK' || status === 'WARNING' ? { kind: 'ended', run: runOf(status, lines) } : { kind: 'interrupted' };
  });
  return {
    ended: Promise.race([ended, hung.promise]),
    returned: result.then(() => undefined),
    stop: () => {
      isInterrupted = true;
      stop('the scheduler stops');
    },
  };
}

const HUNG = 'CRITICAL  it does not stop; restart the scheduler to end it: systemctl restart edge-health-ops';
