import { readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { nearestExisting } from './data-folder.ts';

/** The types of Node lack it. */
type WithInitgroups = NodeJS.Process & { initgroups(user: number, extraGroup: number): void };

/** As the unit has it (SupplementaryGroups=): a backup made by hand has the journal's share, too. */
const JOURNAL_GROUP = 'systemd-journal';
/** Variables that would have programs of the new user load what was meant for root's, or use root's folders. */
const NOT_PASSED_ON = /^(?:NODE_OPTIONS|NODE_PATH|LD_PRELOAD|LD_AUDIT|XDG_.*|DBUS_SESSION_.*|HOME|LOGNAME|USER)$/;

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The user that root is to become before it opens anything in a folder; of one that is missing the nearest above counts. Null: root stays
 * root, also where the owner is a user whom this user namespace lacks: its root is an ordinary user outside, and may not write there anyway.
 */
export function ownerOf(folder: string): Owner | null {
  if (process.getuid?.() !== 0) return null;
  const { gid, uid } = statSync(nearestExisting(folder));
  return uid === 0 || !isMapped(uid, readFileSync('/proc/self/uid_map', 'utf8')) ? null : { gid, uid };
}

/** Whether a user namespace has a user; `map` as in /proc/PID/uid_map (user_namespaces(7)): first inside, first outside, count. */
export function isMapped(uid: number, map: string): boolean {
  return map.split('\n').some((line) => {
    const [first = Number.NaN, , count = 0] = line.trim().split(/\s+/).map(Number);
    return uid >= first && uid < first + count;
  });
}

/** An environment for programs of another user. */
export function withoutOwn(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passed = Object.entries(environment).filter(([name]) => !NOT_PASSED_ON.test(name));
  // Who asked is still of interest.
  return { SUDO_USER: 'root', ...Object.fromEntries(passed) };
}

/**
 * Root becomes the user whose folder it is, for good: a link or a program that this user left in there can then do no more than the user
 * could already, and what is made in there stays the user's. Nothing happens to other users, nor where the folder is root's.
 */
export function becomeOwnerOf(folder: string, environment: NodeJS.ProcessEnv): void {
  const owner = ownerOf(folder);
  if (owner === null) return;
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
  const passed = withoutOwn(environment);
  for (const name of Object.keys(environment)) if (!(name in passed)) delete environment[name];
  Object.assign(environment, passed, identity());
}

/** The user of this process, as programs find it in their environment. */
export function identity(): { readonly HOME: string; readonly LOGNAME: string; readonly USER: string } {
  try {
    const { homedir, username } = userInfo();
    return { HOME: homedir, LOGNAME: username, USER: username };
  } catch {
    const name = String(process.getuid?.());
    return { HOME: '/', LOGNAME: name, USER: name };
  }
}
