import { readdirSync, readFileSync } from 'node:fs';

/** Kernel ticks per second in /proc/PID/stat; USER_HZ is 100 since Linux 2.6 on every architecture that Node supports. */
const TICKS_PER_SECOND = 100;

export interface Memory {
  readonly residentMegabytes: number;
  /** Private part of the resident memory: heap and stacks, without program text. */
  readonly anonymousMegabytes: number;
}

/** CPU, memory and writes of a process, read from /proc. Megabytes are 10^6 bytes. */
export class ProcessMeter {
  readonly #folder: string;
  /** Nanoseconds by thread; for a thread that has ended, the value of the last reading. */
  readonly #nanoseconds = new Map<string, number>();

  constructor(pid: number | 'self') {
    this.#folder = `/proc/${pid}`;
  }

  /**
   * CPU time of all threads, from schedstat with nanosecond resolution (a running thread may be a tick behind), or from stat with tick
   * resolution if the kernel has no schedstat.
   */
  cpuSeconds(): number {
    for (const thread of readdirSync(`${this.#folder}/task`)) {
      try {
        const [onCpu] = readFileSync(`${this.#folder}/task/${thread}/schedstat`, 'utf8').split(' ');
        this.#nanoseconds.set(thread, Number(onCpu));
      } catch {
        // The thread ended between readdir and read, or the kernel has no schedstat.
      }
    }
    const total = [...this.#nanoseconds.values()].reduce((sum, value) => sum + value, 0) / 1e9;
    return total > 0 ? total : this.#ticks(11) + this.#ticks(12);
  }

  /** CPU time of child processes that have exited and were waited for. */
  childrenCpuSeconds(): number {
    return this.#ticks(13) + this.#ticks(14);
  }

  memory(): Memory {
    const status = readFileSync(`${this.#folder}/status`, 'utf8');
    const megabytes = (key: string): number => (Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024) / 1e6;
    return { residentMegabytes: megabytes('VmRSS'), anonymousMegabytes: megabytes('RssAnon') };
  }

  /** Bytes that the process caused to be written to a disk, now or later, excluding the journal of the file system. */
  writtenBytes(): number {
    return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`${this.#folder}/io`, 'utf8'))?.[1]);
  }

  /** A field of stat in seconds. Fields count from the state (0), because the process name before it may contain spaces and parentheses. */
  #ticks(field: number): number {
    const stat = readFileSync(`${this.#folder}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[field]) / TICKS_PER_SECOND;
  }
}
