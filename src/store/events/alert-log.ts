import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { type Alert, nodeOfAlertId, OBSERVED_METRICS, raisedBy, type Severity } from '../../core/alerts/alert.ts';
import { type AlertPage, type AlertQuery, compareCursors, type RecordCursor } from '../../core/ports.ts';
import { type ClockCorrection, corrected } from '../../core/time/clock-watch.ts';
import { DAY_MS, isoUtc } from '../../core/time/time.ts';
import { standInDatabase, transaction } from '../database/database.ts';

/** A change of an alert episode with its cursor. */
export interface RecordedChange {
  readonly alert: Alert;
  readonly cursor: RecordCursor;
}

interface Waiting {
  readonly alert: Alert;
  readonly cursor: RecordCursor;
  /** Start of the episode, if the database has it. */
  readonly raisedMs: number | undefined;
  readonly isRemote: boolean;
}

/** Limit of pending changes of remote nodes. When it is exceeded, the oldest are dropped until KEPT_REMOTE remain. */
const MAX_WAITING_REMOTE = 4096;
const KEPT_REMOTE = 2048;

/**
 * The alerts in the database merged with pending changes, which reads include: changes of remote nodes, which are written in batches, and
 * changes that could not be written.
 */
export class AlertLog {
  #disk: AlertTable;
  /** The pending changes as an in-memory table; null while there are none. */
  #memory: AlertTable | null = null;
  #waiting: Waiting[] = [];

  constructor(disk: AlertTable) {
    this.#disk = disk;
  }

  /** Continues with another database; pending changes stay pending. */
  replace(disk: AlertTable): void {
    this.#disk = disk;
  }

  /**
   * Writes one change of this node durably and returns whether it is new. On failure it throws and keeps the change in memory until
   * flush() succeeds.
   */
  save(alert: Alert, cursor: RecordCursor = BEFORE_ALL): boolean {
    this.#waiting.push({ alert, cursor, raisedMs: this.#raisedMs(alert.alert_id), isRemote: false });
    return this.flush(0);
  }

  /** Keeps a change in memory until flush(). Returns whether it is new. */
  hold(alert: Alert, cursor: RecordCursor = BEFORE_ALL, isRemote = false): boolean {
    if (orElse(() => this.#disk.contains(alert), false)) return false;
    const raisedMs = this.#raisedMs(alert.alert_id);
    this.#memory ??= new AlertTable(standInDatabase());
    if (!this.#memory.save(alert, cursor, raisedMs)) return false;
    this.#waiting.push({ alert, cursor, raisedMs, isRemote });
    if (this.#waiting.filter((change) => change.isRemote).length > MAX_WAITING_REMOTE) this.#dropOldest();
    return true;
  }

  /** Carries the open episodes of a damaged database over to the next one. */
  keepOpenEpisodes(): void {
    const open = orElse(() => this.openOnDisk(), []).map((alert) => ({
      alert,
      cursor: BEFORE_ALL,
      raisedMs: this.#raisedMs(alert.alert_id),
      isRemote: false,
    }));
    this.#setWaiting([...open, ...this.#waiting]);
  }

  /**
   * Writes the pending changes, at most `maxRemote` of remote nodes, oldest first. Returns whether the last one written is new. On
   * failure it throws and all of them stay pending.
   */
  flush(maxRemote = Number.POSITIVE_INFINITY): boolean {
    let remote = 0;
    const due: Waiting[] = [];
    const left: Waiting[] = [];
    for (const change of this.#waiting) (change.isRemote && ++remote > maxRemote ? left : due).push(change);
    if (due.length === 0) return false;
    let isNew = false;
    try {
      transaction(this.#disk.db, () => {
        for (const { alert, cursor, raisedMs } of due) isNew = this.#disk.save(alert, cursor, raisedMs);
      });
      this.#waiting = left;
    } finally {
      this.#setWaiting(this.#waiting);
    }
    return isNew;
  }

  open(): Alert[] {
    if (!this.#memory) return this.#disk.open();
    return [...this.openOnDisk(), ...this.#memory.open()];
  }

  /** Episodes open in the database, except those with pending changes. */
  openOnDisk(): Alert[] {
    const newer = this.#idsWaiting();
    return this.#disk.open().filter((alert) => !newer.has(alert.alert_id));
  }

  list(query: AlertQuery): AlertPage {
    if (!this.#memory) return this.#disk.list(query);
    const newer = query.changes ? new Set<string>() : this.#idsWaiting();
    const old = this.#disk.list({ ...query, limit: query.limit + newer.size });
    const fresh = this.#memory.list(query);
    const key = (alert: Alert): string => (query.changes ? orderKey(alert) : alert.alert_id);
    const merged = [...old.alerts.filter((alert) => !newer.has(alert.alert_id)), ...fresh.alerts].sort((a, b) =>
      a.timestamp === b.timestamp ? (key(a) < key(b) ? 1 : -1) : a.timestamp < b.timestamp ? 1 : -1,
    );
    const alerts = merged.slice(0, query.limit);
    const last = alerts.at(-1);
    const more = merged.length > query.limit || old.next !== null || fresh.next !== null;
    return { alerts, next: more && last ? { timestampMs: Date.parse(last.timestamp), key: key(last) } : null };
  }

  /** Changes recorded after a cursor, in that order. */
  recorded(after: RecordCursor, node: string | null, limit: number): RecordedChange[] {
    const changes = this.#disk.recorded(after, node, limit);
    if (!this.#memory) return changes;
    return [...changes, ...this.#memory.recorded(after, node, limit)].sort((a, b) => compareCursors(a.cursor, b.cursor)).slice(0, limit);
  }

  /** Corrects the times of open episodes that this machine raised, and of their changes; returns those episodes. */
  correct(localNode: string, correction: ClockCorrection): Alert[] {
    const pending = this.#waiting.map((change) => {
      const { alert, raisedMs } = change;
      if (raisedBy(alert, localNode) === 'other') return change;
      const timestamp = isoUtc(corrected(Date.parse(alert.timestamp), correction));
      return { ...change, alert: { ...alert, timestamp }, raisedMs: raisedMs && corrected(raisedMs, correction) };
    });
    this.#setWaiting(pending);
    this.#disk.correct(localNode, correction);
    const isCorrected = (ms: number): boolean => corrected(ms - correction.deltaMs, correction) === ms;
    return this.open().filter((alert) => raisedBy(alert, localNode) !== 'other' && isCorrected(Date.parse(alert.timestamp)));
  }

  /** Segment of the last change written; 0: there is none. */
  lastSegment(): number {
    return this.#disk.lastSegment();
  }

  get hasRemoteWaiting(): boolean {
    return this.#waiting.some(({ isRemote }) => isRemote);
  }

  /** Drops changes of open episodes last, because these are listed as open. */
  #dropOldest(): void {
    const last = new Map(this.#waiting.map((change) => [change.alert.alert_id, change]));
    const isOpen = (change: Waiting): boolean => last.get(change.alert.alert_id) === change && !change.alert.resolved;
    const remote = this.#waiting.filter(({ isRemote }) => isRemote);
    const left = new Set([...remote.filter((change) => !isOpen(change)), ...remote.filter(isOpen)].slice(-KEPT_REMOTE));
    this.#setWaiting(this.#waiting.filter((change) => !change.isRemote || left.has(change)));
  }

  #idsWaiting(): Set<string> {
    return new Set(this.#waiting.map(({ alert }) => alert.alert_id));
  }

  #setWaiting(waiting: Waiting[]): void {
    this.#waiting = waiting;
    this.#memory = waiting.length === 0 ? null : new AlertTable(standInDatabase());
    for (const { alert, cursor, raisedMs } of waiting) this.#memory?.save(alert, cursor, raisedMs);
  }

  #raisedMs(alertId: string): number | undefined {
    return orElse(() => this.#disk.raisedMs(alertId), null) ?? undefined;
  }
}

/** The result of `read`, or `otherwise` where the database is too damaged to be read: pending changes must not be lost with it. */
function orElse<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

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
function orderKey(alert: Alert): string {
  return `${alert.alert_id}|${alert.severity}${alert.resolved ? 1 : 0}`;
}

/** Marks a change carried over from another database, which is not sent to event streams again. */
const BEFORE_ALL: RecordCursor = { segment: 0, sequence: 0 };

/** Alert episodes (their last change) and every change of them. */
export class AlertTable {
  readonly db: DatabaseSync;

  constructor(db: DatabaseSync) {
    this.db = db;
  }

  /**
   * Saves one change; saving it again has no effect. The newer of two changes is the one saved later, not the one with the later
   * timestamp, because the clock may have been set back. `raisedMs` is the start of the episode if earlier changes of it are not stored.
   * Returns whether the change is new: neither stored before nor of a resolved episode.
   */
  save(alert: Alert, cursor: RecordCursor = BEFORE_ALL, raisedMs?: number): boolean {
    const changedMs = Date.parse(alert.timestamp);
    const node = nodeOfAlertId(alert.alert_id);
    const resolved = alert.resolved ? 1 : 0;
    return transaction(this.db, () => {
      const { changes } = this.db
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
          cursor.segment,
          cursor.sequence,
        );
      if (changes === 0) return false;
      const beganMs = Math.min(raisedMs ?? changedMs, changedMs);
      const episode = this.db
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
    const row = this.db
      .prepare(
        `SELECT 1 FROM alert_change WHERE changed_ms = ? AND alert_id = ? AND severity = ? AND resolved = ?
         UNION ALL SELECT 1 FROM episode WHERE alert_id = ? AND resolved = 1 LIMIT 1`,
      )
      .get(Date.parse(timestamp), alert_id, severity, resolved ? 1 : 0, alert_id);
    return row !== undefined;
  }

  correct(localNode: string, { deltaMs, fromMs, toMs }: ClockCorrection): void {
    const values = { deltaMs, fromMs, localNode, observed: JSON.stringify(OBSERVED_METRICS), toMs };
    const isOpenHere = 'resolved = 0 AND (node = :localNode OR metric IN (SELECT value FROM json_each(:observed)))';
    const shifted = (column: string): string => `${column} = ${column} + iif(${column} BETWEEN :fromMs AND :toMs, :deltaMs, 0)`;
    transaction(this.db, () => {
      for (const update of [
        `UPDATE alert_change SET ${shifted('changed_ms')} WHERE alert_id IN (SELECT alert_id FROM episode WHERE ${isOpenHere})`,
        `UPDATE episode SET ${shifted('raised_ms')}, ${shifted('changed_ms')} WHERE ${isOpenHere}`,
      ])
        this.db.prepare(update).run(values);
    });
  }

  /** Start of an episode; null when it is not stored here. */
  raisedMs(alertId: string): number | null {
    const row = this.db.prepare('SELECT raised_ms FROM episode WHERE alert_id = ?').get(alertId) as { raised_ms: number } | undefined;
    return row?.raised_ms ?? null;
  }

  open(): Alert[] {
    const rows = this.db.prepare('SELECT * FROM episode WHERE resolved = 0 ORDER BY changed_ms').all() as unknown as AlertRow[];
    return rows.map(toAlert);
  }

  /** Changes recorded after a cursor, in that order. `node` null: of every node. */
  recorded(after: RecordCursor, node: string | null, limit: number): RecordedChange[] {
    const rows = this.db
      .prepare(
        `SELECT * FROM alert_change WHERE (segment, sequence) > (?, ?) ${node === null ? '' : 'AND node = ?'}
         ORDER BY segment, sequence LIMIT ?`,
      )
      .all(after.segment, after.sequence, ...(node === null ? [] : [node]), limit) as unknown as (AlertRow & {
      segment: number;
      sequence: number;
    })[];
    return rows.map((row) => ({ alert: toAlert(row), cursor: { segment: row.segment, sequence: row.sequence } }));
  }

  /** Segment of the last change recorded; 0: there is none. */
  lastSegment(): number {
    return (this.db.prepare('SELECT max(segment) AS segment FROM alert_change').get() as { segment: number | null }).segment ?? 0;
  }

  list(query: AlertQuery): AlertPage {
    const where: string[] = [];
    const values: SQLInputValue[] = [];
    const add = (condition: string, ...more: SQLInputValue[]): void => {
      where.push(condition);
      values.push(...more);
    };
    if (query.id !== undefined) add('alert_id = ?', query.id);
    if (query.node !== null) add('node = ?', query.node);
    if (query.severity !== null) add('severity = ?', query.severity);
    if (query.metric !== null) add('metric = ?', query.metric);
    if (query.resolved !== null) add('resolved = ?', query.resolved ? 1 : 0);
    const { range } = query;
    if (query.id !== undefined) {
      // The key of a change begins with its time.
      if (query.changes) add('changed_ms >= (SELECT raised_ms FROM episode WHERE alert_id = ?)', query.id);
    } else if (query.changes) {
      add('changed_ms >= ? AND changed_ms < ?', range?.fromMs ?? query.nowMs - DAY_MS, range?.toMs ?? Number.MAX_SAFE_INTEGER);
    } else if (range) {
      // An episode belongs to every range during which it was open.
      add('raised_ms < ? AND (resolved = 0 OR changed_ms >= ?)', range.toMs, range.fromMs);
    } else {
      add('(resolved = 0 OR changed_ms >= ?)', query.nowMs - DAY_MS);
    }
    const key = query.changes ? "alert_id || '|' || severity || resolved" : 'alert_id';
    if (query.after) add(`(changed_ms, ${key}) < (?, ?)`, query.after.timestampMs, query.after.key);
    const rows = this.db
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
