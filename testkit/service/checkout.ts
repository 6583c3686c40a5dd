/** A copy of the built checkout without compiled dependencies: the service runs without native addons in it. */
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './service.ts';

/** Returns the path of the copy, which contains a space. */
export function copyCheckout(folder: string): string {
  const root = join(folder, 'a checkout');
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  for (const part of ['bin', 'dist', 'config', 'package.json']) cpSync(join(ROOT, part), join(root, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules/node'), join(root, 'node_modules/node'));
  return root;
}
