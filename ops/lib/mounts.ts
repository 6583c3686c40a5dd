/** A mounted file system, from /proc/self/mountinfo. */
export interface Mount {
  readonly point: string;
  readonly type: string;
  /** Options of the file system itself, `rw` or `ro` first. A unit's sandbox may show a writable one as read-only. */
  readonly options: readonly string[];
}

/** mountinfo and fstab encode spaces and similar characters as octal escapes. */
export function unescapeMount(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** proc(5): `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`. */
export function parseMounts(mountinfo: string): Mount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [front = '', back] = line.split(' - ');
    const point = front.split(' ')[4];
    if (back === undefined || point === undefined) return [];
    const [type = '', , options = ''] = back.split(' ');
    return [{ point: unescapeMount(point), type, options: options.split(',') }];
  });
}

/** The mount that contains an absolute path without symbolic links; of several mounts on one point, the last one counts. */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | null {
  let found: Mount | null = null;
  for (const mount of mounts) {
    const isAbove = path === mount.point || path.startsWith(mount.point === '/' ? '/' : `${mount.point}/`);
    if (isAbove && mount.point.length >= (found?.point.length ?? 0)) found = mount;
  }
  return found;
}
