import type { Alert } from '../core/alert.ts';
import type { AlertPage, AlertQuery } from '../core/ports.ts';
import { AlertTable } from './alert-table.ts';
import { standInDatabase } from './database.ts';

/**
 * The alerts in the database, and over them the changes that could not be written there yet (a full disk), which readers see
 * all the same.
 */
export class AlertLog {
  #disk: AlertTable;
  #memory: AlertTable | null = null;
  /** Changes waiting to be written, in order. */
  #waiting: Alert[] = [];

  constructor(disk: AlertTable) {
    this.#disk = disk;
  }

  /** Goes on with another database; what waits stays waiting. */
  replace(disk: AlertTable): void {
    this.#disk = disk;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Writes one change durably. Throws when that fails; the change is then kept in memory until flush() succeeds. */
  save(alert: Alert): void {
    this.#waiting.push(alert);
    try {
      this.flush();
    } catch (error) {
      this.#remember(alert);
      throw error;
    }
  }

  /** Keeps a change in memory until flush(), without trying to write it. */
  hold(alert: Alert): void {
    this.#waiting.push(alert);
    this.#remember(alert);
  }

  #remember(alert: Alert): void {
    this.#memory ??= new AlertTable(standInDatabase());
    this.#memory.save(alert);
  }

  /** Writes what waits; throws at the first that cannot be written. */
  flush(): void {
    while (this.#waiting.length > 0) {
      this.#disk.save(this.#waiting[0] as Alert);
      this.#waiting.shift();
    }
    this.#memory = null;
  }

  open(): Alert[] {
    if (!this.#memory) return this.#disk.open();
    const newer = new Set(this.#waiting.map((alert) => alert.alert_id));
    return [...this.#disk.open().filter((alert) => !newer.has(alert.alert_id)), ...this.#memory.open()];
  }

  list(query: AlertQuery): AlertPage {
    if (!this.#memory) return this.#disk.list(query);
    const newer = new Set(query.changes ? [] : this.#waiting.map((alert) => alert.alert_id));
    const old = this.#disk.list({ ...query, limit: query.limit + newer.size });
    const fresh = this.#memory.list(query);
    const merged = [...old.alerts.filter((alert) => !newer.has(alert.alert_id)), ...fresh.alerts].sort((a, b) =>
      a.timestamp === b.timestamp ? (a.alert_id < b.alert_id ? 1 : -1) : a.timestamp < b.timestamp ? 1 : -1,
    );
    const alerts = merged.slice(0, query.limit);
    const last = alerts.at(-1);
    const more = merged.length > query.limit || old.next !== null || fresh.next !== null;
    const key = (alert: Alert): string => (query.changes ? `${alert.alert_id}|${alert.severity}${alert.resolved ? 1 : 0}` : alert.alert_id);
    return { alerts, next: more && last ? { timestampMs: Date.parse(last.timestamp), key: key(last) } : null };
  }
}
