import { access, constants, readdir, realpath, type Stats, stat } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Log } from '../core/ports.ts';
import type { ShutdownContext, StepItem, StepRunner } from '../core/shutdown-ports.ts';
import { startProgram } from './program.ts';

const ask = { access: promisify(access), readdir: promisify(readdir), realpath: promisify(realpath), stat: promisify(stat) };

/** Hidden files, and what editors and package managers leave beside the real ones. */
const LEFT_OUT = /^\.|^#.*#$|~$|\.(bak|old|orig|rej|new|save|swp|swo|tmp|disabled|dpkg-[a-z]+|ucf-[a-z]+|rpmnew|rpmsave|rpmorig)$/i;
/** Belong to this service alone: a program could take itself for it. */
const OWN_VARIABLES = /^(NODE_|NOTIFY_SOCKET$|WATCHDOG_|LISTEN_|EDGE_HEALTH_)/;

export interface HookFolderOptions {
  readonly folder: string;
  /** Whether a folder that is not there is an error; else there are no hooks then. */
  readonly required: boolean;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
  /** Of this process. */
  readonly uid: number;
}

/** The executables of a folder, in the order of their names. */
export class HookFolder implements StepRunner {
  readonly #options: HookFolderOptions;

  constructor(options: HookFolderOptions) {
    this.#options = options;
  }

  /** Rejects when the folder cannot be read. */
  async list(): Promise<StepItem[]> {
    const { folder, log, required } = this.#options;
    let names: string[];
    try {
      names = (await ask.readdir(folder)).sort();
    } catch (error) {
      if (!required && (error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw new Error(`safe_shutdown.hooks_path ${folder} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
    }
    const items: StepItem[] = [];
    for (const name of names.filter((candidate) => !LEFT_OUT.test(candidate))) {
      const verdict = await this.#judge(join(folder, name));
      if (verdict === 'run') items.push({ name, start: (context) => this.#start(name, context) });
      else if (verdict !== 'pass over')
        items.push({ name, start: () => ({ ended: Promise.resolve(verdict.problem), end: async () => 'ended' }) });
      else if (!/^readme/i.test(name)) log('notice', 'shutdown hook skipped: not an executable file', { folder, name });
    }
    return items;
  }

  /** One that somebody made executable, but that must not or cannot be run, is a failure and not passed over: it was meant to be run. */
  async #judge(path: string): Promise<'run' | 'pass over' | { readonly problem: string }> {
    try {
      const file = await ask.realpath(path);
      const stats = await ask.stat(file);
      if (!stats.isFile() || (stats.mode & 0o111) === 0) return 'pass over';
      for (const folder of new Set([dirname(file), this.#options.folder])) {
        const problem = unsafe(folder, await ask.stat(folder), this.#options.uid);
        if (problem !== null) return { problem };
      }
      const problem = unsafe(file, stats, this.#options.uid);
      if (problem !== null) return { problem };
      await ask.access(file, constants.X_OK);
      return 'run';
    } catch (error) {
      return { problem: `cannot be run: ${(error as NodeJS.ErrnoException).code}` };
    }
  }

  #start(name: string, context: ShutdownContext): ReturnType<StepItem['start']> {
    const { environment, folder, log } = this.#options;
    return startProgram({
      file: join(folder, name),
      parameters: [],
      environment: hookEnvironment(environment, context),
      onLine: (line) => log('info', 'shutdown hook', { hook: name, says: line }),
    });
  }
}

/** Why what is at a path must not be run, or run from: somebody else may have written it. Null: it may. */
export function unsafe(path: string, { mode, uid: owner }: Pick<Stats, 'mode' | 'uid'>, uid: number): string | null {
  if (owner !== 0 && owner !== uid) return `not run: ${path} belongs to user ${owner}; it must belong to root or to this service's user`;
  // What root runs nobody but root may write. In a checkout people share files with their group.
  const others = uid === 0 ? 0o022 : 0o002;
  return (mode & others) === 0 ? null : `not run: others may write ${path}; chmod ${uid === 0 ? 'go-w' : 'o-w'} it`;
}

/** What a hook sees: the service's own environment but for what is the service's alone, and what is to be known of the shutdown. */
export function hookEnvironment(environment: NodeJS.ProcessEnv, context: ShutdownContext): NodeJS.ProcessEnv {
  const inherited = Object.entries(environment).filter(([name]) => !OWN_VARIABLES.test(name));
  return {
    ...Object.fromEntries(inherited),
    EDGE_HEALTH_SHUTDOWN_REASON: context.reason,
    EDGE_HEALTH_SHUTDOWN_REQUESTED_BY: context.requestedBy,
    EDGE_HEALTH_SHUTDOWN_SECONDS_LEFT: String(Math.floor(context.secondsLeft())),
    EDGE_HEALTH_SHUTDOWN_ACTION: context.action,
    EDGE_HEALTH_SHUTDOWN_REQUEST_ID: context.requestId,
  };
}
