import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readText, shareReads } from '../core/platform/shared-read.ts';

/** A user of this machine. */
export interface LocalUser {
  readonly uid: number;
  /** Null: the user has no name. */
  readonly name: string | null;
  readonly groups: readonly string[];
}

/** Timeout of `id`, which queries the directory of users. */
const ANSWER_MS = 400;
const MAX_CONCURRENT = 4;
/** Minimum time between two reads of the files. */
const PAUSE_MS = 20;

/** The name of a user in a password file; null: the file has no such user. */
export function userName(uid: number, passwordFile = '/etc/passwd'): string | null {
  try {
    return entriesOf(readFileSync(passwordFile, 'utf8')).find((entry) => entry[2] === String(uid))?.[0] ?? null;
  } catch {
    return null;
  }
}

/** Users of this machine with their groups, from /etc or, for users of a directory (LDAP, SSSD), from `id`. */
export class Users {
  /** The entries of /etc/passwd and /etc/group. */
  readonly #files: () => Promise<readonly [passwd: string[][], group: string[][]]>;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #answerMs: number;
  #queries = 0;

  constructor(environment: NodeJS.ProcessEnv, etc = '/etc', answerMs = ANSWER_MS) {
    this.#environment = environment;
    this.#answerMs = answerMs;
    const entries = async (name: string): Promise<string[][]> => entriesOf(await readText(`${etc}/${name}`, 'utf8'));
    this.#files = shareReads(() => Promise.all([entries('passwd'), entries('group')]), PAUSE_MS);
  }

  /** An unknown user has no name (null) and no groups. */
  async user(uid: number): Promise<LocalUser> {
    const [passwd, group] = await this.#files();
    const entry = passwd.find(([, , number]) => number === String(uid));
    if (!entry) return this.#query(uid);
    const [name = '', , , primary] = entry;
    const groups = group.filter(([, , gid, members = '']) => gid === primary || members.split(',').includes(name));
    return { uid, name, groups: groups.map(([groupName = '']) => groupName) };
  }

  /** Runs `id`. At most MAX_CONCURRENT processes run at once; further users are unknown. */
  async #query(uid: number): Promise<LocalUser> {
    const unknown = { uid, name: null, groups: [] };
    if (this.#queries >= MAX_CONCURRENT) return unknown;
    this.#queries += 1;
    const options = { env: { ...this.#environment, LC_ALL: 'C' }, cwd: '/', timeout: this.#answerMs, killSignal: 'SIGKILL' } as const;
    const answer = await new Promise<string>((resolve) => {
      execFile('id', [String(uid)], options, (error, stdout) => resolve(error ? '' : stdout));
    }).catch(() => ''); // The process could not be started.
    this.#queries -= 1;
    // uid=1000(robot) gid=1000(robot) groups=1000(robot),27(sudo)
    const [, name = null, rest = ''] = /^uid=\d+\(([^)]*)\).* groups=(.*)$/m.exec(answer) ?? [];
    return { uid, name, groups: [...rest.matchAll(/\d+\(([^)]*)\)/g)].map(([, group = '']) => group) };
  }
}

/** The fields of each line of a file such as /etc/passwd. */
function entriesOf(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'));
}
