import { fileURLToPath } from 'node:url';
import { PROGRAMS } from '../core/files/programs.ts';

/**
 * The scheduler runs permanently and uses little CPU. Without V8's optimizing compilers and their data it takes 6 MB less memory.
 */
const SCHEDULER_OPTIONS = ['--lite-mode'];

/** Replaces this process with the program of the maintenance jobs, under the same process id. */
export function runOps(argv: readonly string[]): never {
  if (!process.execve) throw new Error('this Node cannot replace its process; it must be the one of the package or of the checkout');
  const options = argv[0] === 'run' ? SCHEDULER_OPTIONS : [];
  process.execve(process.execPath, [process.execPath, ...process.execArgv, ...options, fileURLToPath(PROGRAMS.ops), ...argv], process.env);
  throw new Error('unreachable'); // execve does not return.
}
