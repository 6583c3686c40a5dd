import { execFile } from 'node:child_process';

/** What a program answered on its standard output; else what went wrong. */
export type Answer = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string };

const MAX_ANSWER_BYTES = 1 << 20;
const NOT_FOUND = 127;
/** How much longer than it gives D-Bus the program gets. */
const SPARE_SECONDS = 0.5;

/**
 * Runs `busctl`, which comes with systemd; it speaks to the system bus as this process's user, and asks nobody for a password. Never
 * rejects. It goes on when the whole service gets SIGTERM, as it does when the power-off begins that it has just asked for.
 */
export function busctl(parameters: readonly string[], timeoutSeconds: number, environment: NodeJS.ProcessEnv): Promise<Answer> {
  const options = ['--system', '--json=short', '--allow-interactive-authorization=no', `--timeout=${timeoutSeconds}`];
  const shell = ['-c', 'trap "" TERM; exec busctl "$@"', 'busctl', ...options, ...parameters];
  const limits = { timeout: (timeoutSeconds + SPARE_SECONDS) * 1000, killSignal: 'SIGKILL', maxBuffer: MAX_ANSWER_BYTES } as const;
  const answer = new Promise<Answer>((resolve) => {
    execFile('/bin/sh', shell, { ...limits, env: environment, cwd: '/' }, (error, stdout, stderr) => {
      if (!error) resolve({ ok: true, text: stdout });
      else if (error.code === NOT_FOUND) resolve({ ok: false, problem: 'busctl is not installed' });
      else if (error.killed === true) resolve({ ok: false, problem: `no answer within ${timeoutSeconds} s` });
      else resolve({ ok: false, problem: stderr.trim().split('\n').at(-1) || error.message });
    });
  });
  return answer.catch((error: Error) => ({ ok: false, problem: error.message })); // No process could be made.
}
