import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { PROGRAMS } from '../../src/core/files/programs.ts';
import type { LogLevel } from '../../src/core/ports.ts';
import { HEAVY, JOBS, type JobName } from '../jobs.ts';
import { diskProblem } from '../lib/files.ts';
import { EXIT, type Job, type JobContext, type JobResult, type JobStatus, type Trigger } from '../lib/job.ts';
import { lockNamed } from './job-lock.ts';
import { isFailure, type Run, startRun } from './job-records.ts';
import type { Settings } from './settings.ts';

/** `failed`: whether the job did not do its work, if its status does not show it. */
export type RunResult = Pick<JobResult, 'status' | 'lines'> & { readonly failed?: true };

/** A run of a job; 'busy' if another process is running it. Never rejects. Should end soon after `signal` is aborted. */
export type Runner = (name: JobName, trigger: Trigger, signal: AbortSignal) => Promise<RunResult | 'busy'>;

/** Exit status of a scheduled run when the job is already running. */
export const BUSY_STATUS = 75;

/** Light jobs run in this process: a process each minute would cost five times the CPU of everything else. */
export function jobRunner(context: JobContext, url: string | null, settings: () => Settings): Runner {
  const light = inProcess(
    (name) => JOBS[name](),
    () => ({ ...context, ...settings(), progress: () => undefined }),
  );
  const node = [process.execPath, ...process.execArgv.filter((option) => option !== '--lite-mode')] as const;
  const options = ['--config', context.configFile, ...(url === null ? [] : ['--url', url])];
  const heavy = asChild((name, trigger) => [...node, fileURLToPath(PROGRAMS.ops), name, '--trigger', trigger, ...options], {
    environment: context.environment,
    onLogLine: (line) => {
      const [prefix = '', level = 'info'] = LEVEL.exec(line) ?? [];
      context.log(level as LogLevel, line.slice(prefix.length));
    },
  });
  return (name, trigger, signal) => (HEAVY.includes(name) ? heavy : light)(name, trigger, signal);
}

const unknown = (line: string): RunResult => ({ status: 'UNKNOWN', lines: [`UNKNOWN   ${line}`], failed: true });
const critical = (line: string): RunResult => ({ status: 'CRITICAL', lines: [`CRITICAL  ${line}`], failed: true });

/** Runs jobs within this process. `context` returns the current configuration. */
export function inProcess(load: (name: JobName) => Promise<Job>, context: () => Omit<JobContext, 'trigger' | 'signal'>): Runner {
  return async (name, trigger, signal) => {
    let dataFolder: string | null = null;
    try {
      const base = context();
      dataFolder = base.dataFolder;
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
      const problem = dataFolder === null ? null : diskProblem(error, dataFolder);
      return problem === null ? unknown(`${name}: ${(error as Error).message}`) : critical(`${name}: ${problem}`);
    }
  };
}

const CHILD_GRACE_SECONDS = 6;
const LINES = 50;
/** Time to read output that was written before the exit and is still in the pipe. */
const DRAIN_MS = 100;
/** The level at the beginning of a line of the log; none: info. */
const LEVEL = /^(error|warning|notice|debug): /;

export interface ChildOptions {
  readonly environment: NodeJS.ProcessEnv;
  /** Called for each line that a child writes to its standard error, which is its log. */
  readonly onLogLine: (line: string) => void;
  /** Time from SIGTERM to SIGKILL. */
  readonly graceSeconds?: number;
}

/** Runs jobs as child processes, each in its own process group, which is killed when the job exits. */
export function asChild(
  argv: (name: JobName, trigger: Trigger) => readonly [string, ...string[]],
  { environment, graceSeconds = CHILD_GRACE_SECONDS, onLogLine }: ChildOptions,
): Runner {
  // These variables are meant only for this process.
  const { NOTIFY_SOCKET: _, WATCHDOG_PID: __, WATCHDOG_USEC: ___, ...env } = environment;
  return async (name, trigger, signal) => {
    const [executable, ...parameters] = argv(name, trigger);
    const child = spawn(executable, parameters, { detached: true, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [output, errors]: [string[], string[]] = [[], []];
    const keepIn = (lines: string[]) => (line: string) => {
      lines.push(line.replace(LEVEL, ''));
      if (lines.length > LINES) lines.shift();
    };
    createInterface({ input: child.stdout }).on('line', keepIn(output));
    createInterface({ input: child.stderr }).on('line', keepIn(errors)).on('line', onLogLine);
    let killer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      signalGroup(child.pid, 'SIGTERM');
      killer = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), graceSeconds * 1000);
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    try {
      // Not 'close': a process left behind by the child may hold its output open forever.
      const [code, by] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
      signalGroup(child.pid, 'SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, DRAIN_MS));
      if (code === BUSY_STATUS) return 'busy';
      const status = (Object.keys(EXIT) as JobStatus[]).find((word) => EXIT[word] === code);
      if (status !== undefined) return { status, lines: output.length > 0 ? output : errors };
      const how = by === null ? `with exit status ${code}` : `by ${by}`;
      return { status: 'UNKNOWN', lines: [...output, ...errors, `UNKNOWN   ${name} ended ${how}`], failed: true };
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

/** Time from the request to stop a run until it is considered hung; systemd waits slightly longer for the scheduler. */
const GRACE_SECONDS = 10;
const HUNG = 'CRITICAL  it does not stop; restart the scheduler to end it: systemctl restart edge-health-ops';

/** How a run ended: by itself; not within the grace period after its timeout; by a stop of the scheduler; or it did not start. */
export type Ending = { readonly kind: 'ended' | 'hung'; readonly run: Run } | { readonly kind: 'interrupted' | 'busy' };

/** A run in progress. */
export interface Execution {
  /** Resolves when the run has ended, or is considered hung. */
  readonly ended: Promise<Ending>;
  /** Resolves when the run has actually ended. */
  readonly returned: Promise<unknown>;
  /** Stops the run when the scheduler stops. */
  stop(): void;
}

/** Starts a run. A run that exceeds its timeout has failed, whatever status it returns. */
export function execute(name: JobName, trigger: Trigger, runner: Runner, timeoutSeconds: number): Execution {
  const runOf = startRun(name, trigger);
  const stopping = new AbortController();
  const hung = Promise.withResolvers<'hung'>();
  let isInterrupted = false;
  let grace: NodeJS.Timeout | undefined;
  const stop = (reason: string): void => {
    if (stopping.signal.aborted) return;
    stopping.abort(new Error(reason));
    grace = setTimeout(() => hung.resolve('hung'), GRACE_SECONDS * 1000);
  };
  const timeout = setTimeout(() => stop(`not done within ${timeoutSeconds} s`), timeoutSeconds * 1000);
  const returned = runner(name, trigger, stopping.signal).finally(() => {
    clearTimeout(timeout);
    clearTimeout(grace);
  });
  const endingOf = (outcome: RunResult | 'busy' | 'hung'): Ending => {
    if (outcome === 'busy') return { kind: 'busy' };
    // A run may still succeed after the request to stop.
    if (isInterrupted && (outcome === 'hung' || outcome.failed || isFailure(name, outcome.status))) return { kind: 'interrupted' };
    const late = `CRITICAL  ${name} did not end within ${timeoutSeconds} s (ops.timeouts.${name})`;
    if (outcome === 'hung') return { kind: 'hung', run: runOf('CRITICAL', [late, HUNG], true) };
    const { failed, lines, status } = outcome;
    const isLate = stopping.signal.aborted && !isInterrupted;
    return { kind: 'ended', run: isLate ? runOf('CRITICAL', [...lines, late], true) : runOf(status, lines, failed) };
  };
  return {
    ended: Promise.race([returned, hung.promise]).then(endingOf),
    returned,
    stop: () => {
      isInterrupted = true;
      stop('the scheduler stops');
    },
  };
}
