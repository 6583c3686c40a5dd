import { readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { nearestExisting } from '../files/data-folder.ts';

/** initgroups() is missing in the types of Node. */
type WithInitgroups = NodeJS.Process & { initgroups(user: number, extraGroup: number): void };

/** Group of the unit (SupplementaryGroups=), so that a backup started by hand can include the journal. */
const JOURNAL_GROUP = 'systemd-journal';
/** Variables that could make programs of the new user load code or use folders meant for root. */
const REMOVED = /^(?:NODE_OPTIONS|NODE_PATH|LD_PRELOAD|LD_AUDIT|XDG_.*|DBUS_SESSION_.*|HOME|LOGNAME|USER)$/;

/** Permits to listen on a port below 1024 (capabilities(7)). */
export const LOW_PORT_CAPABILITY = 'CAP_NET_BIND_SERVICE';

/** How the service gets the permission to listen on a port below 1024. */
export const LOW_PORT_REMEDY = `run sudo systemctl edit edge-health, and add AmbientCapabilities=${LOW_PORT_CAPABILITY}, CapabilityBoundingSet=${LOW_PORT_CAPABILITY} and PrivateUsers=no under [Service]`;

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The owner of a folder, or of its nearest existing parent. Root must switch to this user before it opens a file there. Null: this process
 * is not root, the owner is root, or this user namespace lacks the owner; in the last case its root has no write access to the folder.
 */
export function ownerOf(folder: string): Owner | null {
  if (process.getuid?.() !== 0) return null;
  const { gid, uid } = statSync(nearestExisting(folder));
  return uid === 0 || !isMapped(uid, uidMap()) ? null : { gid, uid };
}

const EVERY_USER = '0 0 4294967295';

/** The text of uid_map of this process (user_namespaces(7)). A kernel without user namespaces has no such file, and every user. */
export function uidMap(proc = '/proc'): string {
  try {
    return readFileSync(`${proc}/self/uid_map`, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return EVERY_USER;
    throw error;
  }
}

/** Whether the kernel shows this process every user; others appear as OVERFLOW_UID, as in a unit with PrivateUsers=yes. */
export function seesEveryUser(proc = '/proc'): boolean {
  return uidMap(proc).trim().split(/\s+/).join(' ') === EVERY_USER;
}

/** Id of users that have none in this user namespace, and of nobody (/proc/sys/kernel/overflowuid). */
export const OVERFLOW_UID = 65_534;

/** Whether a user namespace has a user. `map`: text of /proc/PID/uid_map (user_namespaces(7)): first inside, first outside, count. */
export function isMapped(uid: number, map: string): boolean {
  return map.split('\n').some((line) => {
    const [first = Number.NaN, , count = 0] = line.trim().split(/\s+/).map(Number);
    return uid >= first && uid < first + count;
  });
}

/** An environment for programs of another user. */
export function withoutOwn(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passed = Object.entries(environment).filter(([name]) => !REMOVED.test(name));
  // SUDO_USER remains set, since it names the user who called sudo.
  return { SUDO_USER: 'root', ...Object.fromEntries(passed) };
}

/**
 * Permanently switches from root to the owner of a folder. A link or program that this user placed there then gains no rights, and files
 * created there belong to the user. Has no effect for other users than root, or if the folder belongs to root.
 */
export function becomeOwnerOf(folder: string, environment: NodeJS.ProcessEnv): void {
  const owner = ownerOf(folder);
  if (owner === null) return;
  try {
    (process as WithInitgroups).initgroups(owner.uid, owner.gid);
  } catch {
    process.setgroups?.([owner.gid]); // The user has no name.
  }
  try {
    process.setgroups?.([...(process.getgroups?.() ?? []), JOURNAL_GROUP]);
  } catch {
    // Without this group there is no journal.
  }
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
  const passed = withoutOwn(environment);
  for (const name of Object.keys(environment)) if (!(name in passed)) delete environment[name];
  Object.assign(environment, passed, identity());
}

/** Environment variables that describe the user of this process. */
export function identity(): { readonly HOME: string; readonly LOGNAME: string; readonly USER: string } {
  try {
    const { homedir, username } = userInfo();
    return { HOME: homedir, LOGNAME: username, USER: username };
  } catch {
    const name = String(process.getuid?.());
    return { HOME: '/', LOGNAME: name, USER: name };
  }
}
