import { dirname } from 'node:path';
import type { Log } from '../../src/core/ports.ts';
import { readIfThere, writeAtomically } from '../../src/system/atomic-file.ts';
import { diskProblem } from '../lib/disk-problem.ts';
import { appendLines } from '../lib/files.ts';
import { makeFolder } from '../lib/folder.ts';
import { EMPTY_MEMORY, type Memory, memoryOf, merged, type Patch, patched } from './memory.ts';

export function journalFile(dataFolder: string): string {
  return `${dataFolder}/ops/notifications.ndjson`;
}

/** Beyond it the journal is written anew. */
const MAX_BYTES = 256 * 1024;
/** How long after the disk refused it is tried again, and how long what is only noted may wait. */
const LATER_MS = 60_000;

/**
 * The memory, and its file: each change is appended as one line and synchronised, now and then the whole is written anew in one
 * step. What the disk does not take stays in memory and is written when it does.
 */
export class Journal {
  readonly #file: string;
  readonly #log: Log;
  #memory: Memory;
  #bytes = 0;
  #mostBytes = MAX_BYTES;
  /** What is not on the disk yet, and who waits for it. */
  #pending: { patch: Patch; done: Array<() => void> } | null = null;
  #writing: Promise<void> | null = null;
  /** The whole is to be written next: nothing can be appended to what is there. */
  #isWhole = true;
  #isFailing = false;
  #later: NodeJS.Timeout | null = null;

  private constructor(file: string, log: Log, memory: Memory) {
    this.#file = file;
    this.#log = log;
    this.#memory = memory;
  }

  static async open(dataFolder: string, log: Log): Promise<Journal> {
    const file = journalFile(dataFolder);
    let memory = EMPTY_MEMORY;
    try {
      const loaded = memoryOf((await readIfThere(file)) ?? '');
      memory = loaded.memory;
      if (loaded.damaged > 0)
        log('warning', 'notifications: some of what was kept is damaged and left out', { file, lines: loaded.damaged });
    } catch (error) {
      log('error', 'notifications: what was kept cannot be read; alerts that are open are told again', {
        file,
        error: diskProblem(error, dirname(file)) ?? (error as Error).message,
      });
    }
    return new Journal(file, log, memory);
  }

  get memory(): Memory {
    return this.#memory;
  }

  /** Applies a change at once; resolves when the disk has it or has refused it. */
  save(patch: Omit<Patch, 'v'>): Promise<void> {
    return new Promise((resolve) => {
      this.#add(patch, [resolve]);
      this.#writing ??= this.#write();
    });
  }

  /** Applies a change that would come again after a kill: it spares flash, and is written with the next that is saved or within a minute. */
  note(patch: Omit<Patch, 'v'>): void {
    this.#add(patch, []);
    if (!this.#writing) this.#writeLater();
  }

  /** Writes what is not on the disk yet, once more. */
  async close(): Promise<void> {
    if (this.#later) clearTimeout(this.#later);
    this.#later = null;
    if (this.#pending || this.#isFailing) await this.save({});
    await this.#writing;
    if (this.#later) clearTimeout(this.#later);
  }

  #add(patch: Omit<Patch, 'v'>, done: Array<() => void>): void {
    const change: Patch = { v: 1, ...patch };
    this.#memory = patched(this.#memory, change);
    this.#pending = this.#pending
      ? { patch: merged(this.#pending.patch, change), done: [...this.#pending.done, ...done] }
      : { patch: change, done };
  }

  #writeLater(): void {
    this.#later ??= setTimeout(() => {
      this.#later = null;
      void this.save({});
    }, LATER_MS).unref();
  }

  async #write(): Promise<void> {
    await new Promise(setImmediate); // What belongs together is one line.
    while (this.#pending) {
      const { done, patch } = this.#pending;
      this.#pending = null;
      try {
        await this.#writeOnce(patch);
        if (this.#isFailing) this.#log('notice', 'notifications are kept on the disk again');
        this.#isFailing = false;
      } catch (error) {
        this.#refused(error);
      }
      for (const resolve of done) resolve();
    }
    this.#writing = null;
  }

  async #writeOnce(patch: Patch): Promise<void> {
    if (!this.#isWhole && this.#bytes < this.#mostBytes) {
      const line = `${JSON.stringify(patch)}\n`;
      try {
        ({ size: this.#bytes } = await appendLines(this.#file, line, { durable: true }));
        return;
      } catch (error) {
        this.#isWhole = true;
        throw error;
      }
    }
    const whole = `${JSON.stringify({ v: 1, ...this.#memory })}\n`;
    this.#isWhole = true;
    await makeFolder(dirname(this.#file));
    await writeAtomically(this.#file, whole, { durable: true });
    this.#isWhole = false;
    // However large the whole is, as much again is appended before the next time.
    this.#bytes = Buffer.byteLength(whole);
    this.#mostBytes = Math.max(MAX_BYTES, 2 * this.#bytes);
  }

  #refused(error: unknown): void {
    if (!this.#isFailing) {
      this.#log('error', 'notifications cannot be kept on the disk and would not survive a restart', {
        error: diskProblem(error, dirname(this.#file)) ?? (error as Error).message,
      });
    }
    this.#isFailing = true;
    this.#writeLater();
  }
}
