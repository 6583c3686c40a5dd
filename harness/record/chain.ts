import { createHash } from 'node:crypto';
import type { RecordEntry } from './entries.ts';

/**
 * The hash chain. A line of the record is an entry as JSON, whose last two members are `"n"`, its number from 0, and `"hash"`. The hash is
 * the SHA-256, in hex, of the previous hash (for the first entry, of the run's id) followed by the line without `,"hash":"…"`. A hash that
 * was stored elsewhere proves that no byte before it has changed.
 */
export type SealedEntry = RecordEntry & { readonly n: number; readonly hash: string };

const NEWLINE = 0x0a;
const HASH_BYTES = 64;
const BEFORE_HASH = Buffer.from(',"hash":"');
const AFTER_HASH = Buffer.from('"}');
/** Length of a line's end from the hash member on, without the newline. */
const SEAL_BYTES = BEFORE_HASH.length + HASH_BYTES + AFTER_HASH.length;
const BRACE = Buffer.from('}');

/**
 * Written between a truncated line and the entry that acknowledges it. The control character CAN marks the bytes before it as void. JSON
 * cannot contain it, so a truncated line and an altered one can be distinguished whenever a power cut happens.
 */
export const TORN_MARK = '\u0018\n';

export interface Sealed {
  /** Includes the newline. */
  readonly line: Buffer;
  readonly hash: string;
}

export function seal(entry: RecordEntry, n: number, previous: string): Sealed {
  const text = Buffer.from(JSON.stringify({ ...entry, n }));
  const hash = linked(previous, text.subarray(0, -1));
  return { line: Buffer.concat([text.subarray(0, -1), BEFORE_HASH, Buffer.from(hash), AFTER_HASH, Buffer.of(NEWLINE)]), hash };
}

/** The hash at the end of a line without its newline, and the hash that is expected there after `previous`; null if there is no hash. */
export function sealOf(line: Buffer, previous: string): { readonly stated: string; readonly due: string } | null {
  const at = line.length - SEAL_BYTES;
  if (at < 1 || line.compare(BEFORE_HASH, 0, BEFORE_HASH.length, at, at + BEFORE_HASH.length) !== 0) return null;
  if (line.compare(AFTER_HASH, 0, AFTER_HASH.length, line.length - AFTER_HASH.length) !== 0) return null;
  const stated = line.toString('latin1', at + BEFORE_HASH.length, at + BEFORE_HASH.length + HASH_BYTES);
  return { stated, due: linked(previous, line.subarray(0, at)) };
}

/** `text` excludes its last brace. */
function linked(previous: string, text: Buffer): string {
  return createHash('sha256').update(previous).update(text).update(BRACE).digest('hex');
}

/**
 * Whether a line contains a control character, which no entry does: it was truncated and marked as void, or a power cut left zeros in it.
 */
export function isVoid(line: Buffer): boolean {
  for (let i = 0; i < line.length; i += 1) if ((line[i] as number) < 0x20) return true;
  return false;
}
