import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Channel, Clocked, MinuteEntry, Received, ServiceReading } from '../record/entries.ts';

/** Collects the content of the next `minute` entry. */
export class Minute {
  /** Null if there is no subscription. */
  readonly #topic: ReceivedStatuses | null;
  readonly #events = new ReceivedStatuses();
  #reading: ServiceReading | null = null;
  #resident: number[] = [];

  constructor(hasTopic: boolean) {
    this.#topic = hasTopic ? new ReceivedStatuses() : null;
  }

  addStatus(channel: Channel, status: HealthStatus, arrivedMs: number): void {
    (channel === 'topic' ? this.#topic : this.#events)?.add(status, arrivedMs);
  }

  /** The last reading counts, but its memory values are those of all readings of the same run. */
  addReading(reading: ServiceReading): void {
    if (this.#reading !== null && this.#reading.started !== reading.started) this.#resident = [];
    this.#resident.push(...reading.resident_bytes);
    this.#reading = reading;
  }

  /** Whether each channel has delivered a status with this time stamp or a later one. */
  hasReceivedSince(stampMs: number): boolean {
    return this.#events.newest >= stampMs && (this.#topic === null || this.#topic.newest >= stampMs);
  }

  dropBefore(stampMs: number): void {
    this.#topic?.dropBefore(stampMs);
    this.#events.dropBefore(stampMs);
  }

  /** Returns the entry without statuses stamped later than `untilMs`, and starts an empty one. */
  take(now: Clocked, stalledSeconds: number, observer: MinuteEntry['observer'], untilMs: number): MinuteEntry {
    const topic = this.#topic?.take(untilMs) ?? null;
    const events = this.#events.take(untilMs);
    const service = this.#reading && { ...this.#reading, resident_bytes: this.#resident };
    this.#reading = null;
    this.#resident = [];
    return {
      type: 'minute',
      ...now,
      topic: topic?.received ?? null,
      events: events.received,
      stalled_seconds: stalledSeconds,
      service,
      host: topic?.received.first == null ? events.host : topic.host,
      observer,
    };
  }
}

/** The statuses received on one channel since they were last taken. */
class ReceivedStatuses {
  #stamps: number[] = [];
  #slowestMs: number | null = null;
  #fastestMs: number | null = null;
  /** Time stamp of the newest status so far, in ms since the epoch. */
  newest = Number.NEGATIVE_INFINITY;
  readonly #cpu = new Mean();
  readonly #memory = new Mean();
  readonly #disk = new Mean();
  readonly #celsius = new Mean();

  add(status: HealthStatus, arrivedMs: number): void {
    const stamp = Date.parse(status.timestamp);
    if (!Number.isFinite(stamp)) return;
    this.#stamps.push(stamp);
    const latencyMs = arrivedMs - stamp;
    this.#slowestMs = Math.max(this.#slowestMs ?? latencyMs, latencyMs);
    this.#fastestMs = Math.min(this.#fastestMs ?? latencyMs, latencyMs);
    this.newest = Math.max(this.newest, stamp);
    this.#cpu.add(status.cpu_percent);
    this.#memory.add(status.memory_percent);
    this.#disk.add(status.disk_percent);
    this.#celsius.add(status.temperature);
  }

  dropBefore(stampMs: number): void {
    this.#stamps = this.#stamps.filter((stamp) => stamp >= stampMs);
    this.#slowestMs = null;
    this.#fastestMs = null;
  }

  take(untilMs: number): { readonly received: Received; readonly host: MinuteEntry['host'] } {
    const stamps = this.#stamps.filter((stamp) => stamp <= untilMs);
    const [first = null] = stamps;
    const received = {
      first,
      steps: stamps.slice(1).map((stamp, index) => stamp - (stamps[index] as number)),
      slowest_ms: first === null ? null : this.#slowestMs,
      fastest_ms: first === null ? null : this.#fastestMs,
    };
    this.dropBefore(Number.POSITIVE_INFINITY);
    const host = { cpu: this.#cpu.take(), memory: this.#memory.take(), disk: this.#disk.take(), celsius: this.#celsius.take() };
    return { received, host };
  }
}

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

/** Number of readings, a minute apart, between two releases of memory. Scans have the same interval. */
const RELEASE_READINGS = 60;

/** CPU time and memory of the observer, which must stay small because it runs beside the service for a week. */
export class OwnUse {
  readonly #release: () => unknown;
  #readings = 0;

  /** `release` returns unneeded memory to the system. It is first called before the sources' libraries are loaded. */
  constructor(release: () => unknown) {
    this.#release = release;
    release();
  }

  read(): MinuteEntry['observer'] {
    // Right after the start, most of the memory was only needed for starting.
    if (this.#readings === 0) this.#release();
    const { system, user } = process.cpuUsage();
    const use = { cpu_seconds: (user + system) / 1e6, resident_bytes: process.memoryUsage.rss() };
    this.#readings += 1;
    // Called after the reading, which covers the memory used up to then.
    if (this.#readings % RELEASE_READINGS === 0) this.#release();
    return use;
  }
}
