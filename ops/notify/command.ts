import { isAbsolute } from 'node:path';
import { printable } from '../../src/core/text.ts';
import type { Message } from './message.ts';
import { type Sender, withTimeout } from './sender.ts';

const TIMEOUT_SECONDS = 60;
const MAX_OUTPUT_CHARACTERS = 4000;

/** Exit statuses of the shell that starts the program. */
const NOT_STARTED: Readonly<Record<number, string>> = {
  126: 'not executable: chmod +x, and make it readable for the user of the scheduler',
  127: 'no such program: correct ops.notify.command',
};

/** Keeps the end of a program's output, which is unbounded. */
class Tail extends Array<string | Buffer> {
  override push(...chunks: (string | Buffer)[]): number {
    const text = `${this[0] ?? ''}${chunks.map(String).join('')}`.slice(-MAX_OUTPUT_CHARACTERS);
    this.length = 0;
    return super.push(text);
  }
}

function environmentOf({ dashboard, host, id, kind, status, summary }: Message): Readonly<Record<string, string>> {
  return {
    EDGE_HEALTH_ID: id,
    EDGE_HEALTH_KIND: kind,
    EDGE_HEALTH_HOST: host,
    EDGE_HEALTH_STATUS: status,
    EDGE_HEALTH_SUMMARY: summary,
    EDGE_HEALTH_DASHBOARD: dashboard,
  };
}

/** Runs a program with the message on its standard input. */
export function commandSender(file: string, environment: NodeJS.ProcessEnv, timeoutSeconds = TIMEOUT_SECONDS): Sender {
  return {
    name: 'command',
    target: file,
    send: (message, signal) =>
      withTimeout(signal, timeoutSeconds, async (limited) => {
        if (!isAbsolute(file))
          return { kind: 'retry', detail: 'ops.notify.command must be an absolute path to a program, without parameters' };
        try {
          const { $ } = await import('zx/core');
          const output = new Tail();
          const run = $({
            cwd: '/',
            detached: true, // A process group of its own, so that its children are killed with it.
            env: { ...environment, ...environmentOf(message) },
            input: `${JSON.stringify(message)}\n`,
            nothrow: true,
            quiet: true,
            stdio: ['pipe', 'pipe', 'pipe'],
            store: { stdout: new Tail(), stderr: new Tail(), stdall: output },
          })`exec ${file}`;
          // A program need not read its input.
          run.child?.stdin?.on('error', () => undefined);
          const kill = (): void => killGroup(run.child?.pid);
          if (limited.aborted) kill();
          else limited.addEventListener('abort', kill, { once: true });
          const { exitCode, signal: by } = await run;
          if (limited.aborted) {
            return {
              kind: 'retry',
              detail: signal.aborted ? 'ended with the scheduler' : `did not end within ${timeoutSeconds} s and was killed`,
            };
          }
          if (exitCode === 0) return { kind: 'delivered', detail: 'exit status 0' };
          const lastLine = printable(output.join('').trim().split('\n').at(-1) ?? '', 200);
          const status = by ? `ended by ${by}` : `exit status ${exitCode}`;
          const remedy = exitCode === null ? undefined : NOT_STARTED[exitCode];
          return {
            kind: 'retry',
            detail: `${status}${remedy ? `, ${remedy}` : ''}${lastLine === '' ? '' : `; last line of output: ${lastLine}`}`,
          };
        } catch (error) {
          return { kind: 'retry', detail: `cannot be started: ${(error as Error).message}` };
        }
      }),
  };
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has exited.
  }
}
