import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCopier } from './copy-program.ts';
import { CopyProblem, type CopyTarget } from './copy-target.ts';
import { timeOfBackup } from './names.ts';

/** What rsync says of a folder that is not there yet. */
const NOT_THERE = /No such file or directory/;
/** How long no byte may come. */
const SILENCE_SECONDS = 120;
/** No questions asked: nobody is there to answer. */
const SHELL = 'ssh -o BatchMode=yes -o ConnectTimeout=20';

/** Whether a target is rsync's: rsync://host/module/path, host::module/path, or host:path as ssh has it. */
export function isRsync(target: string): boolean {
  return target.startsWith('rsync://') || /^[^/:]+::?[^:]*/.test(target);
}

/** A server that is reached with rsync, by its own protocol or through ssh. rsync writes under another name first and renames. */
export class RsyncTarget implements CopyTarget {
  readonly #folder: string;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(target: string, host: string, environment: NodeJS.ProcessEnv) {
    this.#folder = `${target.replace(/\/$/, '')}/${host}/`;
    this.#environment = { RSYNC_RSH: SHELL, ...environment };
  }

  async list(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    let text: string;
    try {
      text = await this.#rsync(['--list-only', '--no-h', '--', this.#folder], signal);
    } catch (error) {
      if (error instanceof CopyProblem && NOT_THERE.test(error.message)) return new Map();
      throw error;
    }
    const there = new Map<string, number>();
    for (const line of text.split('\n')) {
      const [, size, , , name] = line.split(/\s+/, 5);
      if (name !== undefined && timeOfBackup(name) !== null) there.set(name, Number(size?.replaceAll(',', '')));
    }
    return there;
  }

  async put(path: string, _name: string, signal: AbortSignal): Promise<void> {
    await this.#rsync(['--times', '--chmod=F0640', '--mkpath', '--', path, this.#folder], signal);
  }

  /** rsync removes what is not in the source: an empty one, while only these names take part. */
  async remove(names: readonly string[], signal: AbortSignal): Promise<void> {
    const empty = await mkdtemp(join(tmpdir(), 'edge-health-empty-'));
    try {
      const filters = [...names.map((name) => `--include=/${name}`), '--exclude=*'];
      await this.#rsync(['--recursive', '--delete', ...filters, '--', `${empty}/`, this.#folder], signal);
    } finally {
      await rm(empty, { recursive: true, force: true });
    }
  }

  #rsync(given: readonly string[], signal: AbortSignal): Promise<string> {
    return runCopier('rsync', [`--timeout=${SILENCE_SECONDS}`, ...given], this.#environment, signal);
  }
}
