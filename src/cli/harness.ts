import { fileURLToPath } from 'node:url';
import { isWorkingDirectoryDeleted, WORKING_DIRECTORY_DELETED } from '../core/files/data-folder.ts';
import { optionsForShortLived, PROGRAMS } from '../core/files/programs.ts';
import { EXIT } from './command.ts';

/** The observer runs for days and uses little CPU. Without V8's optimizing compilers and their data it takes 6 MB less memory. */
const OBSERVER_OPTIONS = ['--lite-mode'];

/** Replaces this process with the harness, under the same process id. */
export function runHarness(argv: readonly string[]): never {
  if (isWorkingDirectoryDeleted()) {
    process.stderr.write(`edge-health: ${WORKING_DIRECTORY_DELETED}\n`);
    process.exit(EXIT.config);
  }
  if (!process.execve) throw new Error('this Node cannot replace its process; it must be the one of the package or of the checkout');
  // Node strips the types of sources with WebAssembly, which lite mode lacks.
  const observerOptions = PROGRAMS.harness.pathname.endsWith('.ts') ? [] : OBSERVER_OPTIONS;
  const options = argv[0] === 'run' ? [...process.execArgv, ...observerOptions] : optionsForShortLived();
  process.execve(process.execPath, [process.execPath, ...options, fileURLToPath(PROGRAMS.harness), ...argv], process.env);
  throw new Error('unreachable'); // execve does not return.
}
