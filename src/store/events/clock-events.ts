import type { DatabaseSync } from 'node:sqlite';
import type { ClockEvent } from '../../core/time/clock-watch.ts';

interface Rate {
  readonly sinceMs: number;
  readonly hertz: number;
}

/** Rare data needed to evaluate samples: each node's publish rates over time, and clock events. */
export class SamplingHistory {
  #rates = new Map<string, Rate[]>();
  #clockEvents: ClockEvent[] = [];
  #unsavedRates: { readonly node: string; readonly rate: Rate }[] = [];
  #unsavedEvents: ClockEvent[] = [];

  get clockEvents(): readonly ClockEvent[] {
    return this.#clockEvents;
  }

  addClockEvent(event: ClockEvent): void {
    this.#clockEvents.push(event);
    this.#unsavedEvents.push(event);
  }

  /** Adds a publish rate; earlier times keep their rate. */
  addRate(node: string, rate: Rate): void {
    const rates = this.#rates.get(node) ?? [];
    if (rates.at(-1)?.hertz === rate.hertz) return;
    this.#rates.set(node, [...rates, rate]);
    this.#unsavedRates.push({ node, rate });
  }

  /** Rates, oldest first; 1 Hz for a node without any. */
  ratesOf(node: string): readonly Rate[] {
    return this.#rates.get(node) ?? [{ sinceMs: 0, hertz: 1 }];
  }

  hasRate(node: string): boolean {
    return this.#rates.has(node);
  }

  /** When a node was first seen, by the clock at that time; minus infinity: not recorded. */
  firstSeenMs(node: string): number {
    return this.#rates.get(node)?.[0]?.sinceMs ?? Number.NEGATIVE_INFINITY;
  }

  periodMsAt(node: string, timestampMs: number): number {
    const rates = this.ratesOf(node);
    let hertz = rates[0]?.hertz ?? 1;
    for (const rate of rates) if (rate.sinceMs <= timestampMs) hertz = rate.hertz;
    return 1000 / hertz;
  }

  /** Loads rates and events; those of this run that the database does not have will be saved there. */
  load(db: DatabaseSync): void {
    const ratesBefore = this.#rates;
    const eventsBefore = this.#clockEvents;
    const rates = db.prepare('SELECT name, since_ms, hertz FROM rate JOIN node ON node.id = node_id ORDER BY since_ms').all() as {
      name: string;
      since_ms: number;
      hertz: number;
    }[];
    const events = db
      .prepare('SELECT kind, timestamp_ms, delta_seconds FROM clock_event ORDER BY timestamp_ms')
      .all() as unknown as ClockEvent[];
    this.#rates = new Map();
    for (const { name, since_ms, hertz } of rates) {
      this.#rates.set(name, [...(this.#rates.get(name) ?? []), { sinceMs: since_ms, hertz }]);
    }
    this.#unsavedRates = [];
    for (const [node, before] of ratesBefore) {
      const last = before.at(-1);
      if (last) this.addRate(node, last);
    }
    const known = new Set(events.map((event) => `${event.timestamp_ms} ${event.kind}`));
    this.#unsavedEvents = eventsBefore.filter((event) => !known.has(`${event.timestamp_ms} ${event.kind}`));
    this.#clockEvents = [...events, ...this.#unsavedEvents];
  }

  /** Drops a node's rates. */
  drop(node: string): void {
    this.#rates.delete(node);
    this.#unsavedRates = this.#unsavedRates.filter((entry) => entry.node !== node);
  }

  /** Saves everything that is not saved yet; throws if it cannot be written. `idOf` returns null for a node without a row. */
  save(db: DatabaseSync, idOf: (node: string) => number | null): void {
    this.#unsavedRates = this.#unsavedRates.filter(({ node, rate }) => {
      const id = idOf(node);
      if (id !== null) db.prepare('INSERT OR REPLACE INTO rate VALUES (?, ?, ?)').run(id, rate.sinceMs, rate.hertz);
      return id === null;
    });
    for (const event of this.#unsavedEvents) {
      db.prepare('INSERT OR IGNORE INTO clock_event VALUES (?, ?, ?)').run(event.timestamp_ms, event.kind, event.delta_seconds);
    }
    this.#unsavedEvents = [];
  }
}

function overlap(fromMs: number, toMs: number, otherFromMs: number, otherToMs: number): number {
  return Math.max(0, Math.min(toMs, otherToMs) - Math.max(fromMs, otherFromMs));
}

/** Time in a range that the wall clock skipped by forward steps and suspends; a time skipped twice counts twice. */
function skippedTotalMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  let passed = 0;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds > 0) passed += overlap(fromMs, toMs, timestamp_ms - delta_seconds * 1000, timestamp_ms);
  }
  return passed;
}

/**
 * Time in a range in which no sample can lie, because the wall clock skipped it by forward steps and suspends. A jump is detected only
 * some time after the clock made it, possibly after the next sample, so a range may begin or end inside one.
 */
export function skippedMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  if (events.length === 0 || toMs <= fromMs) return 0;
  return Math.min(skippedTotalMs(events, fromMs, toMs), toMs - fromMs);
}

/**
 * Time in a range that a step back makes the wall clock pass twice. `firstSeenMs` is when the node was first seen; earlier times of the
 * first pass do not count for it.
 */
export function repeatedMs(events: readonly ClockEvent[], fromMs: number, toMs: number, firstSeenMs = Number.NEGATIVE_INFINITY): number {
  let repeated = 0;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds < 0) repeated += overlap(fromMs, toMs, Math.max(timestamp_ms, firstSeenMs), timestamp_ms - delta_seconds * 1000);
  }
  return repeated;
}

/** How long the wall clock was in a range up to now, counting repetitions; after a step back it may have been later than now. */
export function clockTimeMs(events: readonly ClockEvent[], fromMs: number, toMs: number, nowMs: number, firstSeenMs: number): number {
  const sinceFrom = Math.max(0, Math.min(toMs, nowMs) - fromMs);
  return Math.max(0, sinceFrom - skippedTotalMs(events, fromMs, toMs) + repeatedMs(events, fromMs, toMs, firstSeenMs));
}

/**
 * The future part of a range, up to the times that the clock reached before a step back, as a clock event, so that it does not count as a
 * gap. Empty if the range does not extend into the future.
 */
export function futureJump(events: readonly ClockEvent[], nowMs: number, toMs: number, firstSeenMs: number): readonly ClockEvent[] {
  if (toMs <= nowMs) return [];
  let untilMs = toMs;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds < 0 && timestamp_ms - delta_seconds * 1000 > nowMs) {
      untilMs = Math.min(untilMs, Math.max(nowMs, timestamp_ms, firstSeenMs));
    }
  }
  return [{ kind: 'step', timestamp_ms: untilMs, delta_seconds: (untilMs - nowMs) / 1000 }];
}
