import type { DatabaseSync } from 'node:sqlite';
import { DAY_MS, HOUR_MS } from '../../core/time/time.ts';
import { sizeOf } from './database.ts';

/** Retention of each tier. Alert episodes are kept longest and are removed by age only. */
export const RAW_DAYS = 8;
export const MINUTE_DAYS = 90;
export const HOUR_DAYS = 730;
export const ALERT_DAYS = 1825;

/** Number of hours that must have been recorded near a time before it is used for pruning by age. */
const SETTLED_HOURS = 24;

/**
 * The reference time for ages. A clock that is wrong by weeks or years must not cause data to be deleted, and a machine may have booted
 * with such a clock, so that no step was detected. The wall clock is used once a day's hours have been recorded near it; until then
 * nothing is pruned by age. Null: less than that was recorded.
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

/**
 * The first segment with samples of an hour between a time and now. Samples that arrived earlier are older than that time, regardless of
 * their timestamps: a clock that was wrong for a while does not keep them. Null: nothing was recorded since.
 */
function firstYoungSegment(db: DatabaseSync, fromMs: number, nowMs: number): number | null {
  const row = db
    .prepare('SELECT min(first_segment) AS segment FROM raw_hour WHERE hour_ms > ? AND hour_ms <= ?')
    .get(fromMs - HOUR_MS, nowMs);
  return (row as { segment: number | null }).segment;
}

/** Removes the raw samples of all earlier segments, which are adjacent: SQLite then frees their pages without writing them. */
function removeRawBefore(db: DatabaseSync, segment: number): boolean {
  const { changes } = db.prepare('DELETE FROM raw WHERE segment < ?').run(segment);
  if (changes === 0) return false;
  db.prepare('DELETE FROM raw_hour WHERE last_segment < ?').run(segment);
  return true;
}

/** Removes data older than its tier's retention. */
export function pruneByAge(db: DatabaseSync, nowMs: number): void {
  const fromMs = settledMs(db, nowMs);
  if (fromMs === null) return;
  const before = (days: number): number => fromMs - days * DAY_MS;
  const firstYoung = firstYoungSegment(db, before(RAW_DAYS), nowMs);
  if (firstYoung !== null) removeRawBefore(db, firstYoung);
  for (const { id } of db.prepare('SELECT id FROM node').all() as { id: number }[]) {
    db.prepare('DELETE FROM minute WHERE node_id = ? AND hour_ms < ?').run(id, before(MINUTE_DAYS));
    db.prepare('DELETE FROM hour WHERE node_id = ? AND hour_ms < ?').run(id, before(HOUR_DAYS));
  }
  // The newest rate before that time is still in force.
  db.prepare(
    `DELETE FROM rate WHERE since_ms < (SELECT max(newer.since_ms) FROM rate AS newer
     WHERE newer.node_id = rate.node_id AND newer.since_ms <= ?)`,
  ).run(before(HOUR_DAYS));
  db.prepare('DELETE FROM episode WHERE resolved = 1 AND changed_ms < ?').run(before(ALERT_DAYS));
  db.prepare('DELETE FROM alert_change WHERE changed_ms < ?').run(before(ALERT_DAYS));
  db.prepare('DELETE FROM clock_event WHERE timestamp_ms < ?').run(before(HOUR_DAYS));
}

/** Limits of changes of remote nodes' alerts, and of their episodes: their number, and their share of the size cap. */
const REMOTE_ALERTS = 50_000;
const REMOTE_SHARE = 1 / 8;
/** Bytes of a row beside its texts. The index of each table contains the id again. */
const ROW_BYTES = 100;

/** Order in which rows are kept: the changes recorded last; open episodes before resolved ones. */
const KEPT_FIRST = { alert_change: 'segment DESC, sequence DESC', episode: 'resolved, changed_ms DESC' } as const;

/**
 * Removes the oldest changes and episodes of remote nodes beyond their limits: neither age nor rate bounds how many alerts a network can
 * send, and no others are removed to free space.
 */
export function pruneRemoteAlerts(db: DatabaseSync, localNode: string, maxBytes: number): void {
  for (const [table, order] of Object.entries(KEPT_FIRST)) {
    const size = db.prepare(
      `SELECT count(*) AS count, total(2 * octet_length(alert_id) + octet_length(node) + octet_length(metric) + ${ROW_BYTES}) AS bytes
       FROM ${table} WHERE node <> ?`,
    );
    const remove = db.prepare(
      `DELETE FROM ${table} WHERE node <> ?1 AND (changed_ms, alert_id, severity, resolved) IN
       (SELECT changed_ms, alert_id, severity, resolved FROM ${table} WHERE node <> ?1 ORDER BY ${order} LIMIT -1 OFFSET ?2)`,
    );
    for (;;) {
      const { bytes, count } = size.get(localNode) as { bytes: number; count: number };
      const most = Math.min(REMOTE_ALERTS, Math.floor((count * maxBytes * REMOTE_SHARE) / 2 / Math.max(1, bytes)));
      if (count <= most) break;
      remove.run(localNode, most);
    }
  }
}

/** Reserve below the cap for the transaction in progress. */
const HEADROOM = 0.97;

/** Removes the 15 segments that arrived first. */
function removeOldestRaw(db: DatabaseSync): boolean {
  const nextSegment = db.prepare('SELECT min(segment) AS segment FROM raw WHERE segment >= ?');
  let before = 0;
  for (let count = 0; count < 15; count += 1) {
    const { segment } = nextSegment.get(before) as { segment: number | null };
    if (segment === null) break;
    before = segment + 1;
  }
  return removeRawBefore(db, before);
}

function removeOldestHour(db: DatabaseSync, table: 'minute' | 'hour'): boolean {
  const { changes } = db
    .prepare(
      `DELETE FROM ${table} WHERE (node_id, hour_ms) = (SELECT id, (SELECT min(hour_ms) FROM ${table} WHERE node_id = id) AS ms
       FROM node WHERE ms IS NOT NULL ORDER BY ms LIMIT 1)`,
    )
    .run();
  return changes > 0;
}

/** Keeps the used size below the cap: the oldest raw samples are removed first, then minutes, then hours; alerts stay. */
export function pruneBySize(db: DatabaseSync, maxBytes: number): void {
  const inUse = (): number => {
    const { totalBytes, freeBytes } = sizeOf(db);
    return totalBytes - freeBytes;
  };
  while (inUse() > maxBytes * HEADROOM) {
    if (!removeOldestRaw(db) && !removeOldestHour(db, 'minute') && !removeOldestHour(db, 'hour')) break;
  }
  // Free pages are reused; only pages beyond the cap (it was lowered, or there were many alerts) are returned to the file system.
  if (sizeOf(db).totalBytes > maxBytes) db.exec('PRAGMA incremental_vacuum');
}
