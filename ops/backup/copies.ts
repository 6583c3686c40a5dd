import { access, constants, copyFile, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { syncFolder as sync } from '../../src/core/files/atomic-file.ts';
import { isWithin, parseMounts } from '../../src/core/mounts.ts';
import { diskProblem } from '../lib/files.ts';
import type { JobContext, JobStatus } from '../lib/job.ts';
import { NOT_INSTALLED, shell } from '../lib/run-program.ts';
import { freeBytes, megabytes } from './disk-space.ts';
import { backupFolder, isPartial, newestFirst, surplus, timeOfBackup } from './names.ts';

export interface CopyOutcome {
  readonly target: string;
  readonly status: JobStatus;
  /** Names in the order in which they were copied, newest first. */
  readonly copied: readonly string[];
  readonly pruned: readonly string[];
  readonly problem: string | null;
}

/** A folder named after this machine, outside its data folder. Its functions throw errors with a remedy. */
interface CopyTarget {
  /** Names and sizes of the files there. */
  list(): Promise<readonly (readonly [name: string, bytes: number])[]>;
  /** Copies a file, which gets its name only when it is complete. */
  put(path: string, name: string): Promise<void>;
  remove(names: readonly string[]): Promise<void>;
}

/** Brings a target up to date with the backups of these names, newest first. A copy that fails now is retried on the next run. */
export async function copyTo(target: string, names: readonly string[], keep: number, context: JobContext): Promise<CopyOutcome> {
  const newest = names[0] as string;
  const copied: string[] = [];
  const pruned: string[] = [];
  try {
    const { list, put, remove } = targetOf(target, context);
    const present = new Map((await list()).filter(([name]) => timeOfBackup(name) !== null));
    // Skips backups that would be pruned at once: the target may hold newer ones that this machine has lost.
    const wanted = newestFirst([...new Set([...names, ...present.keys()])], newest).slice(0, keep);
    for (const name of wanted.filter((one) => names.includes(one))) {
      const path = join(backupFolder(context.dataFolder), name);
      if (present.get(name) === (await stat(path)).size) continue;
      context.progress(`copying ${name} to ${target}`);
      await put(path, name);
      copied.push(name);
    }
    const old = surplus([...new Set([...present.keys(), ...copied])], newest, keep);
    if (old.length > 0) await remove(old);
    pruned.push(...old);
    return { target, status: 'OK', copied, pruned, problem: null };
  } catch (error) {
    const onDisk = target.startsWith('/') ? diskProblem(error, target) : null;
    const problem = context.signal.aborted ? 'stopped before it was complete' : (onDisk ?? (error as Error).message);
    return { target, status: 'WARNING', copied, pruned, problem };
  }
}

/** The host name as a folder name: many machines may share one target, and all make their backups at midnight. */
export function hostFolder(): string {
  return hostname().replaceAll(/[^A-Za-z0-9.-]/g, '_') || 'unnamed';
}

function targetOf(target: string, context: JobContext): CopyTarget {
  if (target.startsWith('s3://')) return s3(target, context);
  if (target.startsWith('rsync://') || /^[^/:]+::?[^:]*/.test(target)) return rsync(target, context);
  if (target.startsWith('/')) return localFolder(target, context);
  throw new Error('not a target; use an absolute folder, user@host:path, rsync://host/module/path or s3://bucket/prefix');
}

/** Free space to leave on the target disk. */
const MARGIN_BYTES = 1e6;

/** A local folder: a USB disk or a mounted network share. */
function localFolder(target: string, { environment, signal }: JobContext): CopyTarget {
  const folder = join(target, hostFolder());
  return {
    list: async () => {
      const real = await realpath(target).catch(() => null);
      if (real === null || !(await stat(real)).isDirectory())
        throw new Error(`folder ${target} does not exist; create it, or mount its disk`);
      if (lacksItsMount(real, await readFile('/proc/self/mountinfo', 'utf8')))
        throw new Error(`no disk is mounted at ${target}; mount it, or remove it from ops.backup.copy_to`);
      await mkdir(folder, { mode: 0o750 }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
      const names = await readdir(folder);
      for (const name of names.filter(isPartial)) await rm(join(folder, name), { force: true });
      const backups = names.filter((name) => timeOfBackup(name) !== null);
      return Promise.all(backups.map(async (name) => [name, (await stat(join(folder, name))).size] as const));
    },
    put: async (path, name) => {
      const partial = join(folder, `${name}.partial`);
      try {
        const needed = (await stat(path)).size + MARGIN_BYTES;
        const free = await freeBytes(folder);
        if (free < needed)
          throw new Error(`${megabytes(free)} are free in ${target}, ${megabytes(needed)} are needed; remove what is not needed there`);
        await copyFile(path, partial);
        await sync(partial);
        const { exitCode, stderr } = await shell({ environment, signal })`cmp --silent -- ${path} ${partial}`;
        if (exitCode === 1) throw new Error(`${name} differs when read back from ${target}; check that disk (dmesg)`);
        if (exitCode !== 0) throw new Error(`${name} cannot be compared in ${target}: ${stderr.trim() || 'cmp failed'}`);
        await rename(partial, join(folder, name));
        await sync(folder);
      } catch (error) {
        await rm(partial, { force: true }).catch(() => undefined); // The first error is the one to report.
        throw error;
      }
    },
    remove: async (names) => {
      for (const name of names) await rm(join(folder, name), { force: true });
    },
  };
}

/** Where removable and network disks are mounted. */
const MOUNT_FOLDERS = ['/mnt', '/media', '/run/media'];

/** Whether a path is where a disk would be mounted but none is. Copies would then fill the disk below the mount point. */
export function lacksItsMount(path: string, mountinfo: string): boolean {
  const root = MOUNT_FOLDERS.find((folder) => isWithin(path, folder));
  return root !== undefined && !parseMounts(mountinfo).some(({ point }) => isWithin(point, root) && isWithin(path, point));
}

/** Timeout for a transfer that moves no bytes. */
const STALLED_SECONDS = 120;
/** Time for a stopped program to remove its partial files. */
const GRACE_SECONDS = 3;
/** BatchMode disables prompts, which a job cannot answer. */
const SSH = 'ssh -o BatchMode=yes -o ConnectTimeout=20';
const NO_FOLDER_ON_SERVER = /failed: No such file or directory/;

/** rsync://host/module/path, host::module/path, or host:path over ssh. rsync writes to a temporary name first and renames it. */
function rsync(target: string, { environment, signal }: JobContext): CopyTarget {
  const folder = `${target.replace(/\/$/, '')}/${hostFolder()}/`;
  const timeout = `--timeout=${STALLED_SECONDS}`;
  const $ = copying('rsync', { RSYNC_RSH: SSH, ...environment }, signal);
  return {
    list: async () => {
      const text = await $`rsync ${timeout} --list-only --no-h -- ${folder}`.catch((error: Error) => {
        if (NO_FOLDER_ON_SERVER.test(error.message)) return '';
        throw error;
      });
      const files = text.split('\n').map((line) => line.split(/\s+/, 5));
      return files.map(([, size = '', , , name = '']) => [name, Number(size.replaceAll(',', ''))]);
    },
    put: async (path) => {
      await $`rsync ${timeout} --times --chmod=F0640 --mkpath -- ${path} ${folder}`;
    },
    // rsync removes files that the source, an empty folder, lacks, among the names that its filters include.
    remove: async (names) => {
      const empty = await mkdtemp(join(tmpdir(), 'edge-health-empty-'));
      const filters = names.map((name) => `--include=/${name}`);
      await $`rsync ${timeout} --recursive --delete ${filters} '--exclude=*' -- ${empty}/ ${folder}`.finally(() => rmdir(empty));
    },
  };
}

/** Bounds memory, because copies run beside the main workload of the machine. */
const FRUGAL = ['--transfers=1', '--checkers=1', '--s3-upload-concurrency=1', '--s3-chunk-size=8M', '--buffer-size=0', '--use-mmap'];
const RETRIES = ['--contimeout=20s', `--timeout=${STALLED_SECONDS}s`, '--retries=3', '--low-level-retries=3', '--stats=0'];
/** rclone's exit code for a missing folder; in S3, that is a folder without files. */
const NO_FOLDER_IN_BUCKET = /failed \(3\)|directory not found/;

/** A bucket of Amazon S3 or a compatible server, accessed by rclone, which compares the hash of each uploaded file. */
function s3(target: string, { config, environment, signal }: JobContext): CopyTarget {
  const { s3_credentials_file, s3_endpoint, s3_region } = config.ops.backup;
  const [bucket, ...prefix] = target
    .slice('s3://'.length)
    .split('/')
    .filter((part) => part !== '');
  if (!bucket) throw new Error('the bucket is missing: s3://bucket/prefix');
  const folder = [`EDGEHEALTH:${bucket}`, ...prefix, hostFolder()].join('/');
  // rclone reads the remote EDGEHEALTH from these. Secrets are never on a command line, where every user could see them.
  const remote = {
    RCLONE_CONFIG: '/dev/null',
    RCLONE_CONFIG_EDGEHEALTH_TYPE: 's3',
    RCLONE_CONFIG_EDGEHEALTH_PROVIDER: s3_endpoint === null ? 'AWS' : 'Other',
    // Credentials come from AWS_* variables, the file that AWS_SHARED_CREDENTIALS_FILE names, or the machine's role.
    RCLONE_CONFIG_EDGEHEALTH_ENV_AUTH: 'true',
    ...(s3_endpoint === null ? {} : { RCLONE_CONFIG_EDGEHEALTH_ENDPOINT: s3_endpoint }),
    ...(s3_region === null ? {} : { RCLONE_CONFIG_EDGEHEALTH_REGION: s3_region }),
    ...(s3_credentials_file === null ? {} : { AWS_SHARED_CREDENTIALS_FILE: s3_credentials_file }),
  };
  const $ = copying('rclone', { ...environment, ...remote }, signal);
  const limits = [...FRUGAL, ...RETRIES];
  return {
    list: async () => {
      if (s3_credentials_file !== null)
        await access(s3_credentials_file, constants.R_OK).catch((error: NodeJS.ErrnoException) => {
          throw new Error(`${s3_credentials_file} (ops.backup.s3_credentials_file) cannot be read: ${error.code}`);
        });
      const text = await $`rclone lsjson ${limits} --files-only --no-modtime --no-mimetype ${folder}`.catch((error: Error) => {
        if (NO_FOLDER_IN_BUCKET.test(error.message)) return '[]';
        throw error;
      });
      return (JSON.parse(text) as { Name: string; Size: number }[]).map(({ Name, Size }) => [Name, Size]);
    },
    put: async (path, name) => {
      await $`rclone copyto ${limits} --s3-no-check-bucket ${path} ${folder}/${name}`;
    },
    remove: async (names) => {
      for (const name of names) await $`rclone deletefile ${limits} ${folder}/${name}`;
    },
  };
}

const LONGEST_COMPLAINT = 300;
/** What rsync adds to every error of the program that it uses as its connection. */
const RSYNC_FOLLOWS = /^rsync error: |^rsync: connection unexpectedly closed/;

/** Like `shell`, for a copy program: resolves with its output, or throws with the last lines of its error output if it fails. */
function copying(program: 'rsync' | 'rclone', environment: NodeJS.ProcessEnv, signal: AbortSignal) {
  const $ = shell({ environment, signal, graceSeconds: GRACE_SECONDS });
  return async (pieces: TemplateStringsArray, ...args: readonly unknown[]): Promise<string> => {
    const { exitCode, stderr, stdout } = await $(pieces, ...args);
    if (exitCode === 0) return stdout;
    if (exitCode === NOT_INSTALLED) throw new Error(`${program} is not installed: apt install ${program}`);
    if (stderr.includes('Failed to exec ssh')) throw new Error('ssh is not installed: apt install openssh-client');
    const lines = stderr.trim().split(/\r?\n/);
    const causes = lines.filter((line) => !RSYNC_FOLLOWS.test(line));
    const complaint = (causes.length > 0 ? causes : lines).slice(-3).join('; ').slice(-LONGEST_COMPLAINT);
    throw new Error(`${program} failed (${exitCode ?? 'ended by a signal'}): ${complaint}`);
  };
}
