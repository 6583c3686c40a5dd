import type { ChartColumns, CpuEvidence, MemoryEvidence, ServiceRun } from '../../engine/evidence.ts';
import { CHANNELS, type Channel, type MinuteEntry, type ServiceReading } from '../entries.ts';
import type { Interval } from './time-axis.ts';

const FROM = {
  group: 'CPU time of its control group',
  process: 'CPU time of its process',
  status: 'CPU time reported by /status',
};

interface Base {
  readonly reading: ServiceReading;
  readonly mono: number;
  readonly boot: number;
}

/** Resident memory and CPU time of the service and of the machine. */
export class ResourceReadings {
  readonly #at: number[] = [];
  readonly #bytes: number[] = [];
  readonly #host: number[] = [];
  #group: MemoryEvidence['group'] = null;
  #base: Base | null = null;
  #cpuSeconds = 0;
  #awakeSeconds = 0;
  #from: ServiceReading['cpu_from'] | null = null;
  #hostSeconds = 0;
  #hostWeighted = 0;

  /** `run`: the service run of the reading. Returns the CPU share of this interval in percent; NaN if unknown. */
  add(entry: MinuteEntry, interval: Interval, run: ServiceRun | null, boot: number): number {
    const { service, host, mono } = entry;
    if (host.cpu !== null) {
      this.#hostSeconds += interval.monotonicSeconds;
      this.#hostWeighted += host.cpu * interval.monotonicSeconds;
    }
    if (service === null) return Number.NaN;
    this.#memory(service, host.memory, interval);
    return this.#cpu({ reading: service, mono, boot }, interval, run);
  }

  memory(): MemoryEvidence {
    return {
      at: new Float64Array(this.#at),
      bytes: new Float64Array(this.#bytes),
      hostPercent: new Float64Array(this.#host),
      group: this.#group,
    };
  }

  cpu(): CpuEvidence {
    return {
      cpuSeconds: this.#cpuSeconds,
      awakeSeconds: this.#awakeSeconds,
      from: this.#from === null ? 'not known' : FROM[this.#from],
      hostMeanPercent: this.#hostSeconds > 0 ? this.#hostWeighted / this.#hostSeconds : null,
    };
  }

  #memory({ resident_bytes, group }: ServiceReading, hostMemory: number | null, { from, to }: Interval): void {
    const spacing = (to - from) / resident_bytes.length;
    for (const [index, bytes] of resident_bytes.entries()) {
      this.#at.push(from + (index + 1) * spacing);
      this.#bytes.push(bytes);
      this.#host.push(hostMemory ?? Number.NaN);
    }
    if (group !== null) this.#group = { lastBytes: group.memory_bytes, maxBytes: Math.max(group.memory_bytes, this.#group?.maxBytes ?? 0) };
  }

  #cpu(now: Base, interval: Interval, run: ServiceRun | null): number {
    const { reading, mono, boot } = now;
    const before = this.#base;
    this.#base = now;
    const sameRun = before !== null && before.reading.started === reading.started && before.boot === boot;
    let cpuSeconds = reading.cpu_seconds;
    let awakeSeconds: number;
    if (sameRun) {
      cpuSeconds -= before.reading.cpu_seconds;
      awakeSeconds = mono - before.mono;
      if (before.reading.cpu_from !== reading.cpu_from || cpuSeconds < 0) return Number.NaN;
    } else {
      // A run whose start was observed is counted from its start, which includes the cost of starting.
      if (run === null || run.from < 0) return Number.NaN;
      awakeSeconds = interval.to - run.from;
      if (run.from >= interval.from) awakeSeconds = Math.min(awakeSeconds, interval.monotonicSeconds);
    }
    if (awakeSeconds <= 0) return Number.NaN;
    this.#cpuSeconds += cpuSeconds;
    this.#awakeSeconds += awakeSeconds;
    this.#from = reading.cpu_from;
    return (cpuSeconds / awakeSeconds) * 100;
  }
}

/** An interval shorter than this is shown together with the next one. */
const LEAST_SECONDS = 30;

/** Columns of the charts: one point per minute, at its end; NaN if unknown. */
export class Chart {
  readonly #at: number[] = [];
  readonly #rate = { topic: [] as number[], events: [] as number[] };
  readonly #memory: number[] = [];
  readonly #hostMemory: number[] = [];
  readonly #cpu: number[] = [];
  readonly #hostCpu: number[] = [];
  readonly #celsius: number[] = [];
  #since = nothing();

  /** Marks the start of a monitoring gap. */
  gap(at: number): void {
    this.#point(at, () => Number.NaN, Number.NaN, null);
  }

  add(entry: MinuteEntry, interval: Interval, counts: Readonly<Record<Channel, number>>, cpuPercent: number): void {
    if (interval.fresh) this.#since = nothing();
    const since = this.#since;
    since.awakeSeconds += interval.awakeSeconds;
    for (const channel of CHANNELS) {
      since.counts[channel] += counts[channel];
      if (entry[channel] !== null) since.subscribed.add(channel);
    }
    if (since.awakeSeconds < LEAST_SECONDS) return;
    const expected = since.awakeSeconds * interval.hertz;
    const rate = (channel: Channel): number => {
      if (!since.subscribed.has(channel)) return Number.NaN;
      // An interval that ends within a sampling period has one sample more or less.
      return since.counts[channel] > expected - 1 ? 100 : (since.counts[channel] / expected) * 100;
    };
    this.#point(interval.to, rate, cpuPercent, entry);
    this.#since = nothing();
  }

  columns(channel: Channel): ChartColumns {
    const known = (values: readonly number[]): (number | null)[] => values.map((value) => (Number.isNaN(value) ? null : value));
    return {
      at: [...this.#at],
      ratePercent: known(this.#rate[channel]),
      memoryMegabytes: known(this.#memory),
      hostMemoryPercent: known(this.#hostMemory),
      cpuPercent: known(this.#cpu),
      hostCpuPercent: known(this.#hostCpu),
      celsius: known(this.#celsius),
    };
  }

  #point(at: number, rate: (channel: Channel) => number, cpuPercent: number, entry: MinuteEntry | null): void {
    this.#at.push(at);
    for (const channel of CHANNELS) this.#rate[channel].push(rate(channel));
    this.#memory.push((entry?.service?.resident_bytes.at(-1) ?? Number.NaN) / 1e6);
    this.#hostMemory.push(entry?.host.memory ?? Number.NaN);
    this.#cpu.push(cpuPercent);
    this.#hostCpu.push(entry?.host.cpu ?? Number.NaN);
    this.#celsius.push(entry?.host.celsius ?? Number.NaN);
  }
}

/** Totals since the last point. */
interface Since {
  awakeSeconds: number;
  readonly counts: Record<Channel, number>;
  readonly subscribed: Set<Channel>;
}

function nothing(): Since {
  return { awakeSeconds: 0, counts: { topic: 0, events: 0 }, subscribed: new Set() };
}
