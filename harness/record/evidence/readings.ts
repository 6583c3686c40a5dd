import type { CpuEvidence, MemoryEvidence, ServiceRun } from '../../engine/evidence.ts';
import type { MinuteEntry, ServiceReading } from '../entries.ts';
import { Column } from './columns.ts';
import type { Stretch } from './stretch.ts';

const FROM = {
  group: 'CPU time of its control group',
  process: 'CPU time of its process',
  status: 'CPU time that /status tells',
};

interface Base {
  readonly reading: ServiceReading;
  readonly mono: number;
  readonly boot: number;
}

/** Resident memory and CPU time of the service, and those of the machine beside them. */
export class Readings {
  readonly #at = new Column();
  readonly #bytes = new Column();
  readonly #host = new Column();
  #group: MemoryEvidence['group'] = null;
  #base: Base | null = null;
  #cpuSeconds = 0;
  #awakeSeconds = 0;
  #from: ServiceReading['cpu_from'] | null = null;
  #hostSeconds = 0;
  #hostWeighted = 0;

  /** `run`: the run of the service that the reading is of. Returns the CPU share of this stretch in percent; NaN: not known. */
  add(entry: MinuteEntry, stretch: Stretch, run: ServiceRun | null, boot: number): number {
    const { service, host, mono } = entry;
    if (host.cpu !== null) {
      this.#hostSeconds += stretch.monotonicSeconds;
      this.#hostWeighted += host.cpu * stretch.monotonicSeconds;
    }
    if (service === null) return Number.NaN;
    this.#memory(service, host.memory, stretch);
    return this.#cpu({ reading: service, mono, boot }, stretch, run);
  }

  memory(): MemoryEvidence {
    return { at: this.#at.values(), bytes: this.#bytes.values(), hostPercent: this.#host.values(), group: this.#group };
  }

  cpu(): CpuEvidence {
    return {
      cpuSeconds: this.#cpuSeconds,
      awakeSeconds: this.#awakeSeconds,
      from: this.#from === null ? 'not known' : FROM[this.#from],
      hostMeanPercent: this.#hostSeconds > 0 ? this.#hostWeighted / this.#hostSeconds : null,
    };
  }

  #memory({ resident_bytes, group }: ServiceReading, hostMemory: number | null, { from, to }: Stretch): void {
    const pace = (to - from) / resident_bytes.length;
    for (const [index, bytes] of resident_bytes.entries()) {
      this.#at.push(from + (index + 1) * pace);
      this.#bytes.push(bytes);
      this.#host.push(hostMemory ?? Number.NaN);
    }
    if (group !== null) this.#group = { lastBytes: group.memory_bytes, maxBytes: Math.max(group.memory_bytes, this.#group?.maxBytes ?? 0) };
  }

  #cpu(now: Base, stretch: Stretch, run: ServiceRun | null): number {
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
      // A run whose start was watched is counted from its start: what starting costs is part of it.
      if (run === null || run.from < 0) return Number.NaN;
      awakeSeconds = stretch.to - run.from;
      if (run.from >= stretch.from) awakeSeconds = Math.min(awakeSeconds, stretch.monotonicSeconds);
    }
    if (awakeSeconds <= 0) return Number.NaN;
    this.#cpuSeconds += cpuSeconds;
    this.#awakeSeconds += awakeSeconds;
    this.#from = reading.cpu_from;
    return (cpuSeconds / awakeSeconds) * 100;
  }
}
