import type { DatabaseSync } from 'node:sqlite';
import { DAY_MS, HOUR_MS } from '../core/time.ts';
import { sizeOf } from './database.ts';

/** How long each tier is kept; alert episodes are kept longest, and only age takes them. */
export const RAW_DAYS = 8;
export const MINUTE_DAYS = 90;
export const HOUR_DAYS = 730;
export const ALERT_DAYS = 1825;

/** So many hours must have been recorded near a time before anything is judged to be old by it. */
const SETTLED_HOURS = 24;

/**
 * The time that ages are counted from: a clock that was set wrong by weeks or years must not cost what was recorded, and a machine may
 * have started with it, so that nobody saw the step. A wall clock is believed once a day's hours have been recorded near it; until then
 * nothing grows old. null: nothing has been recorded for as long as that.
 */
function settledMs(db: DatabaseSync, nowMs: number): number | null {
  const hour = db.prepare('SELECT hour_ms AS ms FROM hour WHERE node_id = ? AND hour_ms <= ? ORDER BY hour_ms DESC LIMIT 1 OFFSET ?');
  let settled: number | null = null;
  for (const { id } of db.prepare('SELECT id FROM node').all() as { id: number }[]) {
    const found = hour.get(id, nowMs, SETTLED_HOURS - 1) as { ms: number } | undefined;
    if (found) settled = Math.max(settled ?? 0, Math.min(nowMs, found.ms + 2 * DAY_MS));
  }
  return settled;
}

/** Removes what is older than its tier is kept. */
export function pruneByAge(db: DatabaseSync, nowMs: number): void {
  const fromMs = settledMs(db, nowMs);
  if (fromMs === null) return;
  const before = (days: number): number => fromMs - days * DAY_MS;
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

/** Changes of other nodes' alerts that are kept, and as many of their episodes. */
const REMOTE_ALERTS = 50_000;

/** Removes the oldest of what other nodes' alerts have beyond that: no age and no size limits who publishes them, and how often. */
export function pruneRemoteAlerts(db: DatabaseSync, localNode: string, most = REMOTE_ALERTS): void {
  db.prepare(
    `DELETE FROM alert_change WHERE node <> ?1 AND (segment, ordinal) <= (SELECT segment, ordinal FROM alert_change WHERE node <> ?1
     ORDER BY segment DESC, ordinal DESC LIMIT 1 OFFSET ?2)`,
  ).run(localNode, most);
  db.prepare(
    `DELETE FROM episode WHERE node <> ?1 AND resolved = 1 AND changed_ms <= (SELECT changed_ms FROM episode WHERE node <> ?1 AND resolved = 1
     ORDER BY changed_ms DESC LIMIT 1 OFFSET ?2)`,
  ).run(localNode, most);
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
