import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { LocalUser } from '../core/shutdown-callers.ts';
import { readText, shared } from './shared-read.ts';

/** How long `id` may take to ask the directory that users come from. */
const ANSWER_MS = 400;
const MOST_AT_ONCE = 4;
/** The files are read so often at most, however many ask. */
const PAUSE_MS = 20;

/** The name of a user in a password file; null: it has none there. */
export function userName(uid: number, passwordFile = '/etc/passwd'): string | null {
  try {
    return entriesOf(readFileSync(passwordFile, 'utf8')).find((entry) => entry[2] === String(uid))?.[0] ?? null;
  } catch {
    return null;
  }
}

/** Users of this machine with their groups: as its files have them, or as `id` says of those who come from elsewhere (LDAP, SSSD). */
export class Users {
  /** The entries of /etc/passwd and /etc/group. */
  readonly #files: () => Promise<readonly [passwd: string[][], group: string[][]]>;
  readonly #environment: NodeJS.ProcessEnv;
  #asking = 0;

  constructor(environment: NodeJS.ProcessEnv, etc = '/etc') {
    this.#environment = environment;
    const entries = async (name: string): Promise<string[][]> => entriesOf(await readText(`${etc}/${name}`, 'utf8'));
    this.#files = shared(() => Promise.all([entries('passwd'), entries('group')]), PAUSE_MS);
  }

  /** Who is known by no name has null for it, and no groups. */
  async user(uid: number): Promise<LocalUser> {
    const [passwd, group] = await this.#files();
    const entry = passwd.find(([, , number]) => number === String(uid));
    if (!entry) return this.#ask(uid);
    const [name = '', , , primary] = entry;
    const groups = group.filter(([, , gid, members = '']) => gid === primary || members.split(',').includes(name));
    return { uid, name, groups: groups.map(([groupName = '']) => groupName) };
  }

  /** A process for each, but not for everybody at once. */
  async #ask(uid: number): Promise<LocalUser> {
    const unknown = { uid, name: null, groups: [] };
    if (this.#asking >= MOST_AT_ONCE) return unknown;
    this.#asking += 1;
    const options = { env: { ...this.#environment, LC_ALL: 'C' }, cwd: '/', timeout: ANSWER_MS, killSignal: 'SIGKILL' } as const;
    const answer = await new Promise<string>((resolve) => {
      execFile('id', [String(uid)], options, (error, stdout) => resolve(error ? '' : stdout));
    }).catch(() => ''); // No process could be made.
    this.#asking -= 1;
    // uid=1000(robot) gid=1000(robot) groups=1000(robot),27(sudo)
    const [, name = null, rest = ''] = /^uid=\d+\(([^)]*)\).* groups=(.*)$/m.exec(answer) ?? [];
    return { uid, name, groups: [...rest.matchAll(/\d+\(([^)]*)\)/g)].map(([, group = '']) => group) };
  }
}

/** The lines of a file such as /etc/passwd, by field. */
function entriesOf(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'));
}
