import { fileURLToPath } from 'node:url';
import { PROGRAMS } from '../installation/programs.ts';

/** Becomes the program of operations, a program of its own, under the same process id. */
export function runOps(argv: readonly string[]): never {
  if (!process.execve) throw new Error('this Node cannot replace its process; it must be the one of the package or of the checkout');
  process.execve(process.execPath, [process.execPath, ...process.execArgv, fileURLToPath(PROGRAMS.ops), ...argv], process.env);
  throw new Error('unreachable'); // execve does not return.
}
