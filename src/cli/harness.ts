import { fileURLToPath } from 'node:url';
import { PROGRAMS } from '../installation/programs.ts';

/** What watches lives long and does little: without what V8 keeps to make code faster it takes 6 MB less. */
const WATCHER_OPTIONS = ['--lite-mode'];
/** For programs that live long; the other commands end soon, and have much to reckon. */
const LONG_LIVED = /^--(?:no-opt|no-maglev|max-semi-space-size|v8-pool-size)/;

/** Becomes the harness, a program of its own, under the same process id. */
export function runHarness(argv: readonly string[]): never {
  if (!process.execve) throw new Error('this Node cannot replace its process; it must be the one of the package or of the checkout');
  // Sources are stripped of their types by WebAssembly, which that mode has not.
  const watcherOptions = PROGRAMS.harness.pathname.endsWith('.ts') ? [] : WATCHER_OPTIONS;
  const options =
    argv[0] === 'run' ? [...process.execArgv, ...watcherOptions] : process.execArgv.filter((option) => !LONG_LIVED.test(option));
  process.execve(process.execPath, [process.execPath, ...options, fileURLToPath(PROGRAMS.harness), ...argv], process.env);
  throw new Error('unreachable'); // execve does not return.
}
