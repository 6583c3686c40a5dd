import { readFile, realpath, stat, statfs } from 'node:fs/promises';
import { type Mount, mountOf, parseMounts, unescapeMount } from '../lib/mounts.ts';
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
  readonly isReadOnlyByIntent: boolean;
}

/** Whether /etc/fstab mounts it read-only, as on machines with an immutable system. */
export function isReadOnlyByIntent(point: string, fstab: string): boolean {
  return fstab.split('\n').some((line) => {
    const [, where = '', , options = ''] = line.trim().split(/\s+/);
    return !line.trim().startsWith('#') && unescapeMount(where) === point && options.split(',').includes('ro');
  });
}

const nameOf = (path: string): string => `disk ${path.replaceAll(':', '_')}`;
const gigabytes = (bytes: number): string => (bytes / 1e9).toFixed(1);

const WARNING_FACTOR = 1.5;
const FEW_INODES = 0.02;
/** File systems that are always read-only. */
const IMAGES = ['squashfs', 'erofs', 'iso9660', 'cramfs'];

export function evaluateDisk(facts: DiskFacts, minFreeMegabytes: number): CheckResult {
  const { freeBytes, freeInodes, inodes, mount, path, sizeBytes } = facts;
  const sizes = { size_bytes: sizeBytes, free_bytes: freeBytes, inodes, free_inodes: freeInodes };
  const { critical, note, ok, unknown, warning } = resultsFor(nameOf(path), {
    ...sizes,
    type: mount?.type ?? null,
    mounted_on: mount?.point ?? null,
  });
  if (facts.isHidden)
    return unknown('it is hidden from this unit (ProtectHome=)', 'systemctl edit edge-health-ops, under [Service] ProtectHome=read-only');
  const isReadOnly = mount?.options[0] === 'ro';
  if (mount !== null && (IMAGES.includes(mount.type) || (isReadOnly && facts.isReadOnlyByIntent)))
    return note(`read-only on purpose (${mount.type}): nothing can fill it`);
  if (isReadOnly) return critical('its file system is read-only', `see dmesg; repair it, then mount -o remount,rw ${mount.point}`);
  const needed = minFreeMegabytes * 1e6;
  const free = `${gigabytes(freeBytes)} of ${gigabytes(sizeBytes)} GB free`;
  const remedy = 'remove old files, or lower storage.max_megabytes and ops.backup.keep';
  const inodeRemedy = 'remove small files: df -i';
  if (freeBytes < needed) return critical(`${free}, ${gigabytes(needed)} GB are needed`, remedy);
  if (inodes > 0 && freeInodes === 0) return critical(`${free}, but no inode is left for another file`, inodeRemedy);
  if (freeBytes < WARNING_FACTOR * needed) return warning(`${free}, soon less than the ${gigabytes(needed)} GB that are needed`, remedy);
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

export const checkDisks: Check = async ({ config, dataFolder, signal }) => {
  const paths = [...new Set([...config.disk.paths, dataFolder])];
  const found = await Promise.allSettled(
    paths.map((path) => shareWithTimeout(TIMEOUT_SECONDS, `statfs ${path}`, () => readFileSystem(path), signal)),
  );
  const mounts = parseMounts(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''));
  const fstab = await readFile('/etc/fstab', 'utf8').catch(() => '');
  const seen = new Set<number>();
  return found.flatMap((result, index) => {
    const path = paths[index] as string;
    if (result.status === 'rejected') {
      const isExpected = path === dataFolder && result.reason.code === 'ENOENT'; // The service has not created it yet.
      return isExpected ? [] : [readProblem(path, result.reason)];
    }
    const { device, realPath, space } = result.value;
    if (seen.has(device)) return []; // The data folder is usually on the system disk.
    seen.add(device);
    const mount = mountOf(realPath, mounts);
    const byIntent = mount !== null && isReadOnlyByIntent(mount.point, fstab);
    return [evaluateDisk({ ...space, mount, isReadOnlyByIntent: byIntent }, config.ops.check.min_free_megabytes)];
  });
};
