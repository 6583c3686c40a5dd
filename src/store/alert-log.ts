import type { Alert } from '../core/alert.ts';
import type { AlertPage, AlertQuery, Mark } from '../core/ports.ts';
import { AlertTable, BEFORE_ALL, orderKey, type RecordedChange } from './alert-table.ts';
import { standInDatabase } from './database.ts';
import { compareMarks } from './recorded.ts';

interface Waiting {
  readonly alert: Alert;
  readonly mark: Mark;
  /** When its episode began, where the database knew. */
  readonly raisedMs: number | undefined;
  /** It is of another node. */
  readonly isRemote: boolean;
}

/** Changes of other nodes that wait at most: beyond it so many are left, and the others are never written. */
const MAX_WAITING = 4096;
const LEFT = 2048;

/**
 * The alerts in the database, and over them the changes that are not written there yet, which readers see all the same: those of other
 * nodes, which are written many at once, and those that the disk did not take.
 */
export class AlertLog {
  #disk: AlertTable;
  /** What waits, as a table of its own; null while nothing does. */
  #memory: AlertTable | null = null;
  /** Changes waiting to be written, in order. */
  #waiting: Waiting[] = [];

  constructor(disk: AlertTable) {
    this.#disk = disk;
  }

  /** Goes on with another database; what waits stays waiting. */
  replace(disk: AlertTable): void {
    this.#disk = disk;
  }

  /**
   * Writes one change of this node durably; tells whether it was news. Throws when that fails; the change is then kept in memory until
   * flush() succeeds.
   */
  save(alert: Alert, mark: Mark = BEFORE_ALL): boolean {
    this.#waiting.push({ alert, mark, raisedMs: this.#raisedMs(alert.alert_id), isRemote: false });
    return this.flush(0);
  }

  /** Keeps a change in memory until flush(), without trying to write it; tells whether it was news. */
  hold(alert: Alert, mark: Mark = BEFORE_ALL, isRemote = false): boolean {
    if (this.#isKnownOnDisk(alert)) return false;
    const raisedMs = this.#raisedMs(alert.alert_id);
    this.#memory ??= new AlertTable(standInDatabase());
    if (!this.#memory.save(alert, mark, raisedMs)) return false;
    this.#waiting.push({ alert, mark, raisedMs, isRemote });
    if (this.#waiting.filter((change) => change.isRemote).length > MAX_WAITING) this.#dropOldest();
    return true;
  }

  /** Keeps the open episodes of a database that is about to be left for the next one. */
  keepOpenEpisodes(): void {
    let open: Waiting[] = [];
    try {
      open = this.openOnDisk().map((alert) => ({ alert, mark: BEFORE_ALL, raisedMs: this.#raisedMs(alert.alert_id), isRemote: false }));
    } catch {
      // Too damaged to tell.
    }
    this.#remember([...open, ...this.#waiting]);
  }

  /**
   * Writes what waits, of other nodes the oldest so many; tells whether the last of it was news. Throws when that cannot be written; then
   * all of it waits on.
   */
  flush(maxRemote = Number.POSITIVE_INFINITY): boolean {
    let remote = 0;
    const due: Waiting[] = [];
    const left: Waiting[] = [];
    for (const change of this.#waiting) (change.isRemote && ++remote > maxRemote ? left : due).push(change);
    if (due.length === 0) return false;
    let isNews = false;
    try {
      this.#disk.transaction(() => {
        for (const { alert, mark, raisedMs } of due) isNews = this.#disk.save(alert, mark, raisedMs);
      });
      this.#waiting = left;
    } finally {
      this.#remember(this.#waiting);
    }
    return isNews;
  }

  open(): Alert[] {
    if (!this.#memory) return this.#disk.open();
    return [...this.openOnDisk(), ...this.#memory.open()];
  }

  /** Episodes that are open in the database, but for those of which changes wait. */
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

  /** Changes recorded after a place, in that order. */
  recorded(after: Mark, node: string | null, limit: number): RecordedChange[] {
    const changes = this.#disk.recorded(after, node, limit);
    if (!this.#memory) return changes;
    return [...changes, ...this.#memory.recorded(after, node, limit)].sort((a, b) => compareMarks(a.mark, b.mark)).slice(0, limit);
  }

  /** The segment in which the last change was recorded that is written; 0: there is none. */
  lastSegment(): number {
    return this.#disk.lastSegment();
  }

  /** Whether changes of other nodes wait to be written. */
  get hasRemoteWaiting(): boolean {
    return this.#waiting.some(({ isRemote }) => isRemote);
  }

  /** Of other nodes what is open goes last, as it is listed as such. */
  #dropOldest(): void {
    const last = new Map(this.#waiting.map((change) => [change.alert.alert_id, change]));
    const isOpen = (change: Waiting): boolean => last.get(change.alert.alert_id) === change && !change.alert.resolved;
    const remote = this.#waiting.filter(({ isRemote }) => isRemote);
    const left = new Set([...remote.filter((change) => !isOpen(change)), ...remote.filter(isOpen)].slice(-LEFT));
    this.#remember(this.#waiting.filter((change) => !change.isRemote || left.has(change)));
  }

  #isKnownOnDisk(alert: Alert): boolean {
    try {
      return this.#disk.knows(alert);
    } catch {
      return false;
    }
  }

  #idsWaiting(): Set<string> {
    return new Set(this.#waiting.map(({ alert }) => alert.alert_id));
  }

  #remember(waiting: Waiting[]): void {
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
