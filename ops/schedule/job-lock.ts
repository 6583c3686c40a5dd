import * as fs from 'node:fs';
import { join } from 'node:path';
import { isoUtc } from '../../src/core/time.ts';
import { takeLock } from '../../src/store/lock.ts';
import { opsFolder, replaceFile } from './folders.ts';
import { readState } from './state.ts';

/** A lock that is held until it is released, or its process ends. */
export interface Held {
  release(): void;
}

/** Null: somebody has it. */
export function lockNamed(dataFolder: string, name: string): Held | null {
  const lock = attempt(join(opsFolder(dataFolder), `${name}.lock`));
  return lock && { release: () => lock.close() };
}

/** SQLite does not show why a file cannot be opened: opening it does. */
function attempt(file: string): ReturnType<typeof takeLock> {
  try {
    return takeLock(file);
  } catch (error) {
    fs.closeSync(fs.openSync(file, 'a'));
    throw error;
  }
}

const noteOf = (dataFolder: string, name: string): string => join(dataFolder, 'ops', `${name}.by-hand`);

/** The lock of a run by hand, which says who has it; null: the job runs already. */
export function lockByHand(dataFolder: string, name: string, nowMs: number): Held | null {
  const lock = lockNamed(dataFolder, name);
  if (!lock) return null;
  const note = noteOf(dataFolder, name);
  try {
    replaceFile(note, `process ${process.pid}, since ${isoUtc(nowMs)}`);
  } catch {
    // A full disk: the lock holds without it.
  }
  return {
    release: () => {
      fs.rmSync(note, { force: true });
      lock.release();
    },
  };
}

/** Who has the lock of a job, as far as anybody said. */
export function holderOf(dataFolder: string, name: string): string {
  const since = readState(dataFolder).document.jobs.find((job) => job.name === name)?.running_since;
  if (since) return `by the scheduler, since ${since}`;
  try {
    return `by hand, ${fs.readFileSync(noteOf(dataFolder, name), 'utf8')}`;
  } catch {
    return 'by another process';
  }
}
