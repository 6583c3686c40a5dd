import { statSync } from 'node:fs';
import { ImplausibleReading, parsing, type ReadCallback, type Source } from './source.ts';
import { TextFile } from './text-file.ts';

function kibibytes(text: string, key: string): number {
  const start = text.indexOf(`${key}:`);
  if (start < 0) throw new ImplausibleReading(`no ${key} in meminfo`);
  const match = /^\s*(-?\d+) kB/.exec(text.slice(start + key.length + 1, start + key.length + 40));
  if (!match) throw new ImplausibleReading(`${key} has no number`);
  return Number(match[1]);
}

/**
 * 100 × (1 − available / MemTotal) of /proc/meminfo's text, where available is MemAvailable and what ZFS gives back (`reclaimable`, in kB).
 * Throws when a number is missing or impossible.
 */
export function parseMemoryPercent(text: string, reclaimable = 0): number {
  const total = kibibytes(text, 'MemTotal');
  const available = kibibytes(text, 'MemAvailable');
  if (total <= 0 || available < 0 || available > total) {
    throw new ImplausibleReading(`MemAvailable ${available} kB of MemTotal ${total} kB`);
  }
  return 100 * (1 - Math.min(total, available + reclaimable) / total);
}

/** The part of the ZFS cache (ARC) above its minimum, in kB, from the text of arcstats; it shrinks when programs need memory. */
export function parseReclaimableArc(text: string): number {
  const bytes = (name: string): number => Number(new RegExp(`^${name} +\\d+ +(\\d+)$`, 'm').exec(text)?.[1]);
  const reclaimable = (bytes('size') - bytes('c_min')) / 1024;
  return reclaimable > 0 ? reclaimable : 0;
}

/** Memory of the machine in bytes, for /status. */
export interface MemoryState {
  readonly total_bytes: number;
  /** Including `zfs_reclaimable_bytes`. */
  readonly available_bytes: number;
  /** Null: there is no ZFS. */
  readonly zfs_reclaimable_bytes: number | null;
  /** Reserved by the administrator (vm.nr_hugepages), used or not: not available, and in no program's resident memory. */
  readonly huge_pages_bytes: number;
  readonly huge_pages_free_bytes: number;
}

/** The ARC is looked for in one of so many readings: the module zfs may be loaded later. */
const FIND_ARC_EVERY = 60;

/** Memory in use according to the kernel's estimate of the memory available to a new program without swapping (MemAvailable). */
export class MemorySource implements Source {
  readonly metric = 'memory_percent';
  readonly #path: string;
  readonly #arcPath: string;
  readonly #file: TextFile;
  #arc: TextFile | null = null;
  #readings = 0;
  #text: string | null = null;
  #reclaimable = 0;

  readonly #parse = (text: string): number => {
    this.#text = text;
    return parseMemoryPercent(text, this.#reclaimable);
  };

  constructor(procRoot: string) {
    this.#path = `${procRoot}/meminfo`;
    this.#arcPath = `${procRoot}/spl/kstat/zfs/arcstats`;
    this.#file = new TextFile(this.#path);
  }

  read(callback: ReadCallback): void {
    if (this.#arc === null && this.#readings % FIND_ARC_EVERY === 0 && this.#hasArc()) this.#arc = new TextFile(this.#arcPath);
    this.#readings += 1;
    if (this.#arc === null) {
      this.#file.read(parsing(this.#parse, callback));
      return;
    }
    this.#arc.read((error, text) => {
      if (error) this.#arc = null; // The module was unloaded.
      this.#reclaimable = error ? 0 : parseReclaimableArc(text);
      this.#file.read(parsing(this.#parse, callback));
    });
  }

  close(): void {
    this.#file.close();
    this.#arc?.close();
  }

  /** The last reading in detail; null if there is none. */
  state(): MemoryState | null {
    const text = this.#text;
    if (text === null) return null;
    const value = (key: string): number => Number(new RegExp(`^${key}: +(\\d+)`, 'm').exec(text)?.[1] ?? 0);
    const total = value('MemTotal');
    const pageSize = value('Hugepagesize');
    return {
      total_bytes: total * 1024,
      available_bytes: Math.min(total, value('MemAvailable') + this.#reclaimable) * 1024,
      zfs_reclaimable_bytes: this.#arc && this.#reclaimable * 1024,
      // Hugetlb covers all page sizes; kernels before 4.17 do not have it.
      huge_pages_bytes: (value('Hugetlb') || value('HugePages_Total') * pageSize) * 1024,
      huge_pages_free_bytes: value('HugePages_Free') * pageSize * 1024,
    };
  }

  /** In a container, meminfo may be that of the container (LXCFS, a file system of its own), but arcstats is that of the host. */
  #hasArc(): boolean {
    try {
      const arc = statSync(this.#arcPath, { throwIfNoEntry: false });
      return arc !== undefined && arc.dev === statSync(this.#path).dev;
    } catch {
      return false;
    }
  }
}
