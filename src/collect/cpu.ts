import { ImplausibleReading, parsing, type ReadCallback, type Source } from './source.ts';
import { TextFile } from './text-file.ts';

/** Sums of the counters in the first line of /proc/stat, in clock ticks. */
export interface CpuTicks {
  readonly idle: number;
  readonly total: number;
}

/**
 * Parses the aggregate line of /proc/stat (proc_stat(5)): user nice system idle iowait irq softirq steal guest guest_nice.
 * guest and guest_nice are included in user and nice, so they are not added. Throws for any other text.
 */
export function parseCpuTicks(text: string): CpuTicks {
  const end = text.indexOf('\n');
  const fields = (end < 0 ? text : text.slice(0, end)).trimEnd().split(/\s+/);
  if (fields[0] !== 'cpu' || fields.length < 5) throw new ImplausibleReading('no aggregate "cpu" line');
  let total = 0;
  for (let i = 1; i <= 8 && i < fields.length; i += 1) {
    const field = fields[i] as string;
    const ticks = Number(field);
    if (!/^\d+$/.test(field) || !Number.isSafeInteger(ticks)) throw new ImplausibleReading(`"${field}" is not a tick count`);
    total += ticks;
  }
  return { idle: Number(fields[4]) + Number(fields[5] || 0), total };
}

/**
 * 100 × (1 − Δ(idle + iowait) / Δ(total)); null if no tick has passed, or if the counters were set back, as those of a container or of a
 * core that goes offline can be. The next pair then begins with the newer reading. A fall by less than half of what passed is none:
 * iowait may fall (proc_stat(5)), and the kernel's scaling of user and system time takes back a tick.
 */
export function cpuPercent(before: CpuTicks, after: CpuTicks): number | null {
  const idle = after.idle - before.idle;
  const busy = after.total - before.total - idle;
  const passed = Math.max(idle, 0) + Math.max(busy, 0);
  if (passed === 0 || 2 * Math.max(-idle, -busy) >= passed) return null;
  return (100 * Math.max(busy, 0)) / passed;
}

/**
 * Minimum time between the two readings of a pair. A tick is 10 ms per core, so that a shorter pair would mostly measure noise. At 4 Hz and
 * below, every sample is compared with the previous one.
 */
const WINDOW_SECONDS = 0.25;
/** Spacing of the readings kept for the window, which bounds their number at high frequencies. */
const KEEP_EVERY_SECONDS = 0.02;
/** Tolerance for early or late timers. */
const SLACK_SECONDS = 0.01;

interface TimedTicks {
  readonly atSeconds: number;
  readonly ticks: CpuTicks;
}

/** Reads the share of busy time of all processors since an earlier reading. */
export class CpuSource implements Source {
  readonly metric = 'cpu_percent';
  readonly #file: TextFile;
  readonly #nowSeconds: () => number;
  /** Oldest first; the next reading is compared with the first one. */
  #kept: TimedTicks[] = [];

  readonly #parse = (text: string): number => this.#next({ atSeconds: this.#nowSeconds(), ticks: parseCpuTicks(text) });

  constructor(procRoot: string, nowSeconds: () => number) {
    // The aggregate line has at most 10 counters of 20 digits.
    this.#file = new TextFile(`${procRoot}/stat`, 256);
    this.#nowSeconds = nowSeconds;
  }

  read(callback: ReadCallback): void {
    this.#file.read(parsing(this.#parse, callback));
  }

  close(): void {
    this.#file.close();
  }

  #next(now: TimedTicks): number {
    const kept = this.#kept;
    // The reading is compared with the newest one that is old enough; older ones are dropped.
    while (kept.length > 1 && now.atSeconds - (kept[1] as TimedTicks).atSeconds >= WINDOW_SECONDS - SLACK_SECONDS) kept.shift();
    const before = kept[0];
    const last = kept.at(-1);
    if (!last || now.atSeconds - last.atSeconds >= KEEP_EVERY_SECONDS - SLACK_SECONDS) kept.push(now);
    if (!before) throw new ImplausibleReading('first reading of a pair');
    const percent = cpuPercent(before.ticks, now.ticks);
    if (percent !== null) return percent;
    if (now.ticks.total > before.ticks.total || now.ticks.total < before.ticks.total) {
      this.#kept = [now];
      throw new ImplausibleReading('a counter went backwards');
    }
    throw new ImplausibleReading('no tick has passed since the reading before');
  }
}
