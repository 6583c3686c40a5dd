import { fileURLToPath } from 'node:url';
import { isWorkingDirectoryDeleted, WORKING_DIRECTORY_DELETED } from '../core/files/data-folder.ts';
import { optionsForShortLived, PROGRAMS } from '../core/files/programs.ts';
import { EXIT } from './command.ts';

/**
 * The scheduler and the observer of the harness run permanently and use little CPU. Without V8's optimizing compilers and their data each
 * takes 6 MB less memory.
 */
const LONG_RUNNING_OPTIONS = ['--lite-mode'];

/** Replaces this process with the program of the maintenance jobs or with the harness, under the same process id. */
export function runOther(name: 'ops' | 'harness', argv: readonly string[]): never {
  if (name === 'harness' && isWorkingDirectoryDeleted()) {
    process.stderr.write(`edge-health: ${WORKING_DIRECTORY_DELETED}\n`);
    process.exit(EXIT.config);
  }
  if (!process.execve) throw new Error('this Node cannot replace its process; it must be the one of the package or of the checkout');
  const program = PROGRAMS[name];
  // Node strips the types of sources with WebAssembly, which lite mode lacks.
  const longRunningOptions = program.pathname.endsWith('.ts') ? [] : LONG_RUNNING_OPTIONS;
  // Most jobs compute little; the reports of the harness compute much.
  const otherOptions = name === 'ops' ? process.execArgv : optionsForShortLived();
  const options = argv[0] === 'run' ? [...process.execArgv, ...longRunningOptions] : otherOptions;
  process.execve(process.execPath, [process.execPath, ...options, fileURLToPath(program), ...argv], process.env);
  throw new Error('unreachable'); // execve does not return.
}
