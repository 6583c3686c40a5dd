import type { Log, StorageState } from '../../core/ports.ts';
import { isoUtc } from '../../core/time/time.ts';
import type { Written } from './protocol.ts';

type ReportedState = Pick<StorageState, 'state' | 'error' | 'since' | 'size_bytes' | 'oldest_sample' | 'last_write' | 'quarantined'>;

/** State of writing to the database, for the log and /status. */
export class StoreHealth {
  readonly #log: Log;
  readonly #quarantined: string[] = [];
  #state: StorageState['state'] = 'starting';
  #error: string | null = null;
  #since: string | null = null;
  #written: Written = { sizeBytes: 0, oldestSampleMs: null, alertsNotStored: 0 };
  #lastWrite: string | null = null;
  #isAlertBudgetSpent = false;

  constructor(log: Log) {
    this.#log = log;
  }

  get isOk(): boolean {
    return this.#state === 'ok';
  }

  /** Reason of the last failure; null while writing works. */
  get error(): string | null {
    return this.#error;
  }

  /** Changes of remote nodes' alerts that exceeded the daily write budget. */
  get alertsNotStored(): number {
    return this.#written.alertsNotStored;
  }

  setDatabaseState(written: Written): void {
    this.#written = written;
  }

  recordSuccess(written: Written, samplesLost: number): void {
    const more = written.alertsNotStored - this.#written.alertsNotStored;
    if (more > 0 && !this.#isAlertBudgetSpent)
      this.#log('warning', 'remote alerts shown but not stored: daily write budget used up', { changes: more });
    this.#isAlertBudgetSpent = more > 0;
    this.#written = written;
    this.#lastWrite = isoUtc(Date.now());
    if (this.#state === 'degraded') this.#log('notice', 'storage recovered', { since: this.#since, samples_lost: samplesLost });
    this.#state = 'ok';
    this.#error = null;
    this.#since = null;
  }

  recordFailure(error: string): void {
    if (this.#state !== 'degraded') {
      this.#since = isoUtc(Date.now());
      this.#log('error', 'cannot write the database; samples are kept in memory and writing is retried', { error });
    }
    this.#state = 'degraded';
    this.#error = error;
  }

  /** Logs that the disk stopped responding, or responds again. */
  setHanging(hangs: boolean): void {
    if (hangs) this.#log('error', 'database disk does not respond; samples are kept in memory');
    else this.#log('notice', 'database disk responds again');
  }

  recordQuarantine(quarantined: string, reason: string): void {
    this.#quarantined.push(quarantined);
    this.#log('error', 'unusable database quarantined and a new one created', { quarantined: quarantined, reason });
  }

  storageState(): ReportedState {
    const { oldestSampleMs, sizeBytes } = this.#written;
    return {
      state: this.#state,
      error: this.#error,
      since: this.#since,
      size_bytes: sizeBytes,
      oldest_sample: oldestSampleMs === null ? null : isoUtc(oldestSampleMs),
      last_write: this.#lastWrite,
      quarantined: this.#quarantined,
    };
  }
}
