import * as fs from 'node:fs';

/** Called once with the file's first bytes as text, or with the error that reading gave. */
export type TextCallback = (error: NodeJS.ErrnoException | null, text: string) => void;

const PROC_MAGIC = 0x9fa0;
const SYSFS_MAGIC = 0x62656572;
const MAX_BYTES = 4096;

/**
 * Reads the beginning of a small kernel file, again and again.
 *
 * On procfs it is read at once: the kernel makes those bytes from its own memory, and the read cannot wait for a device
 * (the cost is a third of a trip through the thread pool). Everything else, sysfs with its drivers foremost, is read
 * in the thread pool, where it may hang without holding up the loop. On both the descriptor is kept open; on any other file
 * system (a recorded tree) the file is opened anew each time, since it may be replaced under us.
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

  /** One read at a time. */
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

  /** While a read is under way its descriptor stays: the number could become another file's before the thread has read. */
  close(): void {
    if (this.#underWay) this.#closeWanted = true;
    else this.#release();
  }

  #release(): void {
    if (this.#descriptor === null) return;
    const descriptor = this.#descriptor;
    this.#descriptor = null;
    fs.close(descriptor, () => {
      // Nothing was written through it; a failing close has nothing to tell.
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
    // O_NONBLOCK: a pipe in a recorded tree answers EAGAIN as some sensors do, instead of waiting for a writer.
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

/** A file that does not answer in this time is passed over; powered-down sensors (Jetson's cv*) answer EAGAIN at once. */
const ANSWER_SECONDS = 0.5;

/**
 * Reads small files now and then, e.g. while looking for sensors; never waits longer than half a second. A hanging read holds a
 * thread of the pool until it ends: such a file is not asked again before that.
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
        reject(late(`no answer within ${this.#answerSeconds} s`));
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

/** Names in a folder; none where it is missing or cannot be read. (node:fs/promises takes 3 MB when it is first loaded.) */
export function namesIn(folder: string): Promise<string[]> {
  return new Promise((resolve) => {
    fs.readdir(folder, (error, names) => resolve(error ? [] : names));
  });
}
