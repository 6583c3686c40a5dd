import { CopyProblem } from './copy-target.ts';
import { NOT_INSTALLED, runProgram } from './program-runner.ts';

const LONGEST_WORDS = 300;

/**
 * Runs a program that copies, with its environment and arguments as they are; a missing one, or one that fails, is a CopyProblem with what
 * it said last.
 */
export async function runCopier(
  program: 'rsync' | 'rclone',
  given: readonly string[],
  environment: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<string> {
  const { exitCode, stderr, stdout } = await runProgram(program, given, { environment, signal });
  if (exitCode === NOT_INSTALLED) throw new CopyProblem(`${program} is not installed: apt install ${program}`);
  if (exitCode !== 0) {
    const words = stderr.trim().split('\n').slice(-3).join('; ').slice(-LONGEST_WORDS);
    throw new CopyProblem(`${program} failed (${exitCode ?? 'ended by a signal'}): ${words}`);
  }
  return stdout;
}
