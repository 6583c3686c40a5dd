import { readFileSync } from 'node:fs';
import { openLibc } from './libc.ts';

/** asm-generic/mman-common.h; the same on every architecture supported by Node. */
const MADV_DONTNEED = 4;

/**
 * Removes the unmodified pages of the program file from the resident memory of this process; pages still needed are mapped again from the
 * page cache. Of Node's 100 MB, the start touches about 50, and an idle program needs half of them. Returns the bytes released; 0 without
 * node:ffi or procfs.
 */
export function releaseProgramPages(): number {
  let bytes = 0;
  try {
    const { madvise } = openLibc({ madvise: { arguments: ['u64', 'u64', 'i32'], return: 'i32' } });
    for (const { from, residentBytes, to } of unchangedMappings(readFileSync('/proc/self/smaps', 'utf8'), process.execPath)) {
      if (madvise(from, to - from, MADV_DONTNEED) === 0) bytes += residentBytes;
    }
  } catch {
    // The pages remain resident.
  }
  return bytes;
}

/** When the pages that only the start needs are released, and how often those of rare work are released. */
const FIRST_MS = 60_000;
const PERIOD_MS = 3_600_000;

/** Releases the program's pages a minute from now and then hourly, for a program that runs for months. Returns a function to end it. */
export function releaseProgramPagesHourly(): () => void {
  const first = setTimeout(releaseProgramPages, FIRST_MS).unref();
  const hourly = setInterval(releaseProgramPages, PERIOD_MS).unref();
  return () => {
    clearTimeout(first);
    clearInterval(hourly);
  };
}

export interface Mapping {
  /** Addresses; `to` is exclusive. */
  readonly from: bigint;
  readonly to: bigint;
  readonly residentBytes: number;
}

/**
 * Read-only mappings of a file in the text of /proc/PID/smaps (proc_pid_smaps(5)) whose pages all equal the file. A page that the dynamic
 * linker has modified could not be restored.
 */
export function unchangedMappings(smaps: string, file: string): Mapping[] {
  const found: Mapping[] = [];
  for (const mapping of smaps.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const [, from, to, path] = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ \S+ +(.*)$/m.exec(mapping) ?? [];
    if (from === undefined || to === undefined || path !== file) continue;
    const own = ['Anonymous', 'Swap', 'Private_Dirty'].map((name) => kilobytes(mapping, name));
    if (own.some((value) => value !== 0)) continue;
    found.push({ from: BigInt(`0x${from}`), to: BigInt(`0x${to}`), residentBytes: (kilobytes(mapping, 'Rss') ?? 0) * 1024 });
  }
  return found;
}

function kilobytes(mapping: string, name: string): number | null {
  const value = new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(mapping)?.[1];
  return value === undefined ? null : Number(value);
}
