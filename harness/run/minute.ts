import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Channel } from '../observe/sources.ts';
import type { Clocked, MinuteEntry, ServiceReading } from '../record/entries.ts';
import { Heard } from './heard.ts';

/** What becomes the next `minute`. */
export class Minute {
  readonly #heard: Readonly<Record<Channel, Heard>> = { topic: new Heard(), events: new Heard() };
  readonly #ways: readonly Channel[];
  #reading: ServiceReading | null = null;
  #resident: number[] = [];

  constructor(hasTopic: boolean) {
    this.#ways = hasTopic ? ['topic', 'events'] : ['events'];
  }

  addStatus(by: Channel, status: HealthStatus, arrivedMs: number): void {
    this.#heard[by].add(status, arrivedMs);
  }

  /** The last one stands; memory is that of every reading of the same run. */
  addReading(reading: ServiceReading): void {
    if (this.#reading !== null && this.#reading.started !== reading.started) this.#resident = [];
    this.#resident.push(...reading.resident_bytes);
    this.#reading = reading;
  }

  /** Whether each way that is listened to has told a status that is stamped no earlier. */
  isHeardSince(stampMs: number): boolean {
    return this.#ways.every((way) => this.#heard[way].newest >= stampMs);
  }

  forgetBefore(stampMs: number): void {
    for (const way of this.#ways) this.#heard[way].forgetBefore(stampMs);
  }

  /** The entry, without statuses that are stamped later than `untilMs`; the next one begins empty. */
  take(now: Clocked, stalledSeconds: number, watcher: MinuteEntry['watcher'], untilMs: number): MinuteEntry {
    const topic = this.#ways.includes('topic') ? this.#heard.topic.take(untilMs) : null;
    const events = this.#heard.events.take(untilMs);
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
      host: topic !== null && topic.received.first !== null ? topic.host : events.host,
      watcher,
    };
  }
}
