import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Counters of a control group; null where the kernel does not count. */
export interface ControlGroupCounters {
  readonly cpuSeconds: number | null;
  /** Including the page cache of the files that the group read and wrote. */
  readonly memoryBytes: number | null;
  /** Memory that the kernel cannot reclaim by dropping caches. */
  readonly anonBytes: number | null;
}

/** Reads the control group at a path below the root, in version 1 or 2. */
export function readControlGroup(root: string, path: string): ControlGroupCounters {
  const read = (controller: string, file: string): string | null => textOf(join(root, controller, path, file));
  if (read('', 'cgroup.controllers') !== null) {
    const microseconds = fieldOf(read('', 'cpu.stat'), 'usage_usec');
    return {
      cpuSeconds: microseconds === null ? null : microseconds / 1e6,
      memoryBytes: numberOf(read('', 'memory.current')),
      anonBytes: fieldOf(read('', 'memory.stat'), 'anon'),
    };
  }
  // Version 1 has a separate tree for each controller.
  const nanoseconds = numberOf(read('cpuacct', 'cpuacct.usage') ?? read('cpu,cpuacct', 'cpuacct.usage'));
  // If systemd has mounted both versions, its own version 2 tree counts CPU time even if the controller is off.
  const microseconds = nanoseconds === null ? fieldOf(read('unified', 'cpu.stat'), 'usage_usec') : nanoseconds / 1000;
  return {
    cpuSeconds: microseconds === null ? null : microseconds / 1e6,
    memoryBytes: numberOf(read('memory', 'memory.usage_in_bytes')),
    anonBytes: fieldOf(read('memory', 'memory.stat'), 'total_rss'),
  };
}

/** Counters of a process; null if the process does not exist or procfs hides it. */
export interface ProcessCounters {
  /** VmRSS. */
  readonly residentBytes: number | null;
  /** Includes its children that have ended. */
  readonly cpuSeconds: number | null;
}

/** procfs counts CPU time in this unit, independent of the kernel's own tick (proc(5), USER_HZ). */
const TICKS_PER_SECOND = 100;
/** Fields of /proc/PID/stat after the name: utime, stime, cutime, cstime (14 to 17 of proc(5)). */
const TIMES = { from: 11, to: 15 };

export function readProcess(root: string, pid: number): ProcessCounters {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(textOf(join(root, String(pid), 'status')) ?? '')?.[1];
  // The name in parentheses may contain any character.
  const stat = textOf(join(root, String(pid), 'stat'))
    ?.split(')')
    .at(-1);
  const fields = stat?.trim().split(' ').slice(TIMES.from, TIMES.to).map(Number);
  const ticks = fields?.length === TIMES.to - TIMES.from ? fields.reduce((sum, value) => sum + value, 0) : Number.NaN;
  return {
    residentBytes: kilobytes === undefined ? null : Number(kilobytes) * 1024,
    cpuSeconds: Number.isFinite(ticks) ? ticks / TICKS_PER_SECOND : null,
  };
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null; // There is no such controller, or the group or process has just ended.
  }
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d+\s*$/.test(text) ? Number(text) : null;
}

function fieldOf(text: string | null, name: string): number | null {
  const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(text ?? '')?.[1];
  return found === undefined ? null : Number(found);
}
