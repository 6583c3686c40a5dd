import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Histograms, Summary } from '../../core/statistics/summary.ts';
import type { Means } from './means.ts';
import { decodeHour, decodeMinuteMeans, decodeMinutes, encodeHour, encodeMinutes } from './summary-codec.ts';
import type { HourRecord } from './tiers.ts';

/** A blob that cannot be decoded counts as missing; queries then use the other tiers. */
function tryDecode<T>(decode: () => T): T | null {
  try {
    return decode();
  } catch {
    return null;
  }
}

/** The minute and hour tiers. Each hour of a node is written once when it is over, and again only if more samples arrive for it. */
export class HourTable {
  readonly #db: DatabaseSync;
  #selectMinutes: StatementSync | null = null;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  write(nodeId: number, hour: HourRecord): void {
    this.#db.prepare('INSERT OR REPLACE INTO minute VALUES (?, ?, ?)').run(nodeId, hour.hourMs, encodeMinutes(hour.minutes, hour.hourMs));
    this.#db
      .prepare('INSERT OR REPLACE INTO hour VALUES (?, ?, ?)')
      .run(nodeId, hour.hourMs, encodeHour(hour.summary, hour.histograms, hour.hourMs));
  }

  /** Hours that begin in the range, ascending. */
  starts(nodeId: number, fromMs: number, toMs: number): number[] {
    const rows = this.#db
      .prepare('SELECT hour_ms FROM hour WHERE node_id = ? AND hour_ms >= ? AND hour_ms < ? ORDER BY hour_ms')
      .all(nodeId, fromMs, toMs) as { hour_ms: number }[];
    return rows.map(({ hour_ms }) => hour_ms);
  }

  hour(nodeId: number, hourMs: number): { summary: Summary; histograms: Histograms } | null {
    const row = this.#db.prepare('SELECT summary FROM hour WHERE node_id = ? AND hour_ms = ?').get(nodeId, hourMs) as
      | { summary: Uint8Array }
      | undefined;
    return row ? tryDecode(() => decodeHour(row.summary, hourMs)) : null;
  }

  minutes(nodeId: number, hourMs: number): Map<number, Summary> | null {
    const blob = this.#minuteBlob(nodeId, hourMs);
    return blob && tryDecode(() => decodeMinutes(blob, hourMs));
  }

  /** The hour's minutes, averages only. */
  minuteMeans(nodeId: number, hourMs: number): Means | null {
    const blob = this.#minuteBlob(nodeId, hourMs);
    return blob && tryDecode(() => decodeMinuteMeans(blob, hourMs));
  }

  #minuteBlob(nodeId: number, hourMs: number): Uint8Array | null {
    this.#selectMinutes ??= this.#db.prepare('SELECT summaries FROM minute WHERE node_id = ? AND hour_ms = ?');
    const row = this.#selectMinutes.get(nodeId, hourMs) as { summaries: Uint8Array } | undefined;
    return row?.summaries ?? null;
  }

  last(nodeId: number): number | null {
    return (this.#db.prepare('SELECT max(hour_ms) AS ms FROM hour WHERE node_id = ?').get(nodeId) as { ms: number | null }).ms;
  }

  /** Time of the first sample in the oldest hour. */
  first(nodeId: number): number | null {
    const row = this.#db.prepare('SELECT min(hour_ms) AS ms FROM hour WHERE node_id = ?').get(nodeId) as { ms: number | null };
    if (row.ms === null) return null;
    return this.hour(nodeId, row.ms)?.summary.firstMs ?? row.ms;
  }
}
