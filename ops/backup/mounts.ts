import { readFile } from 'node:fs/promises';
import { parseMounts } from '../lib/mounts.ts';

/** Where disks are mounted that may not be there. */
const REMOVABLE = ['/mnt', '/media', '/run/media'];

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/**
 * Whether a path is where a disk would be mounted, and none is: what was written there would fill the disk below. Exported with its
 * text for tests.
 */
export function lacksItsMount(path: string, mountinfo: string): boolean {
  const root = REMOVABLE.find((folder) => isWithin(path, folder));
  return root !== undefined && !parseMounts(mountinfo).some(({ point }) => isWithin(point, root) && isWithin(path, point));
}

export async function isUnmounted(path: string): Promise<boolean> {
  return lacksItsMount(path, await readFile('/proc/self/mountinfo', 'utf8'));
}
