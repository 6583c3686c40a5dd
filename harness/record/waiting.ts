import type { MinuteEntry, RecordEntry } from './entries.ts';

/** Three days of minutes at 1 Hz, heard both ways. */
const MAX_BYTES = 4_000_000;

interface Waiting {
  readonly entry: RecordEntry;
  readonly bytes: number;
}

/**
 * Entries that the disk has not taken yet, oldest first. Beyond a bound the youngest minutes are boiled down into one, in which the
 * watcher did not get to run: they count neither for nor against the service. Entries of other types are few, and are all kept.
 */
export class WaitingEntries {
  readonly #maxBytes: number;
  readonly #entries: Waiting[] = [];
  #bytes = 0;
  /** When the stretch began that the next minute tells of (CLOCK_MONOTONIC). */
  #since: number | null = null;
  /** The last entry, where it is minutes boiled down. */
  #absent: MinuteEntry | null = null;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#entries.length;
  }

  /** Takes the oldest, as many as have so many bytes or less, and one at least where there is one. */
  take(maxBytes: number): RecordEntry[] {
    let [count, bytes] = [0, 0];
    for (const waiting of this.#entries) {
      if (count > 0 && bytes + waiting.bytes > maxBytes) break;
      count += 1;
      bytes += waiting.bytes;
    }
    this.#bytes -= bytes;
    const taken = this.#entries.splice(0, count).map(({ entry }) => entry);
    if (this.#entries.length === 0) this.#absent = null;
    return taken;
  }

  add(entry: RecordEntry): void {
    const bytes = JSON.stringify(entry).length;
    if (entry.type === 'minute' && this.#bytes + bytes > this.#maxBytes) this.#addAbsent(entry);
    else this.#push(entry, bytes);
    if (entry.type === 'minute' || entry.type === 'begin' || entry.type === 'resume') this.#since = entry.mono;
  }

  #addAbsent(minute: MinuteEntry): void {
    const before = this.#absent;
    if (before) this.#bytes -= this.#entries.pop()?.bytes ?? 0;
    const absent = boiledDown(minute, minute.mono - (this.#since ?? minute.mono) + (before?.stalled_seconds ?? 0));
    this.#push(absent, JSON.stringify(absent).length);
    this.#absent = absent;
  }

  #push(entry: RecordEntry, bytes: number): void {
    this.#entries.push({ entry, bytes });
    this.#bytes += bytes;
    this.#absent = null;
  }
}

/** Without what was received; of the service only the last reading, by which its restarts are found. */
function boiledDown(minute: MinuteEntry, stalledSeconds: number): MinuteEntry {
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
