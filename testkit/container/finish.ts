import { spawn } from 'node:child_process';

export interface Finished {
  /** The exit status; null when it was killed for taking too long, or by another signal. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end, at most for so many seconds, and then kills it with its children. */
export function finish(program: string, args: readonly string[], input: string | Buffer | undefined, seconds: number): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'], detached: true });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream]?.setEncoding('utf8').on('data', (text: string) => {
        output[stream] += text;
      });
    }
    const killer = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), seconds * 1000);
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(killer);
      resolve({ code, ...output });
    });
    // It may end without having read all of it.
    child.stdin?.on('error', () => undefined).end(input);
  });
}
