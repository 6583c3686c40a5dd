import * as fs from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { startTime } from '../../src/client/running-service.ts';
import { makeFolder } from '../../src/core/files/data-folder.ts';
import { installation } from '../../src/core/files/installation.ts';
import { takeLock } from '../../src/core/files/lock.ts';
import { permissionRemedy } from '../../src/core/platform/permission.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { EXIT, Refusal } from './command.ts';

/** Where the commands find and create runs. */
export interface HarnessContext {
  readonly isCheckout: boolean;
  /** The package's folder: its units can write only here, whatever `storage.path` is. */
  readonly stateFolder: string;
  /** The folder for runs without --out. */
  readonly reports: string;
  /** Written by `start`. The unit runs only while this file exists. */
  readonly requestFile: string;
}

export function harnessContext(): HarnessContext {
  const { dataFolder: stateFolder, isPackage } = installation();
  return {
    isCheckout: !isPackage,
    stateFolder,
    reports: isPackage ? join(stateFolder, 'reports') : resolve('reports'),
    requestFile: join(stateFolder, 'harness/current.json'),
  };
}

/** The options of `run` that `start` passes to the unit. */
export interface RunRequest {
  readonly out: string;
  readonly duration: string;
  /** The duration in seconds, for the page that shows the progress. */
  readonly duration_seconds: number;
  readonly transport: string;
  /** The observed unit. */
  readonly unit: string;
  /** Time of the request, ISO 8601. */
  readonly requested: string;
}

/** Returns null if there is no request. Throws Refusal if the file cannot be read or is not a request. */
export function readRequest(file: string): RunRequest | null {
  return explained(file, () => {
    let content: string;
    try {
      content = fs.readFileSync(file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
    try {
      const request = JSON.parse(content) as RunRequest;
      if (typeof request.out === 'string' && typeof request.duration === 'string') return request;
    } catch {
      // Reported by the error below.
    }
    throw new Error(`${file} is not a request of \`edge-health harness start\`; remove it, and start again`);
  });
}

export function writeRequest(file: string, request: RunRequest): void {
  explained(file, () => {
    makeFolder(dirname(file), 0o750);
    // Flushed and renamed, so that the file is complete and survives reboots.
    fs.writeFileSync(`${file}.new`, `${JSON.stringify(request, null, 2)}\n`, { mode: 0o640, flush: true });
    fs.renameSync(`${file}.new`, file);
  });
}

/** Marks the request as done, so that the unit does not run at the next boot. */
export function settleRequest(file: string): void {
  if (fs.existsSync(file)) fs.renameSync(file, settledFile(file));
}

export function settledFile(requestFile: string): string {
  return join(dirname(requestFile), 'last.json');
}

/** The named folder, otherwise that of the unit's run, otherwise the newest. Throws Refusal if there is none. */
export function folderOf(named: string | undefined, { reports, requestFile }: HarnessContext): string {
  const folder = named ?? readRequest(requestFile)?.out ?? readRequest(settledFile(requestFile))?.out ?? newestRun(reports);
  if (folder !== null) return resolve(folder);
  throw new Refusal(EXIT.unavailable, `there is no run in ${reports}; start one with: edge-health harness start, or name its folder`);
}

/** Converts a system error to a Refusal; for a missing permission, the message explains how to obtain it. */
export function explained<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { code, message, path: refused = path } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM') throw new Refusal(EXIT.unavailable, message);
    throw new Refusal(
      EXIT.unavailable,
      `permission denied: ${refused}; ${permissionRemedy('run it with sudo, or as a member of its group (edge-health on an appliance)')}`,
    );
  }
}

/** The name of a new run's folder: `harness-20260304T050607Z`. */
export function folderName(nowMs: number): string {
  return `harness-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

/** Returns null if there is none. */
export function newestRun(reports: string): string | null {
  let names: string[];
  try {
    names = fs.readdirSync(reports);
  } catch {
    return null;
  }
  const newest = names
    .filter((name) => name.startsWith('harness-') && fs.existsSync(join(reports, name, RECORD_FILE)))
    .sort()
    .at(-1);
  return newest === undefined ? null : join(reports, newest);
}

const LOCK_FILE = 'observer.lock';
const PID_FILE = 'observer.pid';

/**
 * Locks a run's folder, from before its record begins until the report is written. The lock ends with its process. Throws Refusal if
 * another process is observing into the folder, or if it is not writable.
 */
export function lockFolder(folder: string): { release(): void } {
  try {
    makeFolder(folder);
    // The lock is SQLite's, which does not report why a file cannot be opened.
    fs.closeSync(fs.openSync(join(folder, LOCK_FILE), 'a'));
    const lock = takeLock(join(folder, LOCK_FILE));
    if (lock) {
      fs.writeFileSync(join(folder, PID_FILE), `${process.pid} ${startTime(process.pid)}\n`);
      return {
        release: () => {
          for (const name of [PID_FILE, LOCK_FILE]) fs.rmSync(join(folder, name), { force: true });
          lock.close();
        },
      };
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice =
      code === 'EACCES' || code === 'EPERM'
        ? 'run it as the owner of the folder, or choose another with --out'
        : 'choose another with --out';
    throw new Refusal(EXIT.unavailable, `${folder} cannot be written to: ${message}; ${advice}`);
  }
  const pid = observerOf(folder);
  throw new Refusal(
    EXIT.inUse,
    `${folder} is in use by another edge-health harness${pid === null ? '' : ` (process ${pid})`}; see its progress with: edge-health harness status ${folder}`,
  );
}

/** Id of the process that is observing into the folder, or null if there is none. */
export function observerOf(folder: string): number | null {
  return runningProcess(join(folder, PID_FILE));
}

/** The process whose id and start time are in a file, or null if there is no such file or the process has ended. */
export function runningProcess(file: string): number | null {
  try {
    const [pid, started] = fs.readFileSync(file, 'utf8').trim().split(' ').map(Number);
    return pid && startTime(pid) === started ? pid : null;
  } catch {
    return null;
  }
}
