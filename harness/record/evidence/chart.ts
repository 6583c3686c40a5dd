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
  #awakeSeconds = 0;
  #counts = { topic: 0, events: 0 };
  #heard = { topic: false, events: false };

  /** Nobody looked from there on. */
  gap(at: number): void {
    this.#point(at, { topic: Number.NaN, events: Number.NaN }, Number.NaN, null);
  }

  add(entry: MinuteEntry, stretch: Stretch, counts: Readonly<Record<Way, number>>, cpuPercent: number): void {
    if (stretch.fresh) this.#clear();
    this.#awakeSeconds += stretch.awakeSeconds;
    for (const way of WAYS) {
      this.#counts[way] += counts[way];
      this.#heard[way] ||= entry[way] !== null;
    }
    if (this.#awakeSeconds < LEAST_SECONDS) return;
    const expected = this.#awakeSeconds * stretch.hertz;
    const rates = { topic: Number.NaN, events: Number.NaN };
    for (const way of WAYS) {
      // Where a minute ends within a period, one more or one less falls into it.
      const whole = this.#counts[way] > expected - 1;
      if (this.#heard[way]) rates[way] = whole ? 100 : (this.#counts[way] / expected) * 100;
    }
    this.#point(stretch.to, rates, cpuPercent, entry);
    this.#clear();
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

  #point(at: number, rates: Readonly<Record<Way, number>>, cpuPercent: number, entry: MinuteEntry | null): void {
    this.#at.push(at);
    for (const way of WAYS) this.#rate[way].push(rates[way]);
    const resident = entry?.service?.resident_bytes.at(-1);
    this.#memory.push(resident === undefined ? Number.NaN : resident / 1e6);
    this.#hostMemory.push(entry?.host.memory ?? Number.NaN);
    this.#cpu.push(cpuPercent);
    this.#hostCpu.push(entry?.host.cpu ?? Number.NaN);
    this.#celsius.push(entry?.host.celsius ?? Number.NaN);
  }

  #clear(): void {
    this.#awakeSeconds = 0;
    this.#counts = { topic: 0, events: 0 };
    this.#heard = { topic: false, events: false };
  }
}
