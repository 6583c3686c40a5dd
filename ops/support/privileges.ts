import { readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { nearestExisting } from '../../src/system/data-folder.ts';

/** The types of Node lack it. */
type WithInitgroups = NodeJS.Process & { initgroups(user: number, extraGroup: number): void };

/** As the unit has it (SupplementaryGroups=): a backup made by hand has the journal's share, too. */
const JOURNAL_GROUP = 'systemd-journal';

/**
 * Root becomes the user whose folder it is, for good: what is made in there stays theirs, and programs that are started find that user's
 * home. Of a folder that is missing the nearest one above it counts. Nothing happens to other users, nor where the folder is root's, nor
 * in a user namespace that has no such user: its root is an ordinary user outside, and may not write there anyway.
 */
export function becomeOwnerOf(folder: string, environment: NodeJS.ProcessEnv): void {
  if (process.getuid?.() !== 0) return;
  const owner = statSync(nearestExisting(folder));
  if (owner.uid === 0 || !isMapped(owner.uid, readFileSync('/proc/self/uid_map', 'utf8'))) return;
  try {
    (process as WithInitgroups).initgroups(owner.uid, owner.gid);
  } catch {
    process.setgroups?.([owner.gid]); // A user without a name.
  }
  try {
    process.setgroups?.([...(process.getgroups?.() ?? []), JOURNAL_GROUP]);
  } catch {
    // No such group here: no journal either.
  }
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
  const { HOME, LOGNAME, USER } = identity();
  Object.assign(environment, { HOME, LOGNAME, USER });
}

/** Whether a user namespace has a user; `map` as in /proc/PID/uid_map (user_namespaces(7)): first inside, first outside, count. */
export function isMapped(uid: number, map: string): boolean {
  return map.split('\n').some((line) => {
    const [first = Number.NaN, , count = 0] = line.trim().split(/\s+/).map(Number);
    return uid >= first && uid < first + count;
  });
}

function identity(): { readonly HOME: string; readonly LOGNAME: string; readonly USER: string } {
  try {
    const { homedir, username } = userInfo();
    return { HOME: homedir, LOGNAME: username, USER: username };
  } catch {
    const name = String(process.getuid?.());
    return { HOME: '/', LOGNAME: name, USER: name };
  }
}
