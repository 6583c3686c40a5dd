import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, readSync, rm, rmdir } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { writeAtomically } from '../core/files/atomic-file.ts';
import { installation } from '../core/files/installation.ts';
import { isPrivate, privateFolderInMemory, runtimeFolder, shortName } from '../core/files/runtime-folder.ts';

/** File of a running service, by which local commands find it even after its configuration was edited. */
export interface RunningService {
  readonly pid: number;
  /** Start time, which distinguishes the process from a later one with the same id. */
  readonly started: number;
  /** Absolute path of the configuration file. */
  readonly config: string;
  /** Base URL of the REST API for local programs. */
  readonly url: string;
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

const SERVICE_FILE = 'service.json';
const RELOAD_FILE = 'reload.json';
const READABLE_BY_ALL = 0o644;
const MAX_BYTES = 1024 * 1024;
const UNIT_FOLDER = /^edge-health/;

/** Folder of a service without systemd, for commands of the same user. It is named after the path of the configuration file. */
const IN_MEMORY = `/dev/shm/edge-health-${process.getuid?.() ?? 0}-service-`;
const folderInMemory = (configFile: string): string => IN_MEMORY + shortName(resolve(configFile));

/** systemd's runtime folder, otherwise one that no other user can write to. It may be missing. */
export function runningFolder(configFile: string, environment: NodeJS.ProcessEnv): string {
  return runtimeFolder(environment) ?? folderInMemory(configFile);
}

export async function announceService(folder: string, service: Pick<RunningService, 'config' | 'url'>): Promise<void> {
  if (folder === folderInMemory(service.config) && privateFolderInMemory(folder) === null)
    throw new Error(`${folder} cannot be created, or another user owns it`);
  const document: RunningService = { pid: process.pid, started: startTime(process.pid) ?? 0, ...service };
  await writeAtomically(join(folder, SERVICE_FILE), `${JSON.stringify(document)}\n`, { mode: READABLE_BY_ALL });
}

export async function writeReloadOutcome(folder: string, outcome: Omit<ReloadOutcome, 'pid'>): Promise<void> {
  await writeAtomically(join(folder, RELOAD_FILE), `${JSON.stringify({ pid: process.pid, ...outcome } satisfies ReloadOutcome)}\n`);
}

/** Never rejects. */
export async function withdrawService(folder: string): Promise<void> {
  for (const name of [SERVICE_FILE, RELOAD_FILE]) await promisify(rm)(join(folder, name), { force: true }).catch(() => undefined);
  if (folder.startsWith(IN_MEMORY)) await promisify(rmdir)(folder).catch(() => undefined);
}

/** The service that runs with a configuration file, and its runtime folder; null: none. `run`: parent of the units' runtime folders. */
export function findService(
  configFile: string,
  environment: NodeJS.ProcessEnv,
  run = '/run',
): (RunningService & { readonly folder: string }) | null {
  const own = runtimeFolder(environment);
  const inMemory = folderInMemory(configFile);
  const folders = [...(own ? [own] : []), ...unitFolders(run), ...(isPrivate(inMemory) ? [inMemory] : [])];
  for (const folder of folders) {
    const { value: service, uid } = read<RunningService>(join(folder, SERVICE_FILE)) ?? {};
    if (service?.config === resolve(configFile) && /^https?:\/\//.test(service.url) && isProcessOf(service, uid))
      return { ...service, folder };
  }
  return null;
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
