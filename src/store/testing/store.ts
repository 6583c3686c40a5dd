import { join } from 'node:path';
import type { Test } from 'tap';
import type { Alert } from '../../core/alerts/alert.ts';
import type { LogLevel, RecordCursor } from '../../core/ports.ts';
import { HOUR_MS } from '../../core/time/time.ts';
import { Store, type StoreOptions } from '../store.ts';
import type { Timer, Timers } from '../thread/worker-client.ts';
import { type Row, toRows, toStatus } from './rows.ts';

export { until } from '../../../testkit/wait.ts';

export const NODE = 'health_monitor';
/** A recent time, because the store prunes raw samples after some days. */
export const START = Math.floor(Date.now() / HOUR_MS - 5) * HOUR_MS;
export const EVER = { fromMs: 0, toMs: 8e14 };

/** Timers of at least this length expire only when the test advances the time; shorter retries run by themselves. */
const BY_ITSELF_BELOW_MS = 100;

/**
 * Controlled time of a store's disk timeouts and retries. However busy the machine is, a hang is detected and an alert's wait ends only
 * when a test advances the time.
 */
class TestTimers implements Timers {
  #seconds = 0;
  readonly #pending = new Map<Timer, { readonly atSeconds: number; readonly action: () => void }>();

  nowSeconds(): number {
    return this.#seconds;
  }

  setTimeout(action: () => void, milliseconds: number): Timer {
    if (milliseconds < BY_ITSELF_BELOW_MS) return setTimeout(action, milliseconds);
    const timer: Timer = { unref: () => timer };
    this.#pending.set(timer, { atSeconds: this.#seconds + milliseconds / 1000, action });
    return timer;
  }

  clearTimeout(timer: Timer): void {
    if (!this.#pending.delete(timer)) clearTimeout(timer as NodeJS.Timeout);
  }

  pass(seconds: number): void {
    const end = this.#seconds + seconds;
    for (;;) {
      const due = [...this.#pending].filter(([, { atSeconds }]) => atSeconds <= end).sort(([, a], [, b]) => a.atSeconds - b.atSeconds)[0];
      if (!due) break;
      const [timer, { atSeconds, action }] = due;
      this.#pending.delete(timer);
      this.#seconds = atSeconds;
      action();
    }
    this.#seconds = end;
  }
}

/** A store whose minutes pass under control of the test. */
export class TestStore {
  readonly store: Store;
  readonly logged: { readonly level: LogLevel; readonly message: string }[] = [];
  readonly lateOpens: (readonly Alert[])[] = [];
  readonly #timers = new TestTimers();
  #seconds = 0;
  #stopped = false;

  constructor(folder: string, more: Partial<StoreOptions> = {}) {
    this.store = new Store({
      dataPath: join(folder, 'data'),
      maxBytes: 64e6,
      node: NODE,
      hertz: 1,
      worker: new URL('../thread/worker.ts', import.meta.url),
      environment: { RUNTIME_DIRECTORY: join(folder, 'run') },
      log: (level, message) => this.logged.push({ level, message }),
      monotonicSeconds: () => this.#seconds,
      onLateOpen: (alerts) => this.lateOpens.push(alerts),
      retrySeconds: 0.05,
      timers: this.#timers,
      ...more,
    });
  }

  /** Returns the cursor of each row. */
  record(rows: readonly Row[], node = NODE): (RecordCursor | null)[] {
    return rows.map((row) => {
      const status = toStatus(row, node);
      return this.store.recordHealth(status, JSON.stringify(status), row.timestampMs);
    });
  }

  /** Records rows after a minute has passed, so that the preceding segment begins to be written. */
  recordNextMinute(rows: readonly Row[], node = NODE): (RecordCursor | null)[] {
    this.#seconds += 60;
    return this.record(rows, node);
  }

  /** Advances the time of disk timeouts and retries. */
  wait(seconds: number): void {
    this.#timers.pass(seconds);
  }

  async rows(node = NODE): Promise<Row[]> {
    return toRows(await this.store.history({ node, ...EVER, stepMs: null, order: 'asc', limit: 200_000 }));
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await this.store.stop();
  }
}

export async function startStore(t: Test, folder: string, more: Partial<StoreOptions> = {}): Promise<TestStore> {
  const started = new TestStore(folder, more);
  t.teardown(() => started.stop());
  await started.store.start();
  return started;
}
