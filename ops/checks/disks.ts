import { readFile, realpath, stat, statfs } from 'node:fs/promises';
import { recordedErrors } from '../../src/core/files/recorded-errors.ts';
import {
  type FstabEntry,
  fileSystemFault,
  fileSystemOf,
  fstabMountPoint,
  isReadOnlyByIntent,
  type Mount,
  parseFstab,
  parseMounts,
  unmountedPoint,
} from '../../src/core/mounts.ts';
import { shareWithTimeout } from '../lib/timeout.ts';
import { type Check, type CheckResult, resultsFor } from './check.ts';

/** Reads the file system that contains a path, as configured. Every one of these calls hangs if a network share is gone or a disk fails. */
async function readFileSystem(path: string) {
  const { dev: device, mode } = await stat(path);
  const { bavail, bsize, blocks, ffree, files } = await statfs(path);
  const space = {
    path,
    sizeBytes: blocks * bsize,
    /** Free space for users other than root. */
    freeBytes: bavail * bsize,
    /** 0 if this kind of file system has no fixed number of inodes. */
    inodes: files,
    freeInodes: ffree,
    /** A directory of mode 000, which ProtectHome= mounts over what it hides. */
    isHidden: (mode & 0o170777) === 0o040000,
  };
  return { space, device, realPath: await realpath(path) };
}

type Space = Readonly<Awaited<ReturnType<typeof readFileSystem>>['space']>;

export interface DiskFacts extends Space {
  readonly mount: Mount | null;
  readonly fstab: readonly FstabEntry[];
  /** Errors that the file system has recorded. */
  readonly errors: number;
  /** What the service reports about a path that it measures; null: nothing, or it does not respond. */
  readonly reported: string | null;
}

const nameOf = (path: string): string => `disk ${path.replaceAll(':', '_')}`;
/** `3.1 GB`, below 1 GB `389 MB`. */
const sizeText = (bytes: number): string => (bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);

const WARNING_FACTOR = 1.5;
const FEW_INODES = 0.02;
/** On a small file system, such as /boot, a tenth of it is enough. */
const ENOUGH = 0.1;

export function evaluateDisk(facts: DiskFacts, minFreeMegabytes: number): CheckResult {
  const { errors, freeBytes, freeInodes, fstab, inodes, mount, path, reported, sizeBytes } = facts;
  const sizes = { size_bytes: sizeBytes, free_bytes: freeBytes, inodes, free_inodes: freeInodes };
  const { critical, note, ok, unknown, warning } = resultsFor(nameOf(path), {
    ...sizes,
    type: mount?.type ?? null,
    mounted_on: mount?.point ?? null,
  });
  if (facts.isHidden)
    return unknown('it is hidden from this unit (ProtectHome=)', 'systemctl edit edge-health-ops, under [Service] ProtectHome=read-only');
  const fault = mount && fileSystemFault(mount, fstab, errors);
  if (fault) return critical(fault.what, fault.remedy);
  if (reported !== null) {
    const [what = '', ...remedy] = reported.split('; ');
    return critical(what, remedy.join('; ') || 'see disks in /status');
  }
  if (mount !== null && isReadOnlyByIntent(mount, fstab)) return note(`read-only on purpose (${mount.type}): nothing can fill it`);
  const needed = Math.min(minFreeMegabytes * 1e6, ENOUGH * sizeBytes);
  const free = `${sizeText(freeBytes)} of ${sizeText(sizeBytes)} free`;
  const remedy = 'remove old files, or lower storage.max_megabytes and ops.backup.keep';
  const inodeRemedy = 'remove small files: df -i';
  if (freeBytes < needed) return critical(`${free}, ${sizeText(needed)} are needed`, remedy);
  if (inodes > 0 && freeInodes === 0) return critical(`${free}, but no inode is left for another file`, inodeRemedy);
  if (freeBytes < WARNING_FACTOR * needed) return warning(`${free}, soon less than the ${sizeText(needed)} that are needed`, remedy);
  if (inodes > 0 && freeInodes < FEW_INODES * inodes)
    return warning(`${free}, but only ${freeInodes} of ${inodes} inodes for further files`, inodeRemedy);
  return ok(free);
}

const TIMEOUT_SECONDS = 5;

function readProblem(path: string, { code, message }: NodeJS.ErrnoException): CheckResult {
  const remedies: Readonly<Record<string, string>> = {
    ENOENT: 'correct disk.paths, or mount it',
    EACCES: 'run it as root or as the user of the service',
  };
  const remedy = remedies[code ?? ''] ?? 'check that its disk or server is still there: mount, dmesg';
  return resultsFor(nameOf(path)).unknown(`it cannot be read: ${code ?? message}`, remedy);
}

const readText = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

const errorsOf = (mount: Mount | null): Promise<number> =>
  new Promise((resolve) => (mount ? recordedErrors(mount, '/sys', resolve) : resolve(0)));

export const checkDisks: Check = async ({ config, dataFolder, isRemote, service, signal }) => {
  const paths = [...new Set([...config.disk.paths, dataFolder])];
  const mounts = parseMounts(await readText('/proc/self/mountinfo'));
  const fstab = parseFstab(await readText('/etc/fstab'));
  const isIdle = (path: string): boolean => fileSystemOf(path, mounts)?.type === 'autofs';
  const found = await Promise.allSettled(
    paths.map((path) => (isIdle(path) ? null : shareWithTimeout(TIMEOUT_SECONDS, `statfs ${path}`, () => readFileSystem(path), signal))),
  );
  const answer = isRemote ? null : await service;
  const measured = answer?.kind === 'answer' ? answer.status.disks : [];
  const seen = new Set<number>();
  const results = found.map(async (result, index) => {
    const path = paths[index] as string;
    if (result.status === 'rejected') {
      const isExpected = path === dataFolder && result.reason.code === 'ENOENT'; // The service has not created it yet.
      return isExpected ? [] : [readProblem(path, result.reason)];
    }
    if (result.value === null)
      return [resultsFor(nameOf(path)).note('its automount is not in use; it is not read, because that would mount it')];
    const { device, realPath, space } = result.value;
    const unmounted = unmountedPoint(realPath, [fstabMountPoint(realPath, fstab)], mounts);
    if (unmounted !== null)
      return [
        resultsFor(nameOf(path)).critical(`nothing is mounted on ${unmounted}`, `mount it, or remove ${path} from the configuration`),
      ];
    const reported = measured.find((disk) => disk.path === path)?.problem ?? null;
    // The data folder is usually on the system disk.
    if (seen.has(device) && reported === null) return [];
    seen.add(device);
    const mount = fileSystemOf(realPath, mounts);
    return [evaluateDisk({ ...space, mount, fstab, errors: await errorsOf(mount), reported }, config.ops.check.min_free_megabytes)];
  });
  return (await Promise.all(results)).flat();
};
