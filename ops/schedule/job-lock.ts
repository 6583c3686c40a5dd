import * as fs from 'node:fs';
import { join } from 'node:path';
import { prepareDataFolder } from '../../src/core/files/data-folder.ts';
import { takeLock } from '../../src/core/files/lock.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { diskProblem, isPermission } from '../lib/files.ts';
import type { JobContext } from '../lib/job.ts';
import { opsFolder, readState, replaceFile } from './state.ts';

/** A lock that is held until it is released or its process exits. */
export interface Held {
  release(): void;
}

/**
 * Returns null if the lock is already held. health_check runs without a lock if the disk cannot be written, because it reports that.
 */
export function lockNamed(dataFolder: string, name: string): Held | null {
  try {
    const lock = takeLockFile(join(opsFolder(dataFolder), `${name}.lock`));
    return lock && { release: () => lock.close() };
  } catch (error) {
    if (name !== 'health_check' || isPermission(error)) throw error;
    return { release: () => undefined };
  }
}

function takeLockFile(file: string): ReturnType<typeof takeLock> {
  try {
    return takeLock(file);
  } catch (error) {
    // SQLite does not report why a file cannot be opened, so it is opened here to get the error.
    fs.closeSync(fs.openSync(file, 'a'));
    throw error;
  }
}

/**
 * Takes the lock that admits one scheduler per data folder, or returns the status to exit with: UNKNOWN if a retry would change nothing.
 */
export function lockScheduler({ dataFolder, environment }: JobContext, log: JobContext['log']): Held | 'CRITICAL' | 'UNKNOWN' {
  const problem = prepareDataFolder(dataFolder, environment);
  if (problem !== null) {
    const byHand = environment['INVOCATION_ID'] === undefined ? '; or run: sudo edge-health ops run' : ''; // systemd sets it for units.
    log('error', `storage.path: ${problem.text}${byHand}`);
    return 'UNKNOWN';
  }
  try {
    const lock = lockNamed(dataFolder, 'scheduler');
    if (lock) return lock;
    log('error', `another scheduler uses the data folder ${dataFolder}; stop that one, or set another storage.path`);
    return 'UNKNOWN';
  } catch (error) {
    log('error', diskProblem(error, dataFolder) ?? (error as Error).message);
    return 'CRITICAL';
  }
}

const noteOf = (dataFolder: string, name: string): string => join(dataFolder, 'ops', `${name}.by-hand`);

/** Takes the lock for a manual run and records the process that holds it; returns null if the job is already running. */
export function lockByHand(dataFolder: string, name: string, nowMs: number): Held | null {
  const lock = lockNamed(dataFolder, name);
  if (!lock) return null;
  const note = noteOf(dataFolder, name);
  try {
    replaceFile(note, `process ${process.pid}, since ${isoUtc(nowMs)}`);
  } catch {
    // On a full disk, the lock is held without the record.
  }
  return {
    release: () => {
      try {
        fs.rmSync(note, { force: true });
      } catch {
        // On a disk that has become read-only, the record stays; it has no effect without the lock.
      }
      lock.release();
    },
  };
}

/** Describes the process that holds the lock of a job, as far as it is recorded. */
export function holderOf(dataFolder: string, name: string): string {
  const since = readState(dataFolder).document.jobs.find((job) => job.name === name)?.running_since;
  if (since) return `by the scheduler, since ${since}`;
  try {
    return `manually, ${fs.readFileSync(noteOf(dataFolder, name), 'utf8')}`;
  } catch {
    return 'by another process';
  }
}
