import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync, readSync, rm, rmdir } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { shortName } from '../core/short-name.ts';
import { writeAtomically } from './atomic-file.ts';

/** What a running service leaves for the commands of this machine: they find it even after its configuration file was edited. */
export interface RunningService {
  readonly pid: number;
  /** Distinguishes the process from a later one of the same number. */
  readonly started: number;
  /** Absolute path of the configuration file. */
  readonly config: string;
  /** Where REST listens, for a program of this machine. */
  readonly url: string;
}

/** What came of the last reload. */
export interface ReloadOutcome {
  readonly pid: number;
  /** How many reloads there were since the start. */
  readonly reloads: number;
  /** Why the file was refused; null: it was taken. */
  readonly problem: string | null;
  readonly restart_needed: readonly string[];
}

const SERVICE_FILE = 'service.json';
const RELOAD_FILE = 'reload.json';
const READABLE_BY_ALL = 0o644;
const MAX_BYTES = 1024 * 1024;
const UNIT_FOLDER = /^edge-health/;

/** Of a service without systemd, for commands of the same user. Named after the configuration file: all else in it may have changed. */
const IN_MEMORY = `/dev/shm/edge-health-${process.getuid?.() ?? 0}-service-`;
const folderInMemory = (configFile: string): string => IN_MEMORY + shortName(resolve(configFile));

/** systemd's folder in memory, else one that no other user can write. It may be missing. */
export function runningFolder(configFile: string, environment: NodeJS.ProcessEnv): string {
  return environment['RUNTIME_DIRECTORY']?.split(':')[0] || folderInMemory(configFile);
}

export async function announceService(folder: string, service: Pick<RunningService, 'config' | 'url'>): Promise<void> {
  if (folder === folderInMemory(service.config)) {
    mkdirSync(folder, { mode: 0o700, recursive: true });
    if (!isOwn(folder)) throw new Error(`${folder} belongs to another user`);
  }
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

/** The service that runs with a configuration file, and the folder of its files; null: none is found. `run`: where the units have theirs. */
export function findService(
  configFile: string,
  environment: NodeJS.ProcessEnv,
  run = '/run',
): (RunningService & { readonly folder: string }) | null {
  const own = environment['RUNTIME_DIRECTORY']?.split(':')[0];
  const inMemory = folderInMemory(configFile);
  const folders = [...(own ? [own] : []), ...unitFolders(run), ...(isOwn(inMemory) ? [inMemory] : [])];
  for (const folder of folders) {
    const { value: service, uid } = read<RunningService>(join(folder, SERVICE_FILE)) ?? {};
    if (service?.config === resolve(configFile) && /^https?:\/\//.test(service.url) && isProcessOf(service, uid))
      return { ...service, folder };
  }
  return null;
}

/** Of the service with that process id; null: it has not been reloaded. */
export function readReloadOutcome(folder: string, pid: number): ReloadOutcome | null {
  const outcome = read<ReloadOutcome>(join(folder, RELOAD_FILE))?.value;
  return outcome?.pid === pid ? outcome : null;
}

export const isRunning = ({ pid, started }: RunningService): boolean => startTime(pid) === started;

/** When a process was started (proc(5), field 22): distinguishes it from a later one of the same number. Null: there is none, or it has ended. */
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

/** Anybody can make folders in /dev/shm. */
function isOwn(folder: string): boolean {
  try {
    const stats = lstatSync(folder);
    return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0;
  } catch {
    return false;
  }
}

/** Root signals the process: the file must be of that process's user, who could signal it as well. `uid`: of the file. */
function isProcessOf(service: RunningService, uid: number | undefined): boolean {
  try {
    const effective = /^Uid:\s+\d+\s+(\d+)/m.exec(readFileSync(`/proc/${Number(service.pid)}/status`, 'utf8'))?.[1];
    return isRunning(service) && Number(effective) === uid;
  } catch {
    return false;
  }
}

/** The folder is the service's, the reader may be another user: a link, a pipe or a file without end in its place is none. */
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
