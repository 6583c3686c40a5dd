import * as fs from 'node:fs';

/** Called once with the first bytes of the file as text, or with the error of the read. */
export type TextCallback = (error: NodeJS.ErrnoException | null, text: string) => void;

const PROC_MAGIC = 0x9fa0;
const SYSFS_MAGIC = 0x62656572;
const MAX_BYTES = 4096;

/**
 * Reads the beginning of a small kernel file repeatedly.
 *
 * A file of procfs is read synchronously, at a third of the cost of the thread pool: the kernel generates its content from memory, so that
 * the read cannot wait for a device. Other files, in particular those of drivers in sysfs, are read in the thread pool, where they may hang
 * without blocking the event loop. In procfs and sysfs the descriptor is kept open. In other file systems (a recorded tree) the file is
 * opened for each read, since it may be replaced.
 */
export class TextFile {
  readonly path: string;
  readonly #buffer: Buffer;
  #descriptor: number | null = null;
  #kind: 'proc' | 'sysfs' | 'other' | null = null;
  #underWay = false;
  #closeWanted = false;

  constructor(path: string, maxBytes: number = MAX_BYTES) {
    this.path = path;
    this.#buffer = Buffer.allocUnsafeSlow(maxBytes);
  }

  /** Starts a read; only one at a time. */
  read(callback: TextCallback): void {
    if (this.#kind === 'proc') {
      this.#readNow(callback);
      return;
    }
    this.#underWay = true;
    const done: TextCallback = (error, text) => {
      this.#underWay = false;
      if (error || this.#kind === 'other' || this.#closeWanted) this.#release();
      this.#closeWanted = false;
      callback(error, text);
    };
    if (this.#kind === null) this.#classify(done);
    else if (this.#descriptor !== null) this.#readLater(this.#descriptor, done);
    else this.#openAndRead(done);
  }

  /** Keeps the descriptor open while a read is in progress, because its number could be reused for another file before the thread reads. */
  close(): void {
    if (this.#underWay) this.#closeWanted = true;
    else this.#release();
  }

  #release(): void {
    if (this.#descriptor === null) return;
    const descriptor = this.#descriptor;
    this.#descriptor = null;
    fs.close(descriptor, () => {
      // An error of close() is irrelevant for a file that was only read.
    });
  }

  #classify(callback: TextCallback): void {
    fs.statfs(this.path, (error, stats) => {
      if (error) return callback(error, '');
      this.#kind = stats.type === PROC_MAGIC ? 'proc' : stats.type === SYSFS_MAGIC ? 'sysfs' : 'other';
      if (this.#kind === 'proc') this.#readNow(callback);
      else this.#openAndRead(callback);
    });
  }

  #readNow(callback: TextCallback): void {
    let text: string;
    try {
      this.#descriptor ??= fs.openSync(this.path, fs.constants.O_RDONLY);
      text = this.#text(fs.readSync(this.#descriptor, this.#buffer, 0, this.#buffer.length, 0));
    } catch (error) {
      this.#release();
      callback(error as NodeJS.ErrnoException, '');
      return;
    }
    callback(null, text);
  }

  #openAndRead(callback: TextCallback): void {
    // O_NONBLOCK: a pipe in a recorded tree returns EAGAIN, as some sensors do, instead of waiting for a writer.
    fs.open(this.path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK, (error, descriptor) => {
      if (error) return callback(error, '');
      this.#descriptor = descriptor;
      this.#readLater(descriptor, callback);
    });
  }

  #readLater(descriptor: number, callback: TextCallback): void {
    // A pipe has no offsets (ESPIPE); a kernel file must be read from its start each time.
    const position = this.#kind === 'sysfs' ? 0 : null;
    fs.read(descriptor, this.#buffer, 0, this.#buffer.length, position, (error, bytes) => {
      callback(error, error ? '' : this.#text(bytes));
    });
  }

  #text(bytes: number): string {
    return this.#buffer.toString('latin1', 0, bytes);
  }
}

/** Timeout of a read, after which the file is skipped. Powered-down sensors (cv* of a Jetson) return EAGAIN at once. */
const ANSWER_SECONDS = 0.5;

/**
 * Reads small files occasionally, such as during the search for sensors, with a timeout of 0.5 s. A hanging read blocks a thread of the
 * pool; the file is not read again before that read has ended.
 */
export class OccasionalReader {
  readonly #hanging = new Set<string>();
  readonly #answerSeconds: number;

  constructor(answerSeconds = ANSWER_SECONDS) {
    this.#answerSeconds = answerSeconds;
  }

  /** Rejects with ETIMEDOUT for a file that hangs, now or since an earlier read. */
  read(path: string): Promise<string> {
    const late = (what: string): Error => Object.assign(new Error(what), { code: 'ETIMEDOUT' });
    if (this.#hanging.has(path)) return Promise.reject(late('still hanging since an earlier read'));
    return new Promise((resolve, reject) => {
      const file = new TextFile(path);
      const timer = setTimeout(() => {
        this.#hanging.add(path);
        reject(late(`no response within ${this.#answerSeconds} s`));
      }, this.#answerSeconds * 1000);
      file.read((error, text) => {
        clearTimeout(timer);
        this.#hanging.delete(path);
        file.close();
        if (error) reject(error);
        else resolve(text);
      });
    });
  }
}

/** Names in a folder; none if it is missing or cannot be read. node:fs/promises is avoided because it takes 3 MB of memory. */
export function namesIn(folder: string): Promise<string[]> {
  return new Promise((resolve) => {
    fs.readdir(folder, (error, names) => resolve(error ? [] : names));
  });
}
