import type { Alert } from '../../core/alerts/alert.ts';
import type { AlertPage, AlertQuery, Mark } from '../../core/ports.ts';
import { standInDatabase } from '../database/database.ts';
import { compareMarks } from '../samples/recorded.ts';
import { AlertTable, BEFORE_ALL, orderKey, type RecordedChange } from './alert-table.ts';

interface Waiting {
  readonly alert: Alert;
  readonly mark: Mark;
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
  save(alert: Alert, mark: Mark = BEFORE_ALL): boolean {
    this.#waiting.push({ alert, mark, raisedMs: this.#raisedMs(alert.alert_id), isRemote: false });
    return this.flush(0);
  }

  /** Keeps a change in memory until flush(). Returns whether it is new. */
  hold(alert: Alert, mark: Mark = BEFORE_ALL, isRemote = false): boolean {
    if (this.#isKnownOnDisk(alert)) return false;
    const raisedMs = this.#raisedMs(alert.alert_id);
    this.#memory ??= new AlertTable(standInDatabase());
    if (!this.#memory.save(alert, mark, raisedMs)) return false;
    this.#waiting.push({ alert, mark, raisedMs, isRemote });
    if (this.#waiting.filter((change) => change.isRemote).length > MAX_WAITING_REMOTE) this.#dropOldest();
    return true;
  }

  /** Carries the open episodes of a damaged database over to the next one. */
  keepOpenEpisodes(): void {
    let open: Waiting[] = [];
    try {
      open = this.openOnDisk().map((alert) => ({ alert, mark: BEFORE_ALL, raisedMs: this.#raisedMs(alert.alert_id), isRemote: false }));
    } catch {
      // The database is too damaged to be read.
    }
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
      this.#disk.transaction(() => {
        for (const { alert, mark, raisedMs } of due) isNew = this.#disk.save(alert, mark, raisedMs);
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
  recorded(after: Mark, node: string | null, limit: number): RecordedChange[] {
    const changes = this.#disk.recorded(after, node, limit);
    if (!this.#memory) return changes;
    return [...changes, ...this.#memory.recorded(after, node, limit)].sort((a, b) => compareMarks(a.mark, b.mark)).slice(0, limit);
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

  #isKnownOnDisk(alert: Alert): boolean {
    try {
      return this.#disk.contains(alert);
    } catch {
      return false;
    }
  }

  #idsWaiting(): Set<string> {
    return new Set(this.#waiting.map(({ alert }) => alert.alert_id));
  }

  #setWaiting(waiting: Waiting[]): void {
    this.#waiting = waiting;
    this.#memory = waiting.length === 0 ? null : new AlertTable(standInDatabase());
    for (const { alert, mark, raisedMs } of waiting) this.#memory?.save(alert, mark, raisedMs);
  }

  #raisedMs(alertId: string): number | undefined {
    try {
      return this.#disk.raisedMs(alertId) ?? undefined;
    } catch {
      return undefined;
    }
  }
}
