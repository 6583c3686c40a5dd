import { createHash, type Hash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { isVoid, type SealedEntry, sealOf } from './chain.ts';

import { type BeginEntry, entryProblem, RECORD_FILE, RECORD_VERSION, type TornEntry } from './entries.ts';

/** A longer line is no entry: a minute at 1000 Hz, received on both channels, has less than a megabyte. */
export const MAX_LINE_BYTES = 16_777_216;
const BLOCK_BYTES = 262_144;
const NEWLINE = 0x0a;

/**
 * `intact`: every byte belongs to the chain, or to a line that was cut off and acknowledged; `torn`: intact except for the bytes after
 * the last entry, which were cut off and are not acknowledged yet; `altered`: changed after it was written; `foreign`: of another
 * format; `none`: no file, or not one whole entry.
 */
export type RecordState = 'intact' | 'torn' | 'altered' | 'foreign' | 'none';

export interface RecordReading {
  readonly state: RecordState;
  /** For people; null: `intact`. Lines count from 1. */
  readonly problem: { readonly line: number; readonly what: string } | null;
  /** Good entries from the begin of the chain on. */
  readonly entries: number;
  /** Up to the end of the last good entry. */
  readonly bytes: number;
  /** Hash of the last good entry; empty: there is none. */
  readonly head: string;
  readonly begin: BeginEntry | null;
  readonly last: SealedEntry | null;
  /** Lines that were cut off and are acknowledged. */
  readonly tornLines: number;
  /** The bytes after the last good entry of a `torn` record. */
  readonly tornEnd: TornEnd | null;
}

export interface TornEnd {
  readonly bytes: number;
  readonly endsLine: boolean;
  /** Of these bytes followed by `more`. */
  readonly sha256With: (more: string) => string;
}

export type OnEntry = (entry: SealedEntry) => void;

/**
 * Reads the record of a folder block by block, and calls `onEntry` with every good entry. If the result is `altered` or `foreign`,
 * anything made of them must be discarded. Throws the errors of the file system, except that there is no file.
 */
export function readRecord(folder: string, onEntry: OnEntry = () => undefined): RecordReading {
  const reader = new ChainReader(onEntry);
  let descriptor: number;
  try {
    descriptor = openSync(join(folder, RECORD_FILE), 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return reader.reading(Buffer.alloc(0));
  }
  try {
    // One buffer for the whole file: the blocks of a week would take 30 MB before they are collected, which a resumed observer keeps.
    let buffer = Buffer.allocUnsafe(2 * BLOCK_BYTES);
    let filled = 0;
    for (;;) {
      if (filled + BLOCK_BYTES > buffer.length) buffer = Buffer.concat([buffer.subarray(0, filled)], 2 * buffer.length);
      const length = readSync(descriptor, buffer, filled, BLOCK_BYTES, null);
      if (length === 0) return reader.reading(buffer.subarray(0, filled));
      const bytes = buffer.subarray(0, filled + length);
      let from = 0;
      for (let end = bytes.indexOf(NEWLINE, filled); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
        if (!reader.line(bytes.subarray(from, end))) return reader.reading(Buffer.alloc(0));
        from = end + 1;
      }
      bytes.copyWithin(0, from);
      filled = bytes.length - from;
      if (filled > MAX_LINE_BYTES) {
        reader.tooLong();
        return reader.reading(Buffer.alloc(0));
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Bytes after the last good entry that a kill or a power cut left of a line, up to its acknowledgement. */
interface Void {
  readonly hash: Hash;
  bytes: number;
}

/** Follows the chain line by line. */
class ChainReader {
  readonly #onEntry: OnEntry;
  #entries = 0;
  #bytes = 0;
  #head = '';
  #lines = 0;
  #tornLines = 0;
  #begin: BeginEntry | null = null;
  #last: SealedEntry | null = null;
  #void: Void | null = null;
  #problem: { readonly state: 'altered' | 'foreign'; readonly line: number; readonly what: string } | null = null;

  constructor(onEntry: OnEntry) {
    this.#onEntry = onEntry;
  }

  /** A whole line without its newline. Returns false if nothing after it can be trusted. */
  line(line: Buffer): boolean {
    this.#lines += 1;
    const entry = this.#parsed(line);
    if (typeof entry === 'string') {
      if (!isVoid(line)) return this.#refuse(entry);
      this.#void ??= { hash: createHash('sha256'), bytes: 0 };
      this.#void.hash.update(line).update('\n');
      this.#void.bytes += line.length + 1;
      return true;
    }
    const acknowledged = this.#void;
    if (acknowledged) {
      const wrong = wrongAcknowledgement(entry, acknowledged);
      if (wrong) return this.#refuse(wrong);
      this.#bytes += acknowledged.bytes;
      this.#tornLines += 1;
      this.#void = null;
    } else if (entry.type === 'torn') return this.#refuse('it acknowledges a line that was cut off, and there is none');
    this.#entries += 1;
    this.#bytes += line.length + 1;
    this.#head = entry.hash;
    this.#last = entry;
    this.#onEntry(entry);
    return true;
  }

  tooLong(): void {
    this.#lines += 1;
    this.#refuse(`it has more than ${MAX_LINE_BYTES} bytes`);
  }

  /** `rest`: what follows the last newline. */
  reading(rest: Buffer): RecordReading {
    const good = {
      entries: this.#entries,
      bytes: this.#bytes,
      head: this.#head,
      begin: this.#begin,
      last: this.#last,
      tornLines: this.#tornLines,
    };
    const { state, ...problem } = this.#problem ?? {};
    if (state) return { state, problem: problem as RecordReading['problem'], ...good, tornEnd: null };
    const bytes = (this.#void?.bytes ?? 0) + rest.length;
    const at = { line: this.#lines + (rest.length > 0 ? 1 : 0) };
    if (this.#entries === 0)
      return {
        state: 'none',
        problem: { ...at, what: bytes === 0 ? 'there is none, or an empty one' : 'it was cut off' },
        ...good,
        tornEnd: null,
      };
    if (bytes === 0) return { state: 'intact', problem: null, ...good, tornEnd: null };
    const hash = (this.#void?.hash ?? createHash('sha256')).update(rest);
    const tornEnd: TornEnd = { bytes, endsLine: rest.length === 0, sha256With: (more) => hash.copy().update(more).digest('hex') };
    return { state: 'torn', problem: { ...at, what: `it was cut off after ${bytes} bytes` }, ...good, tornEnd };
  }

  /** The entry of a line, or what is wrong with the line. */
  #parsed(line: Buffer): SealedEntry | string {
    let value: unknown;
    try {
      value = JSON.parse(line.toString('utf8'));
    } catch {
      return 'it is no JSON';
    }
    if (this.#entries === 0) {
      const begun = this.#begun(value);
      if (begun) return begun;
    }
    const seal = sealOf(line, this.#entries === 0 ? String((value as BeginEntry).run) : this.#head);
    if (seal === null) return 'it does not end with a hash';
    const { n } = value as SealedEntry;
    if (n !== this.#entries) return `it is entry ${JSON.stringify(n)}, where entry ${this.#entries} should be`;
    if (seal.stated !== seal.due) return 'its hash is not that of its text and the entry before';
    const wrong = entryProblem(value);
    if (wrong) return wrong;
    const entry = value as SealedEntry;
    if ((entry.type === 'begin') !== (this.#entries === 0)) return 'a begin can only be the first entry';
    if (entry.type === 'begin') this.#begin = entry;
    return entry;
  }

  #begun(value: unknown): string | null {
    const { type, format, run } = (value ?? {}) as Partial<BeginEntry>;
    if (type !== 'begin' || typeof run !== 'string') return 'it is not the begin of a record';
    if (format === RECORD_VERSION) return null;
    this.#problem = { state: 'foreign', line: 1, what: `it has format ${JSON.stringify(format)}; this version reads ${RECORD_VERSION}` };
    return this.#problem.what;
  }

  #refuse(what: string): false {
    this.#problem ??= { state: 'altered', line: this.#lines, what };
    return false;
  }
}

function wrongAcknowledgement(entry: SealedEntry, { bytes, hash }: Void): string | null {
  const { type, ...torn } = entry as TornEntry;
  if (type !== 'torn') return 'the line before is no entry, and nothing acknowledges it';
  return torn.bytes === bytes && torn.sha256 === hash.digest('hex') ? null : 'the line before is not what it acknowledges';
}
