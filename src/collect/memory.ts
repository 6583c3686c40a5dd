import { ImplausibleReading, parsing, type ReadCallback, type Source } from './source.ts';
import { TextFile } from './text-file.ts';

function kibibytes(text: string, key: string): number {
  const start = text.indexOf(`${key}:`);
  if (start < 0) throw new ImplausibleReading(`no ${key} in meminfo`);
  const match = /^\s*(-?\d+) kB/.exec(text.slice(start + key.length + 1, start + key.length + 40));
  if (!match) throw new ImplausibleReading(`${key} has no number`);
  return Number(match[1]);
}

/** 100 × (1 − MemAvailable / MemTotal) of /proc/meminfo's text. Throws when either is missing or impossible. */
export function parseMemoryPercent(text: string): number {
  const total = kibibytes(text, 'MemTotal');
  const available = kibibytes(text, 'MemAvailable');
  if (total <= 0 || available < 0 || available > total) {
    throw new ImplausibleReading(`MemAvailable ${available} kB of MemTotal ${total} kB`);
  }
  return 100 * (1 - available / total);
}

/** Memory in use according to the kernel's estimate of the memory available to a new program without swapping (MemAvailable). */
export class MemorySource implements Source {
  readonly metric = 'memory_percent';
  readonly #file: TextFile;

  constructor(procRoot: string) {
    // MemTotal and MemAvailable are the first and third line.
    this.#file = new TextFile(`${procRoot}/meminfo`, 512);
  }

  read(callback: ReadCallback): void {
    this.#file.read(parsing(parseMemoryPercent, callback));
  }

  close(): void {
    this.#file.close();
  }
}
