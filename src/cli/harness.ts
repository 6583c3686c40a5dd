import { fileURLToPath } from 'node:url';
import { optionsForShortLived } from '../installation/node-options.ts';
import { PROGRAMS } from '../installation/programs.ts';
import { isWorkingDirectoryDeleted, WORKING_DIRECTORY_DELETED } from '../system/data-folder.ts';
import { EXIT } from './exit-codes.ts';

/** What watches lives long and does little: without what V8 keeps to make code faster it takes 6 MB less. */
const WATCHER_OPTIONS = ['--lite-mode'];

/** Becomes the harness, a program of its own, under the same process id. */
export function runHarness(argv: readonly string[]): never {
  if (isWorkingDirectoryDeleted()) {
    process.stderr.write(`edge-health: ${WORKING_DIRECTORY_DELETED}\n`);
    process.exit(EXIT.config);
  }
  if (!process.execve) throw new Error('this Node cannot replace its process; it must be the one of the package or of the checkout');
  // Sources are stripped of their types by WebAssembly, which that mode has not.
  const watcherOptions = PROGRAMS.harness.pathname.endsWith('.ts') ? [] : WATCHER_OPTIONS;
  const options = argv[0] === 'run' ? [...process.execArgv, ...watcherOptions] : optionsForShortLived();
  process.execve(process.execPath, [process.execPath, ...options, fileURLToPath(PROGRAMS.harness), ...argv], process.env);
  throw new Error('unreachable'); // execve does not return.
}
