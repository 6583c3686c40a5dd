import type { Log } from '../../core/ports.ts';
import type { ShutdownBook } from '../../core/shutdown/shutdown-ports.ts';
import type { ShutdownRecord } from '../../core/shutdown/shutdown-record.ts';
import { RefusalTally } from '../../core/shutdown/shutdown-tally.ts';

/** How often aggregated refusals are saved. */
const SAVE_SECONDS = 60;

/** Logs and records every refusal, individually or, in a burst, aggregated. */
export class RefusalRegister {
  readonly #book: ShutdownBook;
  readonly #log: Log;
  readonly #tally = new RefusalTally();
  #timer: NodeJS.Timeout | null = null;

  constructor(book: ShutdownBook, log: Log) {
    this.#book = book;
    this.#log = log;
  }

  add(refusal: ShutdownRecord, nowSeconds: number): void {
    const alone = this.#tally.add(refusal, nowSeconds);
    if (alone) void this.#save(alone);
    else this.#timer ??= setTimeout(() => void this.flush(), SAVE_SECONDS * 1000).unref();
  }

  /** Saves the refusals aggregated so far. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const together = this.#tally.due();
    if (together) await this.#save(together);
  }

  async #save(record: ShutdownRecord): Promise<void> {
    const { address, calls, message, port, reason, requested_by, timeout, user } = record;
    this.#log('warning', 'safe shutdown refused', { why: message, reason, requested_by, timeout, address, port, user, calls });
    await this.#book.recordShutdown(record);
  }
}
