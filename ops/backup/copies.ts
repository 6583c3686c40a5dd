import { access, constants, copyFile, mkdir, mkdtemp, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../src/config/schema.ts';
import { syncFolder } from '../../src/system/atomic-file.ts';
import { diskProblem } from '../lib/disk-problem.ts';
import type { JobStatus } from '../lib/job.ts';
import { parseMounts } from '../lib/mounts.ts';
import { NOT_INSTALLED, shell } from '../lib/run-program.ts';
import { freeBytes, megabytes } from './disk-space.ts';
import { isPartial, newestFirst, surplus, timeOfBackup } from './names.ts';

export interface CopyOutcome {
  readonly target: string;
  readonly status: JobStatus;
  /** Names in the order in which they were copied, newest first. */
  readonly copied: readonly string[];
  readonly pruned: readonly string[];
  readonly problem: string | null;
}

export interface CopyOptions {
  readonly config: Config;
  readonly environment: NodeJS.ProcessEnv;
  /** The folder of the backups. */
  readonly folder: string;
  /** The backups that were verified and kept. */
  readonly names: readonly string[];
  /** The one that counts as newest. */
  readonly newest: string;
  /** How many a target keeps. */
  readonly keep: number;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

/** A folder named after this machine, outside of its data folder. Its functions throw errors with a remedy. */
interface CopyTarget {
  /** Sizes of the copies there, by name. */
  list(): Promise<ReadonlyMap<string, number>>;
  /** Copies a file, which gets its name once it is complete. */
  put(path: string, name: string): Promise<void>;
  remove(names: readonly string[]): Promise<void>;
}

/** Brings every target up to date. Targets are independent; what one could not take now it gets the next time. */
export async function copyBackups(options: CopyOptions): Promise<CopyOutcome[]> {
  const outcomes: CopyOutcome[] = [];
  for (const target of options.config.ops.backup.copy_to) outcomes.push(await copyTo(target, options));
  return outcomes;
}

async function copyTo(target: string, options: CopyOptions): Promise<CopyOutcome> {
  const { folder, keep, names, newest, progress, signal } = options;
  const copied: string[] = [];
  const pruned: string[] = [];
  try {
    const { list, put, remove } = targetOf(target, options);
    const present = await list();
    // Not those that would be removed again at once: the target may hold newer ones that this machine has lost.
    const wanted = newestFirst([...new Set([...names, ...present.keys()])], newest).slice(0, keep);
    for (const name of wanted.filter((one) => names.includes(one))) {
      const path = join(folder, name);
      if (present.get(name) === (await stat(path)).size) continue;
      progress(`copying ${name} to ${target}`);
      await put(path, name);
      copied.push(name);
    }
    const old = surplus([...new Set([...present.keys(), ...copied])], newest, keep);
    if (old.length > 0) await remove(old);
    pruned.push(...old);
    return { target, status: 'OK', copied, pruned, problem: null };
  } catch (error) {
    const problem = signal.aborted ? 'stopped before it was complete' : (error as Error).message;
    return { target, status: 'WARNING', copied, pruned, problem };
  }
}

/** This machine's name as that of a folder, since many machines may share one target, and all make their backups at midnight. */
export function hostFolder(): string {
  return hostname().replaceAll(/[^A-Za-z0-9.-]/g, '_') || 'unnamed';
}

function targetOf(target: string, options: CopyOptions): CopyTarget {
  if (target.startsWith('s3://')) return s3(target, options);
  if (target.startsWith('rsync://') || /^[^/:]+::?[^:]*/.test(target)) return rsync(target, options);
  if (target.startsWith('/')) return localFolder(target, options);
  throw new Error('it is no target: write an absolute folder, user@host:path, rsync://host/module/path or s3://bucket/prefix');
}

/** Left free on the disk of the target. */
const MARGIN_BYTES = 1e6;

/** A folder of this machine: a USB disk, a network share. */
function localFolder(target: string, { environment, signal }: CopyOptions): CopyTarget {
  const folder = join(target, hostFolder());
  const explained = async <T>(work: Promise<T>): Promise<T> => {
    return work.catch((error: Error) => {
      throw new Error(diskProblem(error, target) ?? error.message);
    });
  };

  async function list(): Promise<ReadonlyMap<string, number>> {
    const real = await realpath(target).catch(() => null);
    if (real === null || !(await stat(real)).isDirectory()) throw new Error(`there is no folder ${target}; make it, or mount its disk`);
    if (lacksItsMount(real, await readFile('/proc/self/mountinfo', 'utf8')))
      throw new Error(`no disk is mounted at ${target}; mount it, or remove it from ops.backup.copy_to`);
    await mkdir(folder, { mode: 0o750 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    const present = new Map<string, number>();
    for (const name of await readdir(folder)) {
      if (isPartial(name)) await rm(join(folder, name), { force: true });
      else if (timeOfBackup(name) !== null) present.set(name, (await stat(join(folder, name))).size);
    }
    return present;
  }

  async function put(path: string, name: string): Promise<void> {
    const partial = join(folder, `${name}.partial`);
    try {
      const needed = (await stat(path)).size + MARGIN_BYTES;
      const free = await freeBytes(folder);
      if (free < needed)
        throw new Error(`${megabytes(free)} are free in ${target}, ${megabytes(needed)} are needed; remove what is not needed there`);
      await copyFile(path, partial);
      const handle = await open(partial, 'r+');
      await handle.sync().finally(() => handle.close());
      const { exitCode, stderr } = await shell({ environment, signal })`cmp --silent -- ${path} ${partial}`;
      if (exitCode === 1) throw new Error(`${name} differs when read back from ${target}; check that disk (dmesg)`);
      if (exitCode !== 0) throw new Error(`${name} cannot be compared in ${target}: ${stderr.trim() || 'cmp failed'}`);
      await rename(partial, join(folder, name));
      await syncFolder(folder);
    } catch (error) {
      await rm(partial, { force: true }).catch(() => undefined); // The first error is the one to report.
      throw error;
    }
  }

  async function remove(names: readonly string[]): Promise<void> {
    for (const name of names) await rm(join(folder, name), { force: true });
  }

  return { list: () => explained(list()), put: (path, name) => explained(put(path, name)), remove: (names) => explained(remove(names)) };
}

/** Where removable and network disks are mounted. */
const MOUNT_FOLDERS = ['/mnt', '/media', '/run/media'];

/** Whether a path is where a disk would be mounted, and none is: copies would fill the disk below. */
export function lacksItsMount(path: string, mountinfo: string): boolean {
  const isWithin = (inner: string, folder: string): boolean => inner === folder || inner.startsWith(`${folder}/`);
  const root = MOUNT_FOLDERS.find((folder) => isWithin(path, folder));
  return root !== undefined && !parseMounts(mountinfo).some(({ point }) => isWithin(point, root) && isWithin(path, point));
}

/** Longest time without a byte. */
const STALLED_SECONDS = 120;
/** For a program that is stopped to remove what it has written in part. */
const GRACE_SECONDS = 3;
/** Without questions, which a job cannot answer. */
const SSH = 'ssh -o BatchMode=yes -o ConnectTimeout=20';
const NO_FOLDER_ON_SERVER = /No such file or directory/;

/** rsync://host/module/path, host::module/path, or host:path by ssh. rsync writes under another name first and renames. */
function rsync(target: string, { environment, signal }: CopyOptions): CopyTarget {
  const folder = `${target.replace(/\/$/, '')}/${hostFolder()}/`;
  const timeout = `--timeout=${STALLED_SECONDS}`;
  const $ = shell({ environment: { RSYNC_RSH: SSH, ...environment }, signal, graceSeconds: GRACE_SECONDS });
  return {
    list: async () => {
      const text = await output('rsync', $`rsync ${timeout} --list-only --no-h -- ${folder}`).catch(emptyIf(NO_FOLDER_ON_SERVER, ''));
      const lines = text.split('\n').map((line) => line.split(/\s+/, 5));
      const backups = lines.filter(([, , , , name = '']) => timeOfBackup(name) !== null);
      return new Map(backups.map(([, size = '', , , name = '']) => [name, Number(size.replaceAll(',', ''))]));
    },
    put: async (path) => {
      await output('rsync', $`rsync ${timeout} --times --chmod=F0640 --mkpath -- ${path} ${folder}`);
    },
    // rsync removes what is missing in the source, which is empty, among the names that its filters include.
    remove: async (names) => {
      const empty = await mkdtemp(join(tmpdir(), 'edge-health-empty-'));
      const filters = names.map((name) => `--include=/${name}`);
      await output('rsync', $`rsync ${timeout} --recursive --delete ${filters} '--exclude=*' -- ${empty}/ ${folder}`).finally(() =>
        rm(empty, { recursive: true, force: true }),
      );
    },
  };
}

/** Bounds memory: this runs beside the real work of the machine. */
const FRUGAL = ['--transfers=1', '--checkers=1', '--s3-upload-concurrency=1', '--s3-chunk-size=8M', '--buffer-size=0', '--use-mmap'];
const RETRIES = ['--contimeout=20s', `--timeout=${STALLED_SECONDS}s`, '--retries=3', '--low-level-retries=3', '--stats=0'];
/** rclone's exit code for a missing folder, which in S3 is one without files. */
const NO_FOLDER_IN_BUCKET = /failed \(3\)|directory not found/;

/** A bucket of Amazon S3 or a compatible server, by rclone, which compares the hash of what arrived. */
function s3(target: string, { config, environment, signal }: CopyOptions): CopyTarget {
  const { s3_credentials_file, s3_endpoint, s3_region } = config.ops.backup;
  const [bucket, ...prefix] = target
    .slice('s3://'.length)
    .split('/')
    .filter((part) => part !== '');
  if (!bucket) throw new Error('the bucket is missing: s3://bucket/prefix');
  const folder = [`EDGEHEALTH:${bucket}`, ...prefix, hostFolder()].join('/');
  // rclone reads the remote EDGEHEALTH from these. Secrets are never on a command line, where every user could see them.
  const remote: Record<string, string | null> = {
    RCLONE_CONFIG: '/dev/null',
    RCLONE_CONFIG_EDGEHEALTH_TYPE: 's3',
    RCLONE_CONFIG_EDGEHEALTH_PROVIDER: s3_endpoint === null ? 'AWS' : 'Other',
    // From AWS_* variables, the file that AWS_SHARED_CREDENTIALS_FILE names, or the machine's role.
    RCLONE_CONFIG_EDGEHEALTH_ENV_AUTH: 'true',
    RCLONE_CONFIG_EDGEHEALTH_ENDPOINT: s3_endpoint,
    RCLONE_CONFIG_EDGEHEALTH_REGION: s3_region,
    AWS_SHARED_CREDENTIALS_FILE: s3_credentials_file,
  };
  const variables = Object.fromEntries(Object.entries(remote).flatMap(([name, value]) => (value === null ? [] : [[name, value]])));
  const $ = shell({ environment: { ...environment, ...variables }, signal, graceSeconds: GRACE_SECONDS });
  const limits = [...FRUGAL, ...RETRIES];
  return {
    list: async () => {
      if (s3_credentials_file !== null)
        await access(s3_credentials_file, constants.R_OK).catch((error: NodeJS.ErrnoException) => {
          throw new Error(`${s3_credentials_file} (ops.backup.s3_credentials_file) cannot be read: ${error.code}`);
        });
      const listing = $`rclone lsjson ${limits} --files-only --no-modtime --no-mimetype ${folder}`;
      const files = JSON.parse(await output('rclone', listing).catch(emptyIf(NO_FOLDER_IN_BUCKET, '[]'))) as {
        Name: string;
        Size: number;
      }[];
      return new Map(files.filter(({ Name }) => timeOfBackup(Name) !== null).map(({ Name, Size }) => [Name, Size]));
    },
    put: async (path, name) => {
      await output('rclone', $`rclone copyto ${limits} --s3-no-check-bucket ${path} ${folder}/${name}`);
    },
    remove: async (names) => {
      for (const name of names) await output('rclone', $`rclone deletefile ${limits} ${folder}/${name}`);
    },
  };
}

const LONGEST_COMPLAINT = 300;

/** The output of a program that copies; throws with the last lines of its complaint when it fails. */
async function output(program: 'rsync' | 'rclone', finished: ReturnType<ReturnType<typeof shell>>): Promise<string> {
  const { exitCode, stderr, stdout } = await finished;
  if (exitCode === NOT_INSTALLED) throw new Error(`${program} is not installed: apt install ${program}`);
  if (exitCode === 0) return stdout;
  const complaint = stderr.trim().split('\n').slice(-3).join('; ').slice(-LONGEST_COMPLAINT);
  throw new Error(`${program} failed (${exitCode ?? 'ended by a signal'}): ${complaint}`);
}

function emptyIf(missing: RegExp, empty: string): (error: Error) => string {
  return (error) => {
    if (missing.test(error.message)) return empty;
    throw error;
  };
}
