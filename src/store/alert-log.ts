import type { Alert } from '../core/alert.ts';
import type { AlertPage, AlertQuery, Mark } from '../core/ports.ts';
import { AlertTable, BEFORE_ALL, changeKey, type RecordedChange } from './alert-table.ts';
import { standInDatabase } from './database.ts';
import { compareMarks } from './recorded.ts';

interface Waiting {
  readonly alert: Alert;
  readonly mark: Mark;
  /** When its episode began, where the database knew. */
  readonly raisedMs: number | undefined;
}

/**
 * The alerts in the database, and over them the changes that could not be written there yet (a full disk), which readers see
 * all the same.
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
   * Writes one change durably; tells whether it was news. Throws when that fails; the change is then kept in memory until
   * flush() succeeds.
   */
  save(alert: Alert, mark: Mark = BEFORE_ALL): boolean {
    this.#waiting.push({ alert, mark, raisedMs: this.#raisedMs(alert.alert_id) });
    return this.flush();
  }

  /** Keeps a change in memory until flush(), without trying to write it. */
  hold(alert: Alert, mark: Mark = BEFORE_ALL): void {
    this.#remember([...this.#waiting, { alert, mark, raisedMs: this.#raisedMs(alert.alert_id) }]);
  }

  /** Keeps the open episodes of a database that is about to be left for the next one. */
  keepOpenEpisodes(): void {
    let open: Waiting[] = [];
    try {
      open = this.openOnDisk().map((alert) => ({ alert, mark: BEFORE_ALL, raisedMs: this.#raisedMs(alert.alert_id) }));
    } catch {
      // Too damaged to tell.
    }
    this.#remember([...open, ...this.#waiting]);
  }

  /** Writes what waits; tells whether the last of it was news. Throws at the first that cannot be written. */
  flush(): boolean {
    let isNews = false;
    try {
      while (this.#waiting.length > 0) {
        const { alert, mark, raisedMs } = this.#waiting[0] as Waiting;
        isNews = this.#disk.save(alert, mark, raisedMs);
        this.#waiting.shift();
      }
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
    const key = (alert: Alert): string => (query.changes ? changeKey(alert) : alert.alert_id);
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
