import type { MinuteEntry } from '../entries.ts';
import { Column } from './columns.ts';
import type { Stretch } from './stretch.ts';
import { WAYS, type Way } from './way.ts';

/** What is shorter is shown together with what follows it. */
const LEAST_SECONDS = 30;

export interface ChartColumns {
  readonly at: number[];
  readonly ratePercent: (number | null)[];
  readonly memoryMegabytes: (number | null)[];
  readonly hostMemoryPercent: (number | null)[];
  readonly cpuPercent: (number | null)[];
  readonly hostCpuPercent: (number | null)[];
  readonly celsius: (number | null)[];
}

/** Columns of what was seen, a point a minute, at the end of what it tells of. */
export class Chart {
  readonly #at = new Column();
  readonly #rate = { topic: new Column(), events: new Column() };
  readonly #memory = new Column();
  readonly #hostMemory = new Column();
  readonly #cpu = new Column();
  readonly #hostCpu = new Column();
  readonly #celsius = new Column();
  #since = nothing();

  /** Nobody looked from there on. */
  gap(at: number): void {
    this.#point(at, () => Number.NaN, Number.NaN, null);
  }

  add(entry: MinuteEntry, stretch: Stretch, counts: Readonly<Record<Way, number>>, cpuPercent: number): void {
    if (stretch.fresh) this.#since = nothing();
    const since = this.#since;
    since.awakeSeconds += stretch.awakeSeconds;
    for (const way of WAYS) {
      since.counts[way] += counts[way];
      since.heard[way] ||= entry[way] !== null;
    }
    if (since.awakeSeconds < LEAST_SECONDS) return;
    const expected = since.awakeSeconds * stretch.hertz;
    const rate = (way: Way): number => {
      if (!since.heard[way]) return Number.NaN;
      // Where a minute ends within a period, one more or one less falls into it.
      return since.counts[way] > expected - 1 ? 100 : (since.counts[way] / expected) * 100;
    };
    this.#point(stretch.to, rate, cpuPercent, entry);
    this.#since = nothing();
  }

  columns(way: Way): ChartColumns {
    return {
      at: Array.from(this.#at.values()),
      ratePercent: this.#rate[way].known(),
      memoryMegabytes: this.#memory.known(),
      hostMemoryPercent: this.#hostMemory.known(),
      cpuPercent: this.#cpu.known(),
      hostCpuPercent: this.#hostCpu.known(),
      celsius: this.#celsius.known(),
    };
  }

  #point(at: number, rate: (way: Way) => number, cpuPercent: number, entry: MinuteEntry | null): void {
    this.#at.push(at);
    for (const way of WAYS) this.#rate[way].push(rate(way));
    this.#memory.push((entry?.service?.resident_bytes.at(-1) ?? Number.NaN) / 1e6);
    this.#hostMemory.push(entry?.host.memory ?? Number.NaN);
    this.#cpu.push(cpuPercent);
    this.#hostCpu.push(entry?.host.cpu ?? Number.NaN);
    this.#celsius.push(entry?.host.celsius ?? Number.NaN);
  }
}

/** What came since the last point. */
interface Since {
  awakeSeconds: number;
  readonly counts: Record<Way, number>;
  readonly heard: Record<Way, boolean>;
}

function nothing(): Since {
  return { awakeSeconds: 0, counts: { topic: 0, events: 0 }, heard: { topic: false, events: false } };
}
