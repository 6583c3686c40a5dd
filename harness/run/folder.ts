import * as fs from 'node:fs';
import { join } from 'node:path';
import { takeLock } from '../../src/store/lock.ts';
import { makeFolder } from '../../src/system/data-folder.ts';
import { startTime } from '../../src/system/running-service.ts';
import { EXIT, Refusal } from './refusal.ts';

const LOCK_FILE = 'watch.lock';
const WATCHER_FILE = 'watch.pid';

/** Holds the folder of a run from before its record begins until the report is written; the lock ends with its process however that ends. */
export interface HeldFolder {
  release(): void;
}

/** Throws Refusal when somebody else watches into it, or nothing can be written there. */
export function holdFolder(folder: string): HeldFolder {
  try {
    makeFolder(folder);
    // SQLite, whose lock it is, does not tell why a file cannot be opened.
    fs.closeSync(fs.openSync(join(folder, LOCK_FILE), 'a'));
    const lock = takeLock(join(folder, LOCK_FILE));
    if (lock) {
      fs.writeFileSync(join(folder, WATCHER_FILE), `${process.pid} ${startTime(process.pid)}\n`);
      return {
        release: () => {
          for (const name of [WATCHER_FILE, LOCK_FILE]) fs.rmSync(join(folder, name), { force: true });
          lock.close();
        },
      };
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice =
      code === 'EACCES' || code === 'EPERM' ? 'run it as who owns the folder, or choose another with --out' : 'choose another with --out';
    throw new Refusal(EXIT.unavailable, `${folder} cannot be written to: ${message}; ${advice}`);
  }
  const pid = watcherOf(folder);
  throw new Refusal(
    EXIT.inUse,
    `${folder}: another edge-health harness${pid === null ? '' : ` (process ${pid})`} watches into it; see how it gets on with: edge-health harness status ${folder}`,
  );
}

/** Process id of whoever watches into the folder; null: nobody. */
export function watcherOf(folder: string): number | null {
  try {
    const [pid, started] = fs.readFileSync(join(folder, WATCHER_FILE), 'utf8').trim().split(' ').map(Number);
    return pid && startTime(pid) === started ? pid : null;
  } catch {
    return null;
  }
}
