import * as fs from 'node:fs';

/** Text that waits for its reader. A burst of several hundred lines fits. */
const MAX_WAITING_BYTES = 64 * 1024;
/** The reader of a pipe or a terminal continues without an event. */
const RETRY_MS = 100;
/** Limits how long a process waits at its exit for a reader that reads slowly or not at all. */
const EXIT_MS = 1000;
const EXIT_POLL_MS = 10;

const { O_NOCTTY, O_NONBLOCK, O_WRONLY } = fs.constants;

interface Waiting {
  bytes: Buffer;
  /** Lines that are lost if it cannot be written. */
  readonly lines: number;
}

/**
 * Writes lines to a file descriptor and never waits for it: not for a terminal stopped by Ctrl-S, a full pipe or a journal that hangs. Lines
 * for which there is no space are dropped and counted; `dropped` formats the line that reports them, which follows as soon as it can be
 * written. Where the kernel can refuse a write, a line is written before `write` returns, so that it precedes a crash. It cannot for a
 * regular file, where a thread of the pool writes it.
 */
export class LogOutput {
  readonly #descriptor: number;
  readonly #refuses: boolean;
  readonly #dropped: (lines: number) => string;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #droppedLines = 0;
  /** Whether a thread of the pool is writing the first of `#waiting`. */
  #isWriting = false;
  #timer: NodeJS.Timeout | null = null;
  readonly #onExit = (): void => this.#flush();

  /** The descriptor must be that of an existing stream, because Node makes those of pipes and sockets non-blocking. */
  constructor(descriptor: number, dropped: (lines: number) => string) {
    this.#descriptor = reopened(descriptor) ?? descriptor;
    this.#refuses = isNonBlocking(this.#descriptor);
    this.#dropped = dropped;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    // After a dropped line, the following ones are dropped as well, so that the report stands where they are missing.
    if ((this.#droppedLines > 0 && this.#waiting.length > 0) || this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#droppedLines += 1;
      return;
    }
    this.#reportDropped();
    this.#push({ bytes, lines: 1 });
    if (this.#timer === null) this.#send();
  }

  #push(waiting: Waiting): void {
    if (this.#waiting.push(waiting) === 1) process.on('exit', this.#onExit);
    this.#waitingBytes += waiting.bytes.length;
  }

  #reportDropped(): void {
    if (this.#droppedLines === 0) return;
    this.#push({ bytes: Buffer.from(this.#dropped(this.#droppedLines)), lines: this.#droppedLines });
    this.#droppedLines = 0;
  }

  #send(): void {
    for (let first = this.#waiting[0]; first !== undefined && !this.#isWriting; first = this.#waiting[0]) {
      if (!this.#refuses) {
        this.#isWriting = true;
        fs.write(this.#descriptor, first.bytes, (error, written) => {
          this.#isWriting = false;
          this.#written(error, written);
          this.#send();
        });
      } else if (!this.#sendNow(first)) {
        this.#timer = setTimeout(() => {
          this.#timer = null;
          this.#send();
        }, RETRY_MS).unref();
        return;
      }
    }
  }

  /** Returns false if the reader accepts nothing at present. */
  #sendNow({ bytes }: Waiting): boolean {
    try {
      this.#written(null, fs.writeSync(this.#descriptor, bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
      this.#written(error as Error, 0);
    }
    return true;
  }

  #written(error: Error | null, length: number): void {
    const first = this.#waiting[0] as Waiting;
    const isComplete = error !== null || length === first.bytes.length;
    this.#waitingBytes -= isComplete ? first.bytes.length : length;
    first.bytes = first.bytes.subarray(length);
    if (!isComplete) return;
    this.#waiting.shift();
    if (error !== null)
      this.#droppedLines += first.lines; // The disk is full, or the reader is gone. The next line is attempted again.
    else if (this.#waiting.length === 0) this.#reportDropped();
    if (this.#waiting.length === 0) process.off('exit', this.#onExit);
  }

  /** Writes what waits, at the exit of the process. */
  #flush(): void {
    // A thread of the pool completes its write before the process ends.
    if (this.#isWriting) this.#waiting.shift();
    const end = performance.now() + EXIT_MS;
    for (let first = this.#waiting[0]; first !== undefined && performance.now() < end; first = this.#waiting[0]) {
      if (!this.#sendNow(first)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, EXIT_POLL_MS);
    }
  }
}

/**
 * Another open file of a terminal or a pipe, which can be non-blocking without an effect on the shell that has the same terminal. Null for
 * other kinds, and if the user has no permission to open it.
 */
function reopened(descriptor: number): number | null {
  try {
    const stats = fs.fstatSync(descriptor);
    if (!stats.isFIFO() && !stats.isCharacterDevice()) return null;
    return fs.openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return null;
  }
}

function isNonBlocking(descriptor: number): boolean {
  try {
    const [, flags = '0'] = /^flags:\s*(\d+)/m.exec(fs.readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')) ?? [];
    return (Number.parseInt(flags, 8) & O_NONBLOCK) !== 0 && !fs.fstatSync(descriptor).isFile();
  } catch {
    return false;
  }
}
