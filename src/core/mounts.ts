/** A mounted file system, from /proc/self/mountinfo. */
export interface Mount {
  readonly id: number;
  /** Id of the mount that it is mounted on. */
  readonly parent: number;
  /** `major:minor` of the file system. */
  readonly device: string;
  /** The folder of the file system that is mounted; `/` except for bind mounts and subvolumes. */
  readonly root: string;
  readonly point: string;
  readonly type: string;
  /** Options of the file system itself, `rw` or `ro` first. A unit's sandbox may show a writable one as read-only. */
  readonly options: readonly string[];
}

/** mountinfo and fstab encode spaces and similar characters as octal escapes. */
function unescapeMount(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** proc(5): `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`. */
export function parseMounts(mountinfo: string): Mount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [front = '', back] = line.split(' - ');
    const [id, parent, device = '', root = '', point] = front.split(' ');
    if (back === undefined || point === undefined) return [];
    const [type = '', , options = ''] = back.split(' ');
    const where = { root: unescapeMount(root), point: unescapeMount(point) };
    return [{ id: Number(id), parent: Number(parent), device, ...where, type, options: options.split(',') }];
  });
}

/** Whether an absolute path is a folder or lies in it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || folder === '/' || path.startsWith(`${folder}/`);
}

/**
 * The mount that contains an absolute path without symbolic links. As the kernel does, it follows the path from the root and enters what
 * is mounted at each folder, so that mounts hidden by later ones do not count. Null: the table does not show it.
 */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | null {
  const above = mounts.filter(({ point }) => isWithin(path, point)).sort((a, b) => a.point.length - b.point.length);
  let found: Mount | null = null;
  for (
    let next: Mount | undefined = above.find((mount) => mount.id === mount.parent || !mounts.some(({ id }) => id === mount.parent));
    next;
  ) {
    const { id, point }: Mount = next;
    found = next;
    next = above.find((mount) => mount.parent === id && mount.id !== id && mount.point.length >= point.length);
  }
  return found;
}

/**
 * The mount whose file system a path is in. A bind mount of a folder on itself, as a unit's sandbox makes for ReadWritePaths=, does not
 * count: the file system in it is that around it.
 */
export function fileSystemOf(path: string, mounts: readonly Mount[]): Mount | null {
  let found = mountOf(path, mounts);
  for (;;) {
    const mount: Mount | null = found;
    const below = mounts.find(({ id }) => id === mount?.parent);
    if (!mount || !below || below === mount || below.device !== mount.device) return mount;
    const inner = mount.point.slice(below.point === '/' ? 0 : below.point.length);
    if (mount.root !== ((below.root === '/' ? '' : below.root) + inner || '/')) return mount;
    found = below;
  }
}

/** A mount point of fstab(5) with its options. */
export interface FstabEntry {
  readonly point: string;
  readonly options: readonly string[];
}

export function parseFstab(fstab: string): FstabEntry[] {
  return fstab.split('\n').flatMap((line) => {
    const [device = '', point = '', , options = ''] = line.trim().split(/\s+/);
    // Swap has `none` or `swap` for a mount point. A folder that is mounted on itself, for other options, is no other file system.
    if (device.startsWith('#') || !point.startsWith('/') || device === point) return [];
    return [{ point: unescapeMount(point).replace(/(?<=.)\/+$/, ''), options: options.split(',') }];
  });
}

/** The longest mount point of fstab, mounted at boot or by hand, that contains a path; null: none but the root. */
export function fstabMountPoint(path: string, fstab: readonly FstabEntry[]): string | null {
  const points = fstab.filter(({ point }) => point !== '/' && isWithin(path, point));
  return points
    .map(({ point }) => point)
    .reduce<string | null>((longest, point) => (point.length > (longest?.length ?? 0) ? point : longest), null);
}

/**
 * The first of several mount points above a path on which nothing is mounted, so that the path shows the file system below; null: none.
 */
export function unmountedPoint(path: string, points: readonly (string | null)[], mounts: readonly Mount[]): string | null {
  const point = fileSystemOf(path, mounts)?.point ?? '/';
  const isUnmounted = (expected: string | null): boolean =>
    expected !== null && !isWithin(point, expected) && fileSystemOf(expected, mounts)?.point !== expected;
  return points.find(isUnmounted) ?? null;
}

/** File systems that are always read-only. */
const IMAGES = ['squashfs', 'erofs', 'iso9660', 'cramfs'];

/** Whether a file system is read-only by its type or by fstab, as on machines with an immutable system. */
export function isReadOnlyByIntent({ options, point, type }: Mount, fstab: readonly FstabEntry[]): boolean {
  return IMAGES.includes(type) || (options[0] === 'ro' && fstab.some((entry) => entry.point === point && entry.options.includes('ro')));
}

export interface Fault {
  readonly what: string;
  readonly remedy: string;
}

/**
 * Why files can no longer be written to a file system, or null. After an error, ext4 shows `ro`, from Linux 6.15 on `emergency_ro`, and
 * from 6.12 to 6.14 neither. `errors` is its number of errors since the last fsck, which shows those too.
 */
export function fileSystemFault(mount: Mount, fstab: readonly FstabEntry[], errors: number): Fault | null {
  if (isReadOnlyByIntent(mount, fstab)) return null;
  const { options, point } = mount;
  const isEmergency = options.includes('emergency_ro');
  const isReadOnly = isEmergency || options[0] === 'ro';
  if (errors === 0 && !isEmergency)
    return isReadOnly ? { what: 'its file system is read-only', remedy: `see dmesg; repair it, then mount -o remount,rw ${point}` } : null;
  const recorded = errors > 0 ? ` has recorded ${errors} error${errors === 1 ? '' : 's'}${isReadOnly ? ' and' : ''}` : '';
  const what = `its file system${recorded}${isReadOnly ? ' is read-only' : ''}`;
  return { what, remedy: 'see dmesg; save its files, and repair it with fsck' };
}
