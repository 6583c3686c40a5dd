import * as fs from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../src/core/files/data-folder.ts';
import { takeLock } from '../../src/core/files/lock.ts';
import { seal, TORN_MARK } from './chain.ts';
import { type BeginEntry, type Clocked, RECORD_FILE, type RecordEntry } from './entries.ts';
import { PendingEntries } from './pending-entries.ts';
import { type OnEntry, type RecordReading, readRecord, type TornEnd } from './reader.ts';
import { attempt, explained, RecordError } from './record-error.ts';

export interface Opened {
  readonly writer: RecordWriter;
  /** State of the record as it was found. */
  readonly reading: RecordReading;
  /** Whether a truncated line has been acknowledged. */
  readonly torn: boolean;
}

const LOCK_FILE = 'record.lock';
const FILE_MODE = 0o644;
/** Size of the pieces in which pending entries are written, in bytes. */
const WRITE_BYTES = 262_144;

type Lock = NonNullable<ReturnType<typeof takeLock>>;

interface Begun {
  rest: Buffer;
  readonly entries: number;
  /** The hash at the end of its last line. */
  readonly head: string;
}

/**
 * Writes record.ndjson. Entries are on disk when `append` returns and there is no `problem`. Written bytes are never changed or truncated.
 * Only one process at a time may write a record; the kernel releases the lock when the process ends for any reason.
 */
export class RecordWriter {
  readonly #file: string;
  readonly #lock: Lock;
  readonly #descriptor: number;
  readonly #pending = new PendingEntries();
  #head: string;
  #entries: number;
  #bytes: number;
  /** Sealed entries that are not completely written. */
  #begun: Begun | null = null;
  #unsynced = false;
  #problem: string | null = null;

  private constructor(file: string, lock: Lock, { head, entries, bytes }: Pick<RecordReading, 'head' | 'entries' | 'bytes'>) {
    this.#file = file;
    this.#lock = lock;
    this.#descriptor = attempt(file, () => fs.openSync(file, 'a'));
    this.#head = head;
    this.#entries = entries;
    this.#bytes = bytes;
  }

  /** Creates a record in a folder, which is created if necessary. Throws RecordError. */
  static create(folder: string, begin: BeginEntry): RecordWriter {
    attempt(folder, () => makeFolder(folder));
    return withLock(folder, (lock) => {
      const file = join(folder, RECORD_FILE);
      if (fs.existsSync(file) && fs.statSync(file).size > 0)
        throw new RecordError('exists', `${file}: a run is recorded there already; resume it, or choose another folder with --out`);
      const { line, hash } = seal(begin, 0, begin.run);
      attempt(folder, () => {
        // Written under a temporary name first, so that an existing record always has a begin entry.
        fs.writeFileSync(`${file}.new`, line, { mode: FILE_MODE, flush: true });
        fs.renameSync(`${file}.new`, file);
        syncFolder(folder);
      });
      return new RecordWriter(file, lock, { head: hash, entries: 1, bytes: line.length });
    });
  }

  /** Resumes the record of a folder; `onEntry` receives every existing entry. Throws RecordError. */
  static open(folder: string, clocks: () => Clocked, onEntry?: OnEntry): Opened {
    const file = join(folder, RECORD_FILE);
    if (!fs.existsSync(file)) throw noRecord(file);
    return withLock(folder, (lock) => {
      const reading = attempt(folder, () => readRecord(folder, onEntry));
      refuseUnlessGood(file, reading);
      const writer = new RecordWriter(file, lock, reading);
      if (reading.tornEnd) writer.#acknowledge(reading.tornEnd, clocks());
      return { writer, reading, torn: reading.tornEnd !== null };
    });
  }

  /** Hash of the last entry in the file. */
  get head(): string {
    return this.#head;
  }

  /** Number of entries in the file. */
  get entries(): number {
    return this.#entries;
  }

  /** Length of the file. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of entries that could not be written yet. */
  get pending(): number {
    return this.#pending.length + (this.#begun?.entries ?? 0);
  }

  /** Why the last write failed, and the remedy; null if everything is on disk. */
  get problem(): string | null {
    return this.#problem;
  }

  /**
   * Adds entries in one write. Entries that cannot be written are kept and written before the next ones (pending-entries.ts has the limit).
   * Throws RecordError ('changed') if another program has removed or changed the file: the run cannot continue.
   */
  append(...entries: readonly RecordEntry[]): void {
    for (const entry of entries) this.#pending.add(entry);
    this.flush();
  }

  /** Tries to write the pending entries; returns whether all of them are on disk. */
  flush(): boolean {
    this.#refuseIfChanged();
    try {
      if (this.#begun) this.#finish(this.#begun);
      while (this.#pending.length > 0) this.#finish(this.#begin(this.#pending.take(WRITE_BYTES)));
      if (this.#unsynced) fs.fdatasyncSync(this.#descriptor);
      this.#unsynced = false;
      this.#problem = null;
    } catch (error) {
      this.#problem = explained(this.#file, error);
    }
    return this.#problem === null;
  }

  close(): void {
    fs.closeSync(this.#descriptor);
    this.#lock.close();
  }

  /** `before` is written in front of the entries. */
  #begin(entries: readonly RecordEntry[], before = ''): Begun {
    const lines: Buffer[] = [Buffer.from(before)];
    let head = this.#head;
    for (const [i, entry] of entries.entries()) {
      const { line, hash } = seal(entry, this.#entries + i, head);
      lines.push(line);
      head = hash;
    }
    this.#begun = { rest: Buffer.concat(lines), entries: entries.length, head };
    return this.#begun;
  }

  /** Makes one write, unless the disk becomes full during it; the remainder is then written later. */
  #finish(begun: Begun): void {
    while (begun.rest.length > 0) {
      const written = fs.writeSync(this.#descriptor, begun.rest);
      this.#unsynced = true;
      this.#bytes += written;
      begun.rest = begun.rest.subarray(written);
    }
    this.#begun = null;
    this.#head = begun.head;
    this.#entries += begun.entries;
  }

  #acknowledge(end: TornEnd, clocked: Clocked): void {
    this.#bytes += end.bytes;
    // The mark and the entry are one write: any part of it that a power cut leaves is void, like the truncated line itself.
    const mark = end.endsLine ? '' : TORN_MARK;
    this.#begin([{ type: 'torn', ...clocked, bytes: end.bytes + mark.length, sha256: end.sha256With(mark) }], mark);
    this.flush();
  }

  #refuseIfChanged(): void {
    let there: fs.Stats | undefined;
    try {
      there = fs.statSync(this.#file, { throwIfNoEntry: false });
    } catch {
      return; // The write will fail and report the error.
    }
    const own = fs.fstatSync(this.#descriptor);
    const isOurs = there?.ino === own.ino && there.dev === own.dev;
    if (isOurs && own.size === this.#bytes) return;
    const what = isOurs ? `has ${own.size} bytes, where ${this.#bytes} were written` : 'was removed or replaced';
    throw new RecordError('changed', `${this.#file} ${what}: another program changed it during the run; begin a new one in another folder`);
  }
}

/** Locks a folder during `work`, and until the writer that it returns is closed. */
function withLock<T>(folder: string, work: (lock: Lock) => T): T {
  const lock = attempt(folder, () => {
    fs.accessSync(folder, fs.constants.W_OK);
    return takeLock(join(folder, LOCK_FILE));
  });
  if (lock === null) {
    const what = 'another edge-health harness records there; stop that one, or choose another folder with --out';
    throw new RecordError('in-use', `${folder}: ${what}`);
  }
  try {
    return work(lock);
  } catch (error) {
    lock.close();
    throw error;
  }
}

function refuseUnlessGood(file: string, { state, problem }: RecordReading): void {
  if (state === 'intact' || state === 'torn') return;
  if (state === 'none') throw noRecord(file);
  const where = `${file}, line ${problem?.line}: ${problem?.what}`;
  const advice = 'Keep it as it is, and begin a new run in another folder with --out';
  if (state === 'unsupported') throw new RecordError('unsupported', `${where}. ${advice}`);
  throw new RecordError('altered', `${where}. The record was altered, and proves nothing from that line on. ${advice}`);
}

function noRecord(file: string): RecordError {
  return new RecordError('none', `${file}: no run is recorded there; begin one, or name its folder with --out`);
}

function syncFolder(folder: string): void {
  const descriptor = fs.openSync(folder, 'r');
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}
