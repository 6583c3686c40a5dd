import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { EndedHow, RunningItem } from '../core/shutdown-ports.ts';
import { printable } from '../core/text.ts';

export interface ProgramOptions {
  /** A path, or a name to be found in the environment's PATH. */
  readonly file: string;
  readonly parameters: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Told each line that it writes, to either stream, as far as they are taken in. */
  readonly onLine: (line: string) => void;
}

/** Bounds of what is taken in of a program's output. */
const MAX_LINES = 200;
const MAX_LINE_CHARACTERS = 400;
/** What goes beyond is read and dropped, so that the program does not stand still, but not faster than this. */
const PAUSE_MS = 10;
/** How long the last of the output is waited for after the program ended; somebody else may hold the stream open. */
const LAST_OUTPUT_MS = 100;
const POLL_MS = 10;
/** A killed process that does not go (it hangs in the kernel) is not waited for any longer. */
const KILLED_SECONDS = 0.25;

/**
 * Starts a program in a process group of its own, without input. It counts as ended when its first process has; what it leaves behind
 * in its group is ended with it.
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
    await Promise.race([closed, later(LAST_OUTPUT_MS)]);
    await new Promise(setImmediate); // Where this process itself was late, what has come meanwhile is read first.
    for (const stream of streams) stream.destroy();
    output.end();
    if (problem === null) return null;
    return output.last === '' ? problem : `${problem}; its last words: ${output.last}`;
  })();
  return { ended, end: (graceSeconds) => endGroup(child.pid, graceSeconds) };
}

/** Null: it ended well. */
function outcome(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`cannot be started: ${codeOf(error)}`));
    child.once('exit', (code, signal) => resolve(code === 0 ? null : signal === null ? `exit code ${code}` : `ended by ${signal}`));
  });
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message;
}

function later(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

/** Whether there was anybody in the group to get it. Signal 0 only asks. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // Somebody is there, but not ours to signal.
  }
}

async function endGroup(group: number | undefined, graceSeconds: number): Promise<EndedHow> {
  if (group === undefined || !signalGroup(group, 0)) return 'ended';
  signalGroup(group, 'SIGTERM');
  if (await isGoneWithin(group, graceSeconds)) return 'terminated';
  signalGroup(group, 'SIGKILL');
  await isGoneWithin(group, KILLED_SECONDS);
  return 'killed';
}

/** The kernel tells nobody but a parent when a process ends: of grandchildren it has to be asked. */
async function isGoneWithin(group: number, seconds: number): Promise<boolean> {
  for (let waitedMs = 0; signalGroup(group, 0); waitedMs += POLL_MS) {
    if (waitedMs >= seconds * 1000) return false;
    await later(POLL_MS);
  }
  return true;
}

/** Cuts what a program writes into lines, and takes in so many of them. */
class Output {
  readonly #onLine: (line: string) => void;
  readonly #partial = new Map<Readable, string>();
  #lines = 0;
  #last = '';

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  /** The last line that was taken in. */
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
      // Whatever broke it, the program's end tells how it went.
    });
  }

  /** Takes in last lines that lack their end. */
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
    if (this.#lines === MAX_LINES) this.#onLine(`(${MAX_LINES} lines: what follows is dropped)`);
  }
}
