import type { MinuteEntry, RecordEntry } from './entries.ts';

/** Three days of minutes at 1 Hz, received on both channels. */
const MAX_BYTES = 4_000_000;

interface Pending {
  readonly entry: RecordEntry;
  readonly bytes: number;
}

/**
 * Entries that are not yet written to disk, oldest first. Beyond a size limit, the newest minutes are merged into one in which the observer
 * was stalled, which counts neither for nor against the service. Entries of other types are few, and all of them are kept.
 */
export class PendingEntries {
  readonly #maxBytes: number;
  readonly #entries: Pending[] = [];
  #bytes = 0;
  /** Start of the interval of the next minute (CLOCK_MONOTONIC). */
  #since: number | null = null;
  /** The last entry, if it consists of merged minutes. */
  #merged: MinuteEntry | null = null;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#entries.length;
  }

  /** Removes and returns the oldest entries, up to this many bytes in total, but at least one. */
  take(maxBytes: number): RecordEntry[] {
    let [count, bytes] = [0, 0];
    for (const pending of this.#entries) {
      if (count > 0 && bytes + pending.bytes > maxBytes) break;
      count += 1;
      bytes += pending.bytes;
    }
    this.#bytes -= bytes;
    const taken = this.#entries.splice(0, count).map(({ entry }) => entry);
    if (this.#entries.length === 0) this.#merged = null;
    return taken;
  }

  add(entry: RecordEntry): void {
    const bytes = JSON.stringify(entry).length;
    if (entry.type === 'minute' && this.#bytes + bytes > this.#maxBytes) this.#addMerged(entry);
    else this.#push(entry, bytes);
    if (entry.type === 'minute' || entry.type === 'begin' || entry.type === 'resume') this.#since = entry.mono;
  }

  #addMerged(minute: MinuteEntry): void {
    const before = this.#merged;
    if (before) this.#bytes -= this.#entries.pop()?.bytes ?? 0;
    const merged = withoutStatuses(minute, minute.mono - (this.#since ?? minute.mono) + (before?.stalled_seconds ?? 0));
    this.#push(merged, JSON.stringify(merged).length);
    this.#merged = merged;
  }

  #push(entry: RecordEntry, bytes: number): void {
    this.#entries.push({ entry, bytes });
    this.#bytes += bytes;
    this.#merged = null;
  }
}

/** Drops the received statuses, and keeps only the last reading of the service, from which its restarts are found. */
function withoutStatuses(minute: MinuteEntry, stalledSeconds: number): MinuteEntry {
  const { events, service, topic } = minute;
  const nothing = { first: null, steps: [], slowest_ms: null, fastest_ms: null };
  return {
    ...minute,
    topic: topic && nothing,
    events: events && nothing,
    stalled_seconds: stalledSeconds,
    service: service && { ...service, resident_bytes: service.resident_bytes.slice(-1) },
  };
}
