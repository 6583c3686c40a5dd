import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import type { Alert } from '../../core/alert.ts';
import type { LogLevel } from '../../core/ports.ts';
import { HOUR_MS } from '../../core/time.ts';
import { Store, type StoreOptions } from '../store.ts';
import { type Row, toRows, toStatus } from './rows.ts';

export const NODE = 'health_monitor';
/** Lately: the store keeps raw samples for some days only. */
export const START = Math.floor(Date.now() / HOUR_MS - 5) * HOUR_MS;
export const EVER = { fromMs: 0, toMs: 8e14 };

/** A store whose minutes pass when the test says so. */
export class TestStore {
  readonly store: Store;
  readonly logged: { readonly level: LogLevel; readonly message: string }[] = [];
  readonly lateOpens: (readonly Alert[])[] = [];
  #seconds = 0;
  #stopped = false;

  constructor(folder: string, more: Partial<StoreOptions> = {}) {
    this.store = new Store({
      dataPath: join(folder, 'data'),
      maxBytes: 64e6,
      node: NODE,
      hertz: 1,
      worker: new URL('../worker.ts', import.meta.url),
      environment: { RUNTIME_DIRECTORY: join(folder, 'run') },
      log: (level, message) => this.logged.push({ level, message }),
      monotonicSeconds: () => this.#seconds,
      onLateOpen: (alerts) => this.lateOpens.push(alerts),
      retrySeconds: 0.05,
      ...more,
    });
  }

  record(rows: readonly Row[], node = NODE): void {
    for (const row of rows) {
      const status = toStatus(row, node);
      this.store.recordHealth(status, JSON.stringify(status), row.timestampMs);
    }
  }

  /** Records rows after a minute has passed, so that what came before them begins to be written. */
  recordNextMinute(rows: readonly Row[], node = NODE): void {
    this.#seconds += 60;
    this.record(rows, node);
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

/** Waits until it is so; a test that waits in vain fails. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 3000; tries += 1) {
    if (await condition()) return;
    await sleep(10);
  }
  throw new Error(`it never came true that ${what}`);
}
