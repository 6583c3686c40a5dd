import { readFile, realpath, stat, statfs } from 'node:fs/promises';
import type { Check } from './check.ts';
import { isReadOnlyByIntent, type Mount, mountOf, parseMounts } from './mounts.ts';
import { askOnce, within } from './patience.ts';
import { finding, fine, note, type Verdict } from './verdict.ts';

/** What of a file system counts. */
export interface DiskFacts {
  /** As configured. */
  readonly path: string;
  readonly sizeBytes: number;
  /** For users; what is kept for root is no use to anybody here. */
  readonly freeBytes: number;
  /** 0: this kind of file system has no fixed number of them. */
  readonly inodes: number;
  readonly freeInodes: number;
  readonly mount: Mount | null;
  readonly isReadOnlyByIntent: boolean;
  /** A directory that nobody may open: what ProtectHome= lays over what it hides. */
  readonly isHidden: boolean;
}

const ROOM = 1.5;
const FEW_INODES = 0.02;
/** File systems that nobody can write to. */
const IMAGES = ['squashfs', 'erofs', 'iso9660', 'cramfs'];

const gigabytes = (bytes: number): string => (bytes / 1e9).toFixed(1);

export function judgeDisk(facts: DiskFacts, minFreeMegabytes: number): Verdict {
  const { freeBytes, freeInodes, inodes, mount, path, sizeBytes } = facts;
  const name = `disk ${path.replaceAll(':', '_')}`;
  const measured = {
    size_bytes: sizeBytes,
    free_bytes: freeBytes,
    inodes,
    free_inodes: freeInodes,
    type: mount?.type ?? null,
    mounted_on: mount?.point ?? null,
  };
  const needed = minFreeMegabytes * 1e6;
  if (facts.isHidden)
    return finding(
      name,
      'UNKNOWN',
      'it is hidden from this unit (ProtectHome=)',
      'systemctl edit edge-health-ops, under [Service] ProtectHome=read-only',
      measured,
    );
  if (mount !== null && (IMAGES.includes(mount.type) || (mount.options[0] === 'ro' && facts.isReadOnlyByIntent)))
    return note(name, `read-only on purpose (${mount.type}): nothing can fill it`, measured);
  if (mount?.options[0] === 'ro')
    return finding(
      name,
      'CRITICAL',
      'its file system is read-only',
      `dmesg tells why; repair it, then mount -o remount,rw ${mount.point}`,
      measured,
    );
  const free = `${gigabytes(freeBytes)} of ${gigabytes(sizeBytes)} GB free`;
  const remedy = 'remove old files, or lower storage.max_megabytes and ops.backup.keep';
  if (freeBytes < needed) return finding(name, 'CRITICAL', `${free}, ${gigabytes(needed)} GB are needed`, remedy, measured);
  if (inodes > 0 && freeInodes === 0)
    return finding(name, 'CRITICAL', `${free}, but no inode is left for another file`, 'remove small files: df -i', measured);
  if (freeBytes < ROOM * needed)
    return finding(name, 'WARNING', `${free}, soon less than the ${gigabytes(needed)} GB that are needed`, remedy, measured);
  if (inodes > 0 && freeInodes < FEW_INODES * inodes)
    return finding(
      name,
      'WARNING',
      `${free}, but only ${freeInodes} of ${inodes} inodes for further files`,
      'remove small files: df -i',
      measured,
    );
  return fine(name, free, measured);
}

interface Answer extends Omit<DiskFacts, 'mount' | 'isReadOnlyByIntent'> {
  readonly real: string;
  readonly device: number;
}

/** All of it may hang where a network share is gone or a disk dies. */
async function ask(path: string): Promise<Answer> {
  const { dev, mode } = await stat(path);
  const { bavail, bsize, blocks, ffree, files } = await statfs(path);
  const real = await realpath(path);
  const isHidden = (mode & 0o170777) === 0o040000;
  return { path, real, device: dev, sizeBytes: blocks * bsize, freeBytes: bavail * bsize, inodes: files, freeInodes: ffree, isHidden };
}

const SECONDS = 5;

/** An answer, or what kept it from coming. */
async function answerOf(path: string, isDataFolder: boolean, signal: AbortSignal): Promise<Answer | Verdict | null> {
  try {
    return await within(
      SECONDS,
      askOnce(`statfs ${path}`, () => ask(path)),
      signal,
    );
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && isDataFolder) return null; // The service has not made it yet.
    const remedy =
      code === 'ENOENT'
        ? 'correct disk.paths, or mount it'
        : code === 'EACCES'
          ? 'run it as root or as the user of the service'
          : 'see whether what it is mounted from is still there: mount, dmesg';
    return finding(`disk ${path.replaceAll(':', '_')}`, 'UNKNOWN', `it cannot be asked: ${code ?? message}`, remedy);
  }
}

export const diskCheck: Check = {
  name: 'disk',
  seconds: 15,
  run: async ({ context, root }, signal) => {
    const { config, dataFolder } = context;
    const paths = [...new Set([...config.disk.paths, dataFolder])];
    const answers = await Promise.all(paths.map((path) => answerOf(path, path === dataFolder, signal)));
    const mounts = parseMounts(await readFile(`${root}/proc/self/mountinfo`, 'utf8').catch(() => ''));
    let fstab: string | null = null;
    const seen = new Set<number>();
    const verdicts: Verdict[] = [];
    for (const answer of answers) {
      if (answer === null) continue;
      if ('status' in answer) {
        verdicts.push(answer);
        continue;
      }
      if (seen.has(answer.device)) continue; // The data folder mostly lies on the disk of the system.
      seen.add(answer.device);
      const mount = mountOf(answer.real, mounts);
      const isReadOnly = mount?.options[0] === 'ro';
      if (isReadOnly) fstab ??= await readFile(`${root}/etc/fstab`, 'utf8').catch(() => '');
      const byIntent = isReadOnly && isReadOnlyByIntent(mount.point, fstab ?? '');
      verdicts.push(judgeDisk({ ...answer, mount, isReadOnlyByIntent: byIntent }, config.ops.check.min_free_megabytes));
    }
    return verdicts;
  },
};
