import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { EXIT, type Job, type JobContext, type JobStatus, type Trigger } from '../lib/job.ts';
import { lockNamed } from './job-lock.ts';
import type { JobName } from './jobs.ts';

export interface RunResult {
  readonly status: JobStatus;
  readonly lines: readonly string[];
}

/** A run of a job; 'busy': it runs already, in this process or another. Never rejects. When `signal` is aborted it should end soon. */
export type Runner = (name: JobName, trigger: Trigger, signal: AbortSignal) => Promise<RunResult | 'busy'>;

/** Exit status of a scheduled run that finds the job running. */
export const BUSY_STATUS = 75;

const unknown = (line: string): RunResult => ({ status: 'UNKNOWN', lines: [`UNKNOWN   ${line}`] });

/** Runs programs within this process. `context` has the configuration that is in force. */
export function inProcess(
  programs: Readonly<Partial<Record<JobName, () => Promise<Job>>>>,
  context: () => Omit<JobContext, 'trigger' | 'signal'>,
): Runner {
  return async (name, trigger, signal) => {
    try {
      const base = context();
      const lock = lockNamed(base.dataFolder, name);
      if (!lock) return 'busy';
      try {
        const program = await programs[name]?.();
        if (!program) return unknown(`there is no program ${name}`);
        const { lines, status } = await program.run({ ...base, trigger, signal }, { options: {}, positionals: [] });
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
  /** From the request to end to the end by force. */
  readonly graceSeconds: number;
  /** What a child writes to its standard error: the lines of its log. */
  readonly onLogLine: (line: string) => void;
}

const LINES = 50;
const STATUSES = Object.keys(EXIT) as JobStatus[];
/** What sd-daemon(3) puts before a line. */
const PRIORITY = /^<[0-7]>/;

/** Runs a program as a process of its own, with a group of its own: what it starts is ended with it. */
export function asChild({ arguments: more, command, environment, graceSeconds, onLogLine }: ChildOptions): Runner {
  const [executable, ...first] = command;
  return (name, trigger, signal) =>
    new Promise((resolve) => {
      // What is for this process alone would only confuse.
      const { NOTIFY_SOCKET: _, WATCHDOG_PID: __, WATCHDOG_USEC: ___, ...env } = environment;
      const child = spawn(executable, [...first, name, '--trigger', trigger, ...more], {
        detached: true,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const lines: string[] = [];
      const errors: string[] = [];
      const keep = (list: string[]) => (line: string) => {
        list.push(line.replace(PRIORITY, ''));
        if (list.length > LINES) list.shift();
      };
      createInterface({ input: child.stdout }).on('line', keep(lines));
      createInterface({ input: child.stderr }).on('line', keep(errors)).on('line', onLogLine);
      let killer: NodeJS.Timeout | undefined;
      const end = (): void => {
        signalGroup(child.pid, 'SIGTERM');
        killer ??= setTimeout(() => signalGroup(child.pid, 'SIGKILL'), graceSeconds * 1000);
      };
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
      const finish = (result: RunResult | 'busy'): void => {
        signal.removeEventListener('abort', end);
        clearTimeout(killer);
        resolve(result);
      };
      child.once('error', ({ message }) => finish(unknown(`${name} cannot be started: ${message}`)));
      // Not 'close': a process that it left behind may hold its output open for ever.
      child.once('exit', (code, by) => {
        // Of its group nothing is to go on; what it wrote last is still on its way.
        signalGroup(child.pid, 'SIGKILL');
        setTimeout(() => {
          child.stdout.destroy();
          child.stderr.destroy();
          if (code === BUSY_STATUS) finish('busy');
          else finish(resultOf(name, code, by, lines, errors));
        }, DRAIN_MS);
      });
    });
}

/** For reading what a process had written when it ended. */
const DRAIN_MS = 100;

function resultOf(name: string, code: number | null, by: string | null, lines: string[], errors: string[]): RunResult {
  const status = STATUSES.find((word) => EXIT[word] === code);
  if (status !== undefined) return { status, lines: lines.length > 0 ? lines : errors };
  const how = by === null ? `with exit status ${code}` : `by ${by}`;
  return { status: 'UNKNOWN', lines: [...lines, ...errors, `UNKNOWN   ${name} ended ${how}`] };
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // The group has ended.
  }
}
