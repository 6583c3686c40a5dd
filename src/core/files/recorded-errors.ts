import { readFile, readlink } from 'node:fs';
import { basename, join } from 'node:path';
import type { Mount } from '../mounts.ts';

/** The number of errors that ext2, ext3 or ext4 has recorded in a file system since its last fsck; 0 for other types. */
export function recordedErrors({ device, type }: Mount, sysRoot: string, callback: (errors: number) => void): void {
  if (!/^ext[234]$/.test(type)) {
    callback(0);
    return;
  }
  readlink(join(sysRoot, 'dev/block', device), (unknown, target) => {
    if (unknown) return callback(0);
    const file = join(sysRoot, 'fs/ext4', basename(target), 'errors_count');
    readFile(file, 'utf8', (unreadable, text) => callback(unreadable ? 0 : Number(text)));
  });
}
