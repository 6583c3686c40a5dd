import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Null: there is no such process, or procfs hides it. */
export interface ProcessReading {
  /** VmRSS. */
  readonly residentBytes: number | null;
  /** Of the process, and of its children that have ended. */
  readonly cpuSeconds: number | null;
}

/** What procfs counts CPU time in, whatever the kernel's own tick is (proc(5), USER_HZ). */
const TICKS_A_SECOND = 100;
/** Fields of /proc/PID/stat behind the name: utime, stime, cutime, cstime (14 to 17 of proc(5)). */
const TIMES = { from: 11, to: 15 };

export function readProcess(root: string, pid: number): ProcessReading {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(textOf(root, pid, 'status') ?? '')?.[1];
  // The name in parentheses may hold anything.
  const fields = textOf(root, pid, 'stat')?.split(')').at(-1)?.trim().split(' ').slice(TIMES.from, TIMES.to).map(Number);
  const ticks = fields?.length === TIMES.to - TIMES.from ? fields.reduce((sum, value) => sum + value, 0) : Number.NaN;
  return {
    residentBytes: kilobytes === undefined ? null : Number(kilobytes) * 1024,
    cpuSeconds: Number.isFinite(ticks) ? ticks / TICKS_A_SECOND : null,
  };
}

function textOf(root: string, pid: number, file: string): string | null {
  try {
    return readFileSync(join(root, String(pid), file), 'utf8');
  } catch {
    return null;
  }
}
