import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { type Alert, nodeOfAlertId, type Severity } from '../../core/alerts/alert.ts';
import type { AlertPage, AlertQuery, Mark } from '../../core/ports.ts';
import { DAY_MS, isoUtc } from '../../core/time/time.ts';

interface AlertRow {
  alert_id: string;
  metric: string;
  severity: Severity;
  value: number;
  threshold: number;
  changed_ms: number;
  resolved: number;
}

function toAlert(row: AlertRow): Alert {
  return {
    alert_id: row.alert_id,
    severity: row.severity,
    metric: row.metric,
    value: row.value,
    threshold: row.threshold,
    timestamp: isoUtc(row.changed_ms),
    resolved: row.resolved !== 0,
  };
}

/** Sort key among changes of the same time, built as in the query for changes. */
export function orderKey(alert: Alert): string {
  return `${alert.alert_id}|${alert.severity}${alert.resolved ? 1 : 0}`;
}

/** Marks a change carried over from another database, which is not sent to event streams again. */
export const BEFORE_ALL: Mark = { segment: 0, sequence: 0 };

export interface RecordedChange {
  readonly alert: Alert;
  readonly mark: Mark;
}

/** Alert episodes (their last change) and every change of them. */
export class AlertTable {
  readonly #db: DatabaseSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /**
   * Saves one change; saving it again has no effect. The newer of two changes is the one saved later, not the one with the later time
   * stamp, because the clock may have been set back. `raisedMs` is the start of the episode if earlier changes of it are not stored here.
   * Returns whether the change is new: neither stored before nor of a resolved episode.
   */
  save(alert: Alert, mark: Mark = BEFORE_ALL, raisedMs?: number): boolean {
    const changedMs = Date.parse(alert.timestamp);
    const node = nodeOfAlertId(alert.alert_id);
    const resolved = alert.resolved ? 1 : 0;
    return this.transaction(() => {
      const { changes } = this.#db
        .prepare('INSERT OR IGNORE INTO alert_change VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
        .run(
          alert.alert_id,
          changedMs,
          node,
          alert.metric,
          alert.severity,
          alert.value,
          alert.threshold,
          resolved,
          mark.segment,
          mark.sequence,
        );
      if (changes === 0) return false;
      const beganMs = Math.min(raisedMs ?? changedMs, changedMs);
      const episode = this.#db
        .prepare(
          `INSERT INTO episode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (alert_id) DO UPDATE SET
             severity = excluded.severity, value = excluded.value, threshold = excluded.threshold,
             raised_ms = min(raised_ms, excluded.raised_ms), changed_ms = excluded.changed_ms, resolved = excluded.resolved
             WHERE episode.resolved = 0`,
        )
        .run(alert.alert_id, node, alert.metric, alert.severity, alert.value, alert.threshold, beganMs, changedMs, resolved);
      return episode.changes > 0;
    });
  }

  /** Whether a change is stored already, or its episode is resolved. */
  contains({ alert_id, resolved, severity, timestamp }: Alert): boolean {
    const row = this.#db
      .prepare(
        `SELECT 1 FROM alert_change WHERE changed_ms = ? AND alert_id = ? AND severity = ? AND resolved = ?
         UNION ALL SELECT 1 FROM episode WHERE alert_id = ? AND resolved = 1 LIMIT 1`,
      )
      .get(Date.parse(timestamp), alert_id, severity, resolved ? 1 : 0, alert_id);
    return row !== undefined;
  }

  /** Runs `work` in a transaction, or as part of the open one. */
  transaction<T>(work: () => T): T {
    if (this.#db.isTransaction) return work();
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  /** Start of an episode; null when it is not stored here. */
  raisedMs(alertId: string): number | null {
    const row = this.#db.prepare('SELECT raised_ms FROM episode WHERE alert_id = ?').get(alertId) as { raised_ms: number } | undefined;
    return row?.raised_ms ?? null;
  }

  open(): Alert[] {
    const rows = this.#db.prepare('SELECT * FROM episode WHERE resolved = 0 ORDER BY changed_ms').all() as unknown as AlertRow[];
    return rows.map(toAlert);
  }

  /** Changes recorded after a cursor, in that order. `node` null: of every node. */
  recorded(after: Mark, node: string | null, limit: number): RecordedChange[] {
    const rows = this.#db
      .prepare(
        `SELECT * FROM alert_change WHERE (segment, sequence) > (?, ?) ${node === null ? '' : 'AND node = ?'}
         ORDER BY segment, sequence LIMIT ?`,
      )
      .all(after.segment, after.sequence, ...(node === null ? [] : [node]), limit) as unknown as (AlertRow & {
      segment: number;
      sequence: number;
    })[];
    return rows.map((row) => ({ alert: toAlert(row), mark: { segment: row.segment, sequence: row.sequence } }));
  }

  /** Segment of the last change recorded; 0: there is none. */
  lastSegment(): number {
    return (this.#db.prepare('SELECT max(segment) AS segment FROM alert_change').get() as { segment: number | null }).segment ?? 0;
  }

  list(query: AlertQuery): AlertPage {
    const where: string[] = [];
    const values: SQLInputValue[] = [];
    const add = (condition: string, ...more: SQLInputValue[]): void => {
      where.push(condition);
      values.push(...more);
    };
    if (query.node !== null) add('node = ?', query.node);
    if (query.severity !== null) add('severity = ?', query.severity);
    if (query.metric !== null) add('metric = ?', query.metric);
    if (query.resolved !== null) add('resolved = ?', query.resolved ? 1 : 0);
    const { range } = query;
    if (query.changes) {
      add('changed_ms >= ? AND changed_ms < ?', range?.fromMs ?? query.nowMs - DAY_MS, range?.toMs ?? Number.MAX_SAFE_INTEGER);
    } else if (range) {
      // An episode belongs to every range during which it was open.
      add('raised_ms < ? AND (resolved = 0 OR changed_ms >= ?)', range.toMs, range.fromMs);
    } else {
      add('(resolved = 0 OR changed_ms >= ?)', query.nowMs - DAY_MS);
    }
    const key = query.changes ? "alert_id || '|' || severity || resolved" : 'alert_id';
    if (query.after) add(`(changed_ms, ${key}) < (?, ?)`, query.after.timestampMs, query.after.key);
    const rows = this.#db
      .prepare(
        `SELECT *, ${key} AS key FROM ${query.changes ? 'alert_change' : 'episode'} WHERE ${where.join(' AND ')}
         ORDER BY changed_ms DESC, ${key} DESC LIMIT ?`,
      )
      .all(...values, query.limit + 1) as unknown as (AlertRow & { key: string })[];
    const page = rows.slice(0, query.limit);
    const last = page.at(-1);
    return {
      alerts: page.map(toAlert),
      next: rows.length > query.limit && last ? { timestampMs: last.changed_ms, key: last.key } : null,
    };
  }
}
