import { readdirSync, readFileSync } from 'node:fs';

/** Kernel ticks a second in /proc/PID/stat; Linux has shown 100 to programs since 2.6 on every architecture Node runs on. */
const TICKS_PER_SECOND = 100;

export interface Memory {
  readonly residentMegabytes: number;
  /** Of the resident memory what belongs to the process alone: heap, stacks, and no program text. */
  readonly anonymousMegabytes: number;
}

/** CPU, memory and writes of a process, read from /proc. Megabytes are 10^6 bytes. */
export class ProcessMeter {
  readonly #folder: string;
  /** By thread: a thread that ended keeps what it had used when last looked at. */
  readonly #nanoseconds = new Map<string, number>();

  constructor(pid: number | 'self') {
    this.#folder = `/proc/${pid}`;
  }

  /**
   * CPU time of all threads, to the nanosecond from schedstat (a thread that is running right now may be a tick behind), or
   * to the tick from stat where the kernel keeps no schedstat.
   */
  cpuSeconds(): number {
    for (const thread of readdirSync(`${this.#folder}/task`)) {
      try {
        const [onCpu] = readFileSync(`${this.#folder}/task/${thread}/schedstat`, 'utf8').split(' ');
        this.#nanoseconds.set(thread, Number(onCpu));
      } catch {
        // It ended between the listing and the reading, or the kernel has no schedstat.
      }
    }
    const total = [...this.#nanoseconds.values()].reduce((sum, value) => sum + value, 0) / 1e9;
    return total > 0 ? total : this.#ticks(11) + this.#ticks(12);
  }

  /** CPU time of children that have ended and were waited for. */
  childrenCpuSeconds(): number {
    return this.#ticks(13) + this.#ticks(14);
  }

  memory(): Memory {
    const status = readFileSync(`${this.#folder}/status`, 'utf8');
    const megabytes = (key: string): number => (Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024) / 1e6;
    return { residentMegabytes: megabytes('VmRSS'), anonymousMegabytes: megabytes('RssAnon') };
  }

  /** What the process made the kernel write to a disk, or will. What the file system writes for itself (its journal) is not in it. */
  writtenBytes(): number {
    return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`${this.#folder}/io`, 'utf8'))?.[1]);
  }

  /** A field of stat in seconds, counted from the state, which is field 0: the name before it may hold anything. */
  #ticks(field: number): number {
    const stat = readFileSync(`${this.#folder}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[field]) / TICKS_PER_SECOND;
  }
}
