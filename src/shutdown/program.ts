import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { ExitKind, RunningItem } from '../core/shutdown/shutdown.ts';
import { printable } from '../core/text.ts';

export interface ProgramOptions {
  /** A path, or a name that is looked up in the environment's PATH. */
  readonly file: string;
  readonly parameters: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Called with each line of standard output and standard error, up to MAX_LINES. */
  readonly onLine: (line: string) => void;
}

/** Limits of the output that is processed. */
const MAX_LINES = 200;
const MAX_LINE_CHARACTERS = 400;
/** Pause between reads of further output, which is dropped. It is read so that the program does not block. */
const PAUSE_MS = 10;
/** Time to wait for the last output after the program ended. A child process may keep the stream open. */
const LAST_OUTPUT_MS = 100;
const POLL_MS = 10;
/** Time to wait for a killed process, which may hang in the kernel. */
const KILLED_SECONDS = 0.25;

/**
 * Starts a program in its own process group, without input. The program has ended when its first process has; `end` also ends the
 * processes that it leaves in its group.
 */
export function startProgram({ file, parameters, environment, onLine }: ProgramOptions): RunningItem {
  let child: ChildProcess;
  try {
    child = spawn(file, parameters, { cwd: '/', env: environment, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  } catch (error) {
    return { ended: Promise.resolve(`cannot be started: ${codeOf(error as Error)}`), end: async () => 'ended' };
  }
  const output = new Output(onLine);
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
  for (const stream of streams) output.follow(stream);
  const closed = new Promise((resolve) => {
    child.once('close', resolve);
  });
  const ended = (async (): Promise<string | null> => {
    const problem = await outcome(child);
    await Promise.race([closed, sleep(LAST_OUTPUT_MS)]);
    await new Promise(setImmediate); // If this process was delayed, output that arrived meanwhile is read first.
    for (const stream of streams) stream.destroy();
    output.end();
    if (problem === null) return null;
    return output.last === '' ? problem : `${problem}; last output: ${output.last}`;
  })();
  return { ended, end: (graceSeconds) => endGroup(child.pid, graceSeconds) };
}

/** Why a program failed; null: exit code 0. */
function outcome(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`cannot be started: ${codeOf(error)}`));
    child.once('exit', (code, signal) => resolve(code === 0 ? null : signal === null ? `exit code ${code}` : `ended by ${signal}`));
  });
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

/** Sends a signal to a process group; returns whether the group has processes. Signal 0 only checks. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // The group has processes, but of another user.
  }
}

async function endGroup(group: number | undefined, graceSeconds: number): Promise<ExitKind> {
  if (group === undefined || !signalGroup(group, 0)) return 'ended';
  signalGroup(group, 'SIGTERM');
  if (await isGoneWithin(group, graceSeconds)) return 'terminated';
  signalGroup(group, 'SIGKILL');
  await isGoneWithin(group, KILLED_SECONDS);
  return 'killed';
}

/** Polls, because the kernel reports the end of a process only to its parent, and not the end of grandchildren. */
async function isGoneWithin(group: number, seconds: number): Promise<boolean> {
  for (let waitedMs = 0; signalGroup(group, 0); waitedMs += POLL_MS) {
    if (waitedMs >= seconds * 1000) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/** Splits the output of a program into lines and passes on at most MAX_LINES of them. */
class Output {
  readonly #onLine: (line: string) => void;
  readonly #partial = new Map<Readable, string>();
  #lines = 0;
  #last = '';

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  /** The last line that was passed on. */
  get last(): string {
    return this.#last;
  }

  follow(stream: Readable): void {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      this.#take(stream, text);
      if (this.#lines < MAX_LINES) return;
      stream.pause();
      setTimeout(() => stream.resume(), PAUSE_MS);
    });
    stream.on('error', () => {
      // The result depends on the exit of the program, not on a read error of its output.
    });
  }

  /** Passes on the last lines, which may lack a line break. */
  end(): void {
    for (const partial of this.#partial.values()) this.#line(partial);
    this.#partial.clear();
  }

  #take(stream: Readable, text: string): void {
    if (this.#lines >= MAX_LINES) return;
    const lines = text.split('\n');
    lines[0] = (this.#partial.get(stream) ?? '') + lines[0];
    const rest = lines.pop() as string;
    for (const line of lines) this.#line(line);
    this.#partial.set(stream, rest.slice(0, 2 * MAX_LINE_CHARACTERS));
  }

  #line(line: string): void {
    if (this.#lines >= MAX_LINES || line.trim() === '') return;
    this.#lines += 1;
    this.#last = printable(line.trimEnd().replaceAll('\t', ' '), MAX_LINE_CHARACTERS);
    this.#onLine(this.#last);
    if (this.#lines === MAX_LINES) this.#onLine(`(${MAX_LINES} lines: further output is dropped)`);
  }
}
