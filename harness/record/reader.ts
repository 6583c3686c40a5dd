import { createHash, type Hash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { isVoid, type SealedEntry, sealOf } from './chain.ts';
import { type BeginEntry, entryProblem, RECORD_FILE, RECORD_VERSION } from './entries.ts';

/** A longer line is not an entry: a minute at 1000 Hz, received on both channels, is smaller than a megabyte. */
export const MAX_LINE_BYTES = 16_777_216;
const BLOCK_BYTES = 262_144;
const NEWLINE = 0x0a;

/**
 * `intact`: every byte belongs to the chain or to a truncated line that was acknowledged; `torn`: intact except for truncated bytes after
 * the last entry that are not yet acknowledged; `altered`: changed after it was written; `unsupported`: of another format; `none`: no
 * file, or no complete entry.
 */
type RecordState = 'intact' | 'torn' | 'altered' | 'unsupported' | 'none';

export interface RecordReading {
  readonly state: RecordState;
  /** For display; null if `intact`. Lines count from 1. */
  readonly problem: { readonly line: number; readonly what: string } | null;
  /** Number of valid entries from the start of the chain. */
  readonly entries: number;
  /** Length up to the end of the last valid entry. */
  readonly bytes: number;
  /** Hash of the last valid entry; empty if there is none. */
  readonly head: string;
  readonly begin: BeginEntry | null;
  readonly last: SealedEntry | null;
  /** Truncated lines that are acknowledged. */
  readonly tornLines: number;
  /** The bytes after the last valid entry of a `torn` record. */
  readonly tornEnd: TornEnd | null;
}

export interface TornEnd {
  readonly bytes: number;
  readonly endsLine: boolean;
  /** Hash of these bytes followed by `more`. */
  readonly sha256With: (more: string) => string;
}

export type OnEntry = (entry: SealedEntry) => void;

/**
 * Reads the record of a folder block by block, and calls `onEntry` with every valid entry. If the result is `altered` or `unsupported`, the
 * caller must discard everything derived from the entries. Throws file system errors, except for a missing file.
 */
export function readRecord(folder: string, onEntry: OnEntry = () => undefined): RecordReading {
  const chain = new ChainReader(onEntry);
  let descriptor: number;
  try {
    descriptor = openSync(join(folder, RECORD_FILE), 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return chain.reading();
  }
  try {
    // Uses one buffer for the whole file: the blocks of a week would take 30 MB before garbage collection, which a
    // resumed observer would retain.
    let buffer = Buffer.allocUnsafe(2 * BLOCK_BYTES);
    let filled = 0;
    for (;;) {
      if (filled + BLOCK_BYTES > buffer.length) buffer = Buffer.concat([buffer.subarray(0, filled)], 2 * buffer.length);
      const length = readSync(descriptor, buffer, filled, BLOCK_BYTES, null);
      if (length === 0) return chain.reading(buffer.subarray(0, filled));
      const bytes = buffer.subarray(0, filled + length);
      let from = 0;
      for (let end = bytes.indexOf(NEWLINE, filled); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
        if (!chain.addLine(bytes.subarray(from, end))) return chain.reading();
        from = end + 1;
      }
      bytes.copyWithin(0, from);
      filled = bytes.length - from;
      if (filled > MAX_LINE_BYTES) {
        chain.refuseLongLine();
        return chain.reading();
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

/** The bytes of a partial line after the last valid entry, left by a kill or a power cut, up to their acknowledgement. */
interface Void {
  readonly hash: Hash;
  bytes: number;
}

/** Verifies the chain line by line. */
class ChainReader {
  readonly #onEntry: OnEntry;
  readonly #good = {
    entries: 0,
    bytes: 0,
    head: '',
    begin: null as BeginEntry | null,
    last: null as SealedEntry | null,
    tornLines: 0,
  };
  #lines = 0;
  #void: Void | null = null;
  #refused: Pick<RecordReading, 'state' | 'problem'> | null = null;

  constructor(onEntry: OnEntry) {
    this.#onEntry = onEntry;
  }

  /** Adds a whole line without its newline. Returns false if nothing after it can be trusted. */
  addLine(line: Buffer): boolean {
    this.#lines += 1;
    const entry = this.#parse(line);
    if (typeof entry === 'string') {
      if (!isVoid(line)) return this.#refuse(entry);
      this.#void ??= { hash: createHash('sha256'), bytes: 0 };
      this.#void.hash.update(line).update('\n');
      this.#void.bytes += line.length + 1;
      return true;
    }
    const good = this.#good;
    const acknowledged = this.#void;
    if (acknowledged) {
      const wrong = wrongAcknowledgement(entry, acknowledged);
      if (wrong) return this.#refuse(wrong);
      good.bytes += acknowledged.bytes;
      good.tornLines += 1;
      this.#void = null;
    } else if (entry.type === 'torn') return this.#refuse('it acknowledges a line that was cut off, and there is none');
    if (entry.type === 'begin') good.begin = entry;
    good.entries += 1;
    good.bytes += line.length + 1;
    good.head = entry.hash;
    good.last = entry;
    this.#onEntry(entry);
    return true;
  }

  refuseLongLine(): void {
    this.#lines += 1;
    this.#refuse(`it has more than ${MAX_LINE_BYTES} bytes`);
  }

  /** `rest`: the bytes after the last newline. */
  reading(rest: Buffer = Buffer.alloc(0)): RecordReading {
    if (this.#refused) return { ...this.#refused, ...this.#good, tornEnd: null };
    const bytes = (this.#void?.bytes ?? 0) + rest.length;
    const line = this.#lines + (rest.length > 0 ? 1 : 0);
    if (this.#good.entries === 0) {
      const what = bytes === 0 ? 'there is none, or an empty one' : 'it was cut off';
      return { state: 'none', problem: { line, what }, ...this.#good, tornEnd: null };
    }
    if (bytes === 0) return { state: 'intact', problem: null, ...this.#good, tornEnd: null };
    const hash = (this.#void?.hash ?? createHash('sha256')).update(rest);
    const tornEnd: TornEnd = { bytes, endsLine: rest.length === 0, sha256With: (more) => hash.copy().update(more).digest('hex') };
    return { state: 'torn', problem: { line, what: `it was cut off after ${bytes} bytes` }, ...this.#good, tornEnd };
  }

  /** Returns the entry of a line, or the problem of the line. */
  #parse(line: Buffer): SealedEntry | string {
    let value: unknown;
    try {
      value = JSON.parse(line.toString('utf8'));
    } catch {
      return 'it is not JSON';
    }
    const { entries } = this.#good;
    let previous = this.#good.head;
    if (entries === 0) {
      const { type, format, run } = (value ?? {}) as Partial<BeginEntry>;
      if (type !== 'begin' || typeof run !== 'string') return 'it is not the begin of a record';
      if (format !== RECORD_VERSION) {
        const what = `it has format ${JSON.stringify(format)}; this version reads ${RECORD_VERSION}`;
        this.#refuse(what, 'unsupported');
        return what;
      }
      previous = run;
    }
    const seal = sealOf(line, previous);
    if (seal === null) return 'it does not end with a hash';
    const { n, type } = value as SealedEntry;
    if (n !== entries) return `it is entry ${JSON.stringify(n)}, where entry ${entries} should be`;
    if (seal.stated !== seal.due) return 'its hash is not that of its text and the entry before';
    const wrong = entryProblem(value);
    if (wrong) return wrong;
    return (type === 'begin') === (entries === 0) ? (value as SealedEntry) : 'a begin can only be the first entry';
  }

  /** Only the first refusal counts. */
  #refuse(what: string, state: 'altered' | 'unsupported' = 'altered'): false {
    this.#refused ??= { state, problem: { line: this.#lines, what } };
    return false;
  }
}

function wrongAcknowledgement(entry: SealedEntry, { bytes, hash }: Void): string | null {
  if (entry.type !== 'torn') return 'the line before is no entry, and nothing acknowledges it';
  return entry.bytes === bytes && entry.sha256 === hash.digest('hex') ? null : 'the line before is not what it acknowledges';
}
