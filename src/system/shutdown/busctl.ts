import { execFile } from 'node:child_process';

/** The standard output of a program, or why it failed. */
export type Answer = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string };

const MAX_ANSWER_BYTES = 1 << 20;
const NOT_FOUND = 127;
/** Time that the program gets in addition to the timeout of its D-Bus call. */
const SPARE_SECONDS = 0.5;

/**
 * Runs `busctl`, a part of systemd, as this process's user and without prompting for a password. Never rejects. It ignores SIGTERM, because
 * the power-off that it requests sends SIGTERM to all processes of the service.
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
  return answer.catch((error: Error) => ({ ok: false, problem: error.message })); // The process could not be started.
}
