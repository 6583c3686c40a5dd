import type { DatabaseSync } from 'node:sqlite';
import { DAY_MS, HOUR_MS } from '../core/time.ts';
import { sizeOf } from './database.ts';

/** How long each tier is kept; alert episodes are kept longest, and only age takes them. */
export const RAW_DAYS = 8;
export const MINUTE_DAYS = 90;
export const HOUR_DAYS = 730;
export const ALERT_DAYS = 1825;

export function pruneByAge(db: DatabaseSync, nowMs: number): void {
  const before = (days: number): number => nowMs - days * DAY_MS;
  for (const { id } of db.prepare('SELECT id FROM node').all() as { id: number }[]) {
    db.prepare('DELETE FROM raw WHERE node_id = ? AND from_ms < ?').run(id, before(RAW_DAYS));
    db.prepare('DELETE FROM minute WHERE node_id = ? AND hour_ms < ?').run(id, before(MINUTE_DAYS));
    db.prepare('DELETE FROM hour WHERE node_id = ? AND hour_ms < ?').run(id, before(HOUR_DAYS));
  }
  for (const [table, time, days] of [
    ['lag', 'segment', RAW_DAYS + 2],
    ['rate', 'since_ms', HOUR_DAYS],
  ] as const) {
    // What was last noted before holds on.
    db.prepare(
      `DELETE FROM ${table} WHERE ${time} < (SELECT max(newer.${time}) FROM ${table} AS newer
       WHERE newer.node_id = ${table}.node_id AND newer.${time} <= ?)`,
    ).run(before(days));
  }
  db.prepare('DELETE FROM episode WHERE resolved = 1 AND changed_ms < ?').run(before(ALERT_DAYS));
  db.prepare('DELETE FROM alert_change WHERE changed_ms < ?').run(before(ALERT_DAYS));
  db.prepare('DELETE FROM clock_event WHERE timestamp_ms < ?').run(before(HOUR_DAYS));
}

/** Kept free of the cap, for what a transaction in progress adds. */
const HEADROOM = 0.97;

function removeOldestHour(db: DatabaseSync, table: 'raw' | 'minute' | 'hour'): boolean {
  const time = table === 'raw' ? 'from_ms' : 'hour_ms';
  const oldest = (db.prepare('SELECT id FROM node').all() as { id: number }[])
    .map(({ id }) => ({
      id,
      ms: (db.prepare(`SELECT min(${time}) AS ms FROM ${table} WHERE node_id = ?`).get(id) as { ms: number | null }).ms,
    }))
    .filter((entry): entry is { id: number; ms: number } => entry.ms !== null)
    .sort((a, b) => a.ms - b.ms)[0];
  if (!oldest) return false;
  db.prepare(`DELETE FROM ${table} WHERE node_id = ? AND ${time} < ?`).run(
    oldest.id,
    oldest.ms + (table === 'raw' ? HOUR_MS / 4 : HOUR_MS),
  );
  return true;
}

/** Keeps what is in use below the cap: the oldest raw samples go first, then minutes, then hours; alerts stay. */
export function pruneBySize(db: DatabaseSync, maxBytes: number): void {
  const inUse = (): number => {
    const { totalBytes, freeBytes } = sizeOf(db);
    return totalBytes - freeBytes;
  };
  let pruned = false;
  while (inUse() > maxBytes * HEADROOM) {
    if (!removeOldestHour(db, 'raw') && !removeOldestHour(db, 'minute') && !removeOldestHour(db, 'hour')) break;
    pruned = true;
  }
  // Free pages are used again; only what lies beyond the cap (it was lowered) is given back to the file system.
  if (pruned && sizeOf(db).totalBytes > maxBytes) db.exec('PRAGMA incremental_vacuum');
}
