/** A built checkout in a folder of its own, in which nothing was compiled: what the service is there, it is without native addons. */
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './service.ts';

/** Returns its path, which has a space in it. */
export function copyCheckout(folder: string): string {
  const root = join(folder, 'a checkout');
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  for (const part of ['bin', 'dist', 'config', 'package.json']) cpSync(join(ROOT, part), join(root, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules/node'), join(root, 'node_modules/node'));
  return root;
}
