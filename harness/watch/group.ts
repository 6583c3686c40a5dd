import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the control group of the service has counted. Null: not counted here. */
export interface GroupReading {
  readonly cpuSeconds: number | null;
  /** With the page cache of the files that it read and wrote. */
  readonly memoryBytes: number | null;
  /** Memory that the kernel cannot take back by dropping caches. */
  readonly anonBytes: number | null;
}

/** Reads the control group at a path below the root, of version 2 or of version 1. */
export function readGroup(root: string, path: string): GroupReading {
  // A group of version 1 lies in a tree of its own for each controller; where both are mounted those are the ones that count.
  const unified = textOf(root, '', path, 'cgroup.controllers') === null ? null : (textOf(root, '', path, 'cpu.stat') ?? '');
  if (unified !== null) {
    const microseconds = fieldOf(unified, 'usage_usec');
    return {
      cpuSeconds: microseconds === null ? null : microseconds / 1e6,
      memoryBytes: numberOf(textOf(root, '', path, 'memory.current')),
      anonBytes: fieldOf(textOf(root, '', path, 'memory.stat') ?? '', 'anon'),
    };
  }
  const nanoseconds = numberOf(textOf(root, 'cpuacct', path, 'cpuacct.usage') ?? textOf(root, 'cpu,cpuacct', path, 'cpuacct.usage'));
  // Where systemd has both versions, its own tree of version 2 counts CPU time whether a controller is on or not.
  const microseconds = nanoseconds === null ? fieldOf(textOf(root, 'unified', path, 'cpu.stat') ?? '', 'usage_usec') : nanoseconds / 1000;
  return {
    cpuSeconds: microseconds === null ? null : microseconds / 1e6,
    memoryBytes: numberOf(textOf(root, 'memory', path, 'memory.usage_in_bytes')),
    anonBytes: fieldOf(textOf(root, 'memory', path, 'memory.stat') ?? '', 'total_rss'),
  };
}

function textOf(root: string, controller: string, path: string, file: string): string | null {
  try {
    return readFileSync(join(root, controller, path, file), 'utf8');
  } catch {
    return null; // No such controller, or the group has just been removed.
  }
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d+\s*$/.test(text) ? Number(text) : null;
}

function fieldOf(text: string, name: string): number | null {
  const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1];
  return found === undefined ? null : Number(found);
}
