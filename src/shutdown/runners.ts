import { access, constants, readdir, realpath, type Stats, stat } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Log } from '../core/ports.ts';
import type { ExitKind, RunningItem, ShutdownContext, StepItem } from '../core/shutdown/shutdown.ts';
import { startProgram } from './program.ts';
import { requestFromHelper } from './stop-helper-client.ts';

const file = { access: promisify(access), readdir: promisify(readdir), realpath: promisify(realpath), stat: promisify(stat) };

/** Hidden files, and the backup files of editors and package managers. */
const IGNORED = /^\.|^#.*#$|~$|\.(bak|old|orig|rej|new|save|swp|swo|tmp|disabled|dpkg-[a-z]+|ucf-[a-z]+|rpmnew|rpmsave|rpmorig)$/i;
/** Variables for this process only. A hook that inherited them could, for example, send notifications in the name of the service. */
const OWN_VARIABLES = /^(NODE_|NOTIFY_SOCKET$|WATCHDOG_|LISTEN_|EDGE_HEALTH_)/;

export interface HookOptions {
  readonly folder: string;
  /** Whether a missing folder is an error; false: it means that there are no hooks. */
  readonly required: boolean;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
  /** User id of this process. */
  readonly uid: number;
}

/** The executables of a folder, in the order of their names. Rejects if the folder cannot be read. */
export async function hookItems(options: HookOptions): Promise<StepItem[]> {
  const { folder, log, required, uid } = options;
  let names: string[];
  try {
    names = (await file.readdir(folder)).sort();
  } catch (error) {
    if (!required && (error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new Error(`safe_shutdown.hooks_path ${folder} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  const items: StepItem[] = [];
  for (const name of names.filter((candidate) => !IGNORED.test(candidate))) {
    const verdict = await checkHook(folder, name, uid);
    if (verdict === 'run') items.push({ name, start: (context) => startHook(name, context, options) });
    else if (verdict !== 'skip') items.push({ name, start: () => ({ ended: Promise.resolve(verdict.problem), end: async () => 'ended' }) });
    else if (!/^readme/i.test(name)) log('notice', 'shutdown hook skipped: not an executable file', { folder, name });
  }
  return items;
}

/** An executable file that is unsafe or cannot be run is a failure and not skipped, because it was meant to be run. */
async function checkHook(hooksFolder: string, name: string, uid: number): Promise<'run' | 'skip' | { readonly problem: string }> {
  try {
    const target = await file.realpath(join(hooksFolder, name));
    const stats = await file.stat(target);
    if (!stats.isFile() || (stats.mode & 0o111) === 0) return 'skip';
    for (const folder of new Set([dirname(target), hooksFolder])) {
      const problem = unsafe(folder, await file.stat(folder), uid);
      if (problem !== null) return { problem };
    }
    const problem = unsafe(target, stats, uid);
    if (problem !== null) return { problem };
    await file.access(target, constants.X_OK);
    return 'run';
  } catch (error) {
    return { problem: `cannot be run: ${(error as NodeJS.ErrnoException).code}` };
  }
}

function startHook(name: string, context: ShutdownContext, { environment, folder, log }: HookOptions): RunningItem {
  return startProgram({
    file: join(folder, name),
    parameters: [],
    environment: hookEnvironment(environment, context),
    onLine: (line) => log('info', 'shutdown hook output', { hook: name, output: line }),
  });
}

/** Why a file, or a file in this folder, must not be run: another user may have written it. Null: it is safe. */
export function unsafe(path: string, { mode, uid: owner }: Pick<Stats, 'mode' | 'uid'>, uid: number): string | null {
  if (owner !== 0 && owner !== uid) return `not run: ${path} belongs to user ${owner}; it must belong to root or to this service's user`;
  // For root, group and others must not have write access. In a checkout, users share files with their group.
  const others = uid === 0 ? 0o022 : 0o002;
  return (mode & others) === 0 ? null : `not run: others may write ${path}; chmod ${uid === 0 ? 'go-w' : 'o-w'} it`;
}

/** The environment of a hook: that of the service without its private variables, and the variables that describe the shutdown. */
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

export interface UnitOptions {
  readonly units: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
  /** Socket of the helper that runs as root. If it is null or absent, systemctl is run as this user. */
  readonly helperSocket: string | null;
}

/** Stops systemd units in the given order. `systemctl stop` waits until the unit has stopped. */
export function unitItems({ environment, helperSocket, log, units }: UnitOptions): StepItem[] {
  return units.map((name) => {
    const direct = (): RunningItem => stopUnit(name, environment, log);
    return { name, start: () => (helperSocket === null ? direct() : throughHelper(helperSocket, name, direct)) };
  });
}

/** Runs `systemctl stop` as this process's user. */
export function stopUnit(unit: string, environment: NodeJS.ProcessEnv, log: Log): RunningItem {
  return startProgram({
    file: 'systemctl',
    parameters: ['--no-ask-password', 'stop', '--', unit],
    environment,
    onLine: (line) => log('info', 'systemctl stop output', { unit, output: line }),
  });
}

function throughHelper(socketPath: string, unit: string, direct: () => RunningItem): RunningItem {
  const request = requestFromHelper(socketPath, `stop ${unit}`);
  let hasEnded = false;
  let isCancelled = false;
  let own: RunningItem | null = null;
  const ended = (async (): Promise<string | null> => {
    const answer = await request.answer;
    if (answer === 'absent' && !isCancelled) own = direct();
    const problem = own ? withHint(await own.ended, socketPath) : typeof answer === 'object' && answer !== null ? answer.problem : null;
    hasEnded = true;
    return problem;
  })();
  const end = async (graceSeconds: number): Promise<ExitKind> => {
    if (own) return own.end(graceSeconds);
    if (hasEnded) return 'ended';
    isCancelled = true;
    request.close();
    return 'terminated';
  };
  return { ended, end };
}

/** Adds a hint to the error of a direct attempt, which most likely failed for lack of the helper. */
function withHint(problem: string | null, socketPath: string): string | null {
  return problem === null ? null : `${problem}; the helper socket ${socketPath} is missing (edge-health-stop.socket)`;
}
