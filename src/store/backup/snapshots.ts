import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { StorageState } from '../../core/ports.ts';
import { type Snapshot, SnapshotRefused } from '../../core/snapshot.ts';
import type { StoreThread } from '../thread/store-thread.ts';
import { copyPath, NOT_ENOUGH_SPACE } from './copy.ts';

/** Interval of the check for a hanging disk during flush(). */
const HANG_CHECK_MS = 250;

/** Creates copies of the database, one at a time. The store's thread fills a file and unlinks it; callers get an open descriptor. */
export class Snapshots {
  readonly #thread: StoreThread;
  #number = 0;
  #isBusy = false;

  constructor(thread: StoreThread) {
    this.#thread = thread;
  }

  /** Copies the database including everything recorded so far. Rejects with SnapshotRefused, or when `signal` is aborted. */
  async take(signal: AbortSignal): Promise<Snapshot> {
    const { error, path, state } = this.#thread.state();
    if (state !== 'ok') throw new SnapshotRefused('unavailable', error ?? 'the store is being opened');
    if (this.#isBusy) throw new SnapshotRefused('busy', 'another snapshot is being made or read; try again when it is done');
    this.#isBusy = true;
    const takenMs = Date.now();
    let descriptor: number | null = null;
    const close = (): void => {
      this.#isBusy = false;
      if (descriptor !== null) fs.close(descriptor, () => undefined);
    };
    const file = copyPath(dirname(path), ++this.#number);
    const cancel = (): void => void this.#thread.request('cancelSnapshot', null).catch(() => undefined);
    try {
      const problem = await this.#rejectIfDegraded(this.#thread.flush());
      if (problem !== null) throw new SnapshotRefused('unavailable', problem);
      signal.throwIfAborted();
      descriptor = await promisify(fs.open)(file, 'wx+', 0o600);
      signal.throwIfAborted(); // A listener is not called for a signal that was aborted before it was added.
      signal.addEventListener('abort', cancel, { once: true });
      await this.#thread.request('snapshot', { path: file });
      const { size } = await promisify(fs.fstat)(descriptor);
      signal.throwIfAborted();
      return { descriptor, sizeBytes: size, takenMs, close };
    } catch (failure) {
      cancel(); // A thread that recovers from a hang would otherwise continue the copy.
      if (descriptor !== null) fs.unlink(file, () => undefined); // A running thread unlinks the file itself; a terminated one cannot.
      close();
      throw refusal(failure as Error, signal);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  /** Rejects when the store becomes degraded while `work` is in progress; flush() itself waits for the disk without a limit. */
  async #rejectIfDegraded<T>(work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const hanging = new Promise<never>((_, reject) => {
      timer = setInterval(() => {
        const { error, state }: StorageState = this.#thread.state();
        if (state === 'degraded') reject(new SnapshotRefused('unavailable', error ?? 'not writable'));
      }, HANG_CHECK_MS);
    });
    try {
      return await Promise.race([work, hanging]);
    } finally {
      clearInterval(timer);
    }
  }
}

function refusal(failure: Error, signal: AbortSignal): Error {
  if (signal.aborted || failure instanceof SnapshotRefused) return failure;
  const { code } = failure as NodeJS.ErrnoException;
  const isFull = failure.name === NOT_ENOUGH_SPACE || code === 'ENOSPC' || code === 'EDQUOT';
  return new SnapshotRefused(isFull ? 'no_space' : 'unavailable', failure.message);
}
