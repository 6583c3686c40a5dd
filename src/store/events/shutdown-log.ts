import type { DatabaseSync } from 'node:sqlite';
import type { ShutdownQuery, ShutdownRecord } from '../../core/shutdown/shutdown.ts';
import { transaction } from '../database/database.ts';

/** Limit of stored records, separately for accepted and refused requests, so that refusals cannot displace accepted ones. */
export const KEPT_OF_EACH = 2000;
/** Limit of records in memory while the database cannot be written; refused ones are dropped first. */
const MAX_WAITING = 500;

const isAccepted = ({ outcome }: ShutdownRecord): boolean => outcome !== 'refused';
const isEnded = ({ outcome }: ShutdownRecord): boolean => outcome !== 'in_progress';

/** Requests of a safe shutdown: those in the database merged with pending ones. */
export class ShutdownLog {
  #db: DatabaseSync;
  #waiting = new Map<string, ShutdownRecord>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Switches to another database; pending records stay pending. */
  replace(db: DatabaseSync): void {
    this.#db = db;
  }

  /** Keeps a record in memory until flush(). */
  hold(record: ShutdownRecord): void {
    const waiting = this.#waiting.get(record.request_id);
    if (waiting && isEnded(waiting) && !isEnded(record)) return;
    this.#waiting.set(record.request_id, record);
    if (this.#waiting.size <= MAX_WAITING) return;
    const refused = [...this.#waiting.values()].find((candidate) => !isAccepted(candidate));
    this.#waiting.delete((refused ?? (this.#waiting.values().next().value as ShutdownRecord)).request_id);
  }

  /** Writes a record durably. On failure it throws and keeps the record in memory until flush() succeeds. */
  save(record: ShutdownRecord): void {
    this.hold(record);
    this.flush();
  }

  /** Writes the pending records; throws at the first failure. */
  flush(): void {
    for (const record of this.#waiting.values()) {
      this.#write(record);
      this.#waiting.delete(record.request_id);
    }
  }

  list({ accepted, limit }: ShutdownQuery): ShutdownRecord[] {
    const where = accepted === null ? '' : `WHERE accepted = ${accepted ? 1 : 0}`;
    const rows = this.#db
      .prepare(`SELECT document FROM shutdown_request ${where} ORDER BY request_id DESC LIMIT ?`)
      .all(limit + this.#waiting.size) as { document: string }[];
    const found = new Map<string, ShutdownRecord>();
    for (const { document } of rows) {
      const record = JSON.parse(document) as ShutdownRecord;
      found.set(record.request_id, record);
    }
    for (const record of this.#waiting.values()) {
      if (accepted === null || isAccepted(record) === accepted) found.set(record.request_id, record);
    }
    return [...found.values()].sort((a, b) => (a.request_id < b.request_id ? 1 : -1)).slice(0, limit);
  }

  #write(record: ShutdownRecord): void {
    const accepted = isAccepted(record) ? 1 : 0;
    transaction(this.#db, () => {
      // A record from the spool of a killed run may be older than the stored one.
      this.#db
        .prepare(
          `INSERT INTO shutdown_request VALUES (?, ?, ?, ?) ON CONFLICT (accepted, request_id) DO UPDATE
           SET ended = excluded.ended, document = excluded.document WHERE shutdown_request.ended <= excluded.ended`,
        )
        .run(accepted, record.request_id, isEnded(record) ? 1 : 0, JSON.stringify(record));
      this.#db
        .prepare(
          `DELETE FROM shutdown_request WHERE accepted = ?1 AND request_id <=
           (SELECT request_id FROM shutdown_request WHERE accepted = ?1 ORDER BY request_id DESC LIMIT 1 OFFSET ?2)`,
        )
        .run(accepted, KEPT_OF_EACH);
    });
  }
}
