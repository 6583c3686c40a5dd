import { spawn } from 'node:child_process';

export interface Finished {
  /** The exit status; null if it was killed after the timeout or by another signal. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end; after `seconds`, kills it and its child processes. */
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
    // The program may end without reading all input.
    child.stdin?.on('error', () => undefined).end(input);
  });
}
