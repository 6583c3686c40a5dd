import type { HealthStatus } from '../../src/core/health-status.ts';
import type { MinuteEntry, Received } from '../record/entries.ts';

class Mean {
  #sum = 0;
  #count = 0;

  add(value: number | null): void {
    if (value === null) return;
    this.#sum += value;
    this.#count += 1;
  }

  take(): number | null {
    const mean = this.#count === 0 ? null : Math.round((this.#sum / this.#count) * 100) / 100;
    this.#sum = 0;
    this.#count = 0;
    return mean;
  }
}

/** What was received by one way since it was taken last. */
export class Heard {
  #stamps: number[] = [];
  #slowestMs: number | null = null;
  #fastestMs: number | null = null;
  #newest = Number.NEGATIVE_INFINITY;
  readonly #cpu = new Mean();
  readonly #memory = new Mean();
  readonly #disk = new Mean();
  readonly #celsius = new Mean();

  /** Time stamp of the newest status ever heard, in ms since the epoch. */
  get newest(): number {
    return this.#newest;
  }

  add(status: HealthStatus, arrivedMs: number): void {
    const stamp = Date.parse(status.timestamp);
    if (!Number.isFinite(stamp)) return;
    this.#stamps.push(stamp);
    const travelMs = arrivedMs - stamp;
    this.#slowestMs = Math.max(this.#slowestMs ?? travelMs, travelMs);
    this.#fastestMs = Math.min(this.#fastestMs ?? travelMs, travelMs);
    this.#newest = Math.max(this.#newest, stamp);
    this.#cpu.add(status.cpu_percent);
    this.#memory.add(status.memory_percent);
    this.#disk.add(status.disk_percent);
    this.#celsius.add(status.temperature);
  }

  /** Forgets what was heard so far, but for what is stamped from then on. */
  forgetBefore(stampMs: number): void {
    this.#stamps = this.#stamps.filter((stamp) => stamp >= stampMs);
    this.#slowestMs = null;
    this.#fastestMs = null;
  }

  /** What was received, without what is stamped later than `untilMs`; the next begins empty. */
  take(untilMs = Number.POSITIVE_INFINITY): { readonly received: Received; readonly host: MinuteEntry['host'] } {
    const stamps = this.#stamps.filter((stamp) => stamp <= untilMs);
    const steps = stamps.slice(1).map((stamp, index) => stamp - (stamps[index] as number));
    const isEmpty = stamps.length === 0;
    const received = {
      first: stamps[0] ?? null,
      steps,
      slowest_ms: isEmpty ? null : this.#slowestMs,
      fastest_ms: isEmpty ? null : this.#fastestMs,
    };
    this.#stamps = [];
    this.#slowestMs = null;
    this.#fastestMs = null;
    return {
      received,
      host: { cpu: this.#cpu.take(), memory: this.#memory.take(), disk: this.#disk.take(), celsius: this.#celsius.take() },
    };
  }
}
