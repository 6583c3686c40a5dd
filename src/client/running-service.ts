import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync, readSync, rm, rmdir, type Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { writeAtomically } from '../core/files/atomic-file.ts';
import { installation } from '../core/files/installation.ts';
import { isPrivate, privateFolderInMemory, runtimeFolder, shortName } from '../core/files/runtime-folder.ts';
import { ServiceUnreachable } from './rest.ts';

/** File of a running service, by which local commands find it even after its configuration was edited. */
export interface RunningService {
  readonly pid: number;
  /** Start time, which distinguishes the process from a later one with the same id. */
  readonly started: number;
  /** Absolute path of the configuration file. */
  readonly config: string;
}

/** Result of the last reload. */
export interface ReloadOutcome {
  readonly pid: number;
  /** Number of reloads since the service started. */
  readonly reloads: number;
  /** Why the file was refused; null: it was applied. */
  readonly problem: string | null;
  readonly restart_needed: readonly string[];
}

/** The Unix socket of the REST API, in the service's runtime folder. */
export const REST_SOCKET = 'rest.sock';
const SERVICE_FILE = 'service.json';
const RELOAD_FILE = 'reload.json';
const READABLE_BY_ALL = 0o644;
const MAX_BYTES = 1024 * 1024;
const UNIT_FOLDER = /^edge-health/;

const IN_MEMORY = /^\/dev\/shm\/edge-health-\d+-service-/;
const ownUid = (): number => process.getuid?.() ?? 0;

/** Folder of a service without systemd, for commands of the same user. It is named after the path of the configuration file. */
const folderInMemory = (configFile: string, uid: number): string => `/dev/shm/edge-health-${uid}-service-${shortName(resolve(configFile))}`;

/** systemd's runtime folder, otherwise a new one that only this user can open. Null: it cannot be created, or another user owns it. */
export function runningFolder(configFile: string, environment: NodeJS.ProcessEnv): string | null {
  return runtimeFolder(environment) ?? privateFolderInMemory(folderInMemory(configFile, ownUid()));
}

export async function announceService(folder: string, configFile: string): Promise<void> {
  const document: RunningService = { pid: process.pid, started: startTime(process.pid) ?? 0, config: resolve(configFile) };
  await writeAtomically(join(folder, SERVICE_FILE), `${JSON.stringify(document)}\n`, { mode: READABLE_BY_ALL });
}

export async function writeReloadOutcome(folder: string, outcome: Omit<ReloadOutcome, 'pid'>): Promise<void> {
  await writeAtomically(join(folder, RELOAD_FILE), `${JSON.stringify({ pid: process.pid, ...outcome } satisfies ReloadOutcome)}\n`);
}

/** Removes the files of this process, after its socket was closed. Never rejects. */
export async function withdrawService(folder: string): Promise<void> {
  for (const file of [join(folder, SERVICE_FILE), join(folder, RELOAD_FILE)]) {
    const isOwn = read<{ pid: number }>(file)?.value.pid === process.pid;
    if (isOwn) await promisify(rm)(file, { force: true }).catch(() => undefined);
  }
  if (IN_MEMORY.test(folder)) await promisify(rmdir)(folder).catch(() => undefined);
}

/**
 * The service that runs with a configuration file, and its runtime folder; null: none. A folder in which another user could have created
 * files is ignored. `run`: parent of the units' runtime folders.
 */
export function findService(
  configFile: string,
  environment: NodeJS.ProcessEnv,
  run = '/run',
): (RunningService & { readonly folder: string }) | null {
  const own = runtimeFolder(environment);
  const inMemory = inMemoryUsers(configFile).map((uid) => ({ uid, folder: folderInMemory(configFile, uid) }));
  const folders = [
    ...[...(own ? [own] : []), ...unitFolders(run)].filter(isProtected),
    ...inMemory.filter(({ folder, uid }) => isPrivate(folder, uid)).map(({ folder }) => folder),
  ];
  for (const folder of folders) {
    const { value: service, uid } = read<RunningService>(join(folder, SERVICE_FILE)) ?? {};
    if (service?.config === resolve(configFile) && isProcessOf(service, uid)) return { ...service, folder };
  }
  return null;
}

/**
 * Returns the base URL of the service of this machine that runs with a configuration file, for RestClient. The URL is that of its Unix
 * socket, because any user could listen on its TCP port while it is stopped. Throws ServiceUnreachable if the service is not running or
 * the socket may be another user's.
 */
export function localService(configFile: string, environment: NodeJS.ProcessEnv, run?: string): () => string {
  return () => {
    const service = findService(configFile, environment, run);
    if (service === null) throw new ServiceUnreachable(`no service found that runs with ${configFile}`);
    const path = join(service.folder, REST_SOCKET);
    const socket = statsOf(path);
    if (socket === null) throw new ServiceUnreachable(`the service has no socket ${path}; see its log for the reason`);
    if (!socket.isSocket() || socket.uid !== statsOf(service.folder)?.uid)
      throw new ServiceUnreachable(`${path} is not a socket of the service's user`);
    return `unix:${path}`;
  };
}

/** The users whose folders in memory are used: this one. Root trusts the owner of the configuration file as well. */
function inMemoryUsers(configFile: string): number[] {
  const owner = ownUid() === 0 ? statsOf(configFile)?.uid : undefined;
  return [...new Set([ownUid(), owner ?? ownUid()])];
}

/** Whether only root, this user, or the user to whom systemd gave a folder can create files there. */
function isProtected(folder: string): boolean {
  const isClosed = (path: string, users: readonly number[] | null): boolean => {
    const stats = statsOf(path);
    return stats?.isDirectory() === true && (stats.mode & 0o022) === 0 && (users?.includes(stats.uid) ?? true);
  };
  return isClosed(folder, [0, ownUid()]) || (isClosed(folder, null) && isClosed(dirname(folder), [0]));
}

/** Of the file itself, if it is a link; null: it cannot be read. */
function statsOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

/** Result of the last reload of the service with this process id; null: it was not reloaded. */
export function readReloadOutcome(folder: string, pid: number): ReloadOutcome | null {
  const outcome = read<ReloadOutcome>(join(folder, RELOAD_FILE))?.value;
  return outcome?.pid === pid ? outcome : null;
}

export const isRunning = ({ pid, started }: RunningService): boolean => startTime(pid) === started;

/** Start time of a process (proc(5), field 22), which distinguishes it from a later one with the same id. Null: no such process. */
export function startTime(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(')').at(-1)?.trim().split(' ') ?? [];
    return fields[0] === 'Z' ? null : Number(fields[19]);
  } catch {
    return null;
  }
}

function unitFolders(run: string): string[] {
  try {
    return readdirSync(run)
      .filter((name) => UNIT_FOLDER.test(name))
      .map((name) => join(run, name));
  } catch {
    return [];
  }
}

/** Root sends signals to the process, so the file (owner `uid`) must belong to the user of that process, who could signal it as well. */
function isProcessOf(service: RunningService, uid: number | undefined): boolean {
  try {
    const effective = /^Uid:\s+\d+\s+(\d+)/m.exec(readFileSync(`/proc/${Number(service.pid)}/status`, 'utf8'))?.[1];
    return isRunning(service) && Number(effective) === uid;
  } catch {
    return false;
  }
}

/** Reads a file of the service's folder. The reader may be root, so a link, a pipe or a huge file in its place must be ignored. */
function read<T>(file: string): { readonly value: T; readonly uid: number } | null {
  let fd: number | null = null;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size > MAX_BYTES) return null;
    const bytes = Buffer.alloc(stats.size);
    return { value: JSON.parse(bytes.toString('utf8', 0, readSync(fd, bytes))) as T, uid: stats.uid };
  } catch {
    return null;
  } finally {
    if (fd !== null) closeSync(fd);
  }
}

/** What to try if the service does not respond, to be appended to the error. */
export function notRunningHint(): string {
  return `; is it running? ${installation().isPackage ? 'systemctl status edge-health' : 'npm start, or --config FILE if it has its own configuration'}`;
}
