import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { isAbsolute } from 'node:path';
import { printable } from '../../../src/core/text.ts';
import type { Message } from '../message.ts';
import { type Channel, type Result, withTimeout } from './channel.ts';

const TIMEOUT_SECONDS = 60;
const MAX_OUTPUT_CHARACTERS = 4000;

/** Why a program did not start, by error code. */
const NOT_STARTED: Readonly<Record<string, string>> = {
  EACCES: 'not executable: chmod +x, and make it readable for the user of the scheduler',
  ENOENT: 'no such program: correct ops.notify.command',
};

/** Runs a program with the message on its standard input. */
export function commandChannel(file: string, environment: NodeJS.ProcessEnv, timeoutSeconds = TIMEOUT_SECONDS): Channel {
  return {
    name: 'command',
    target: file,
    send: (message, signal) =>
      withTimeout(signal, timeoutSeconds, async (limited) => {
        if (!isAbsolute(file))
          return { kind: 'retry', detail: 'ops.notify.command must be an absolute path to a program, without parameters' };
        const result = await runWith(message, file, environment, limited);
        if (!limited.aborted || result.kind === 'delivered') return result;
        const detail = signal.aborted ? 'ended with the scheduler' : `did not end within ${timeoutSeconds} s and was killed`;
        return { kind: 'retry', detail };
      }),
  };
}

/** zx is not used: its shell would assume a remote login and read ~/.bashrc, because the input is a socket. */
async function runWith(message: Message, file: string, environment: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Result> {
  const { dashboard, host, id, kind, status, summary } = message;
  try {
    // The child has no streams if no file descriptor is free.
    const child: ChildProcess = spawn(file, {
      cwd: '/',
      detached: true, // A separate process group, so that its children are killed with it.
      env: {
        ...environment,
        EDGE_HEALTH_ID: id,
        EDGE_HEALTH_KIND: kind,
        EDGE_HEALTH_HOST: host,
        EDGE_HEALTH_STATUS: status,
        EDGE_HEALTH_SUMMARY: summary,
        EDGE_HEALTH_DASHBOARD: dashboard,
      },
    });
    const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
    signal.addEventListener('abort', () => killGroup(child.pid), { once: true });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output = `${output}${text}`.slice(-MAX_OUTPUT_CHARACTERS);
      });
    }
    // A program may exit without reading its input.
    child.stdin?.on('error', () => undefined).end(`${JSON.stringify(message)}\n`);
    const [exitCode, by] = await closed;
    if (exitCode === 0) return { kind: 'delivered', detail: 'exit status 0' };
    const lastLine = printable(output.trim().split('\n').at(-1) ?? '', 200);
    const ended = by ? `ended by ${by}` : `exit status ${exitCode}`;
    return { kind: 'retry', detail: `${ended}${lastLine === '' ? '' : `; last line of output: ${lastLine}`}` };
  } catch (error) {
    const { code = '', message: reason } = error as NodeJS.ErrnoException;
    return { kind: 'retry', detail: NOT_STARTED[code] ?? `cannot be started: ${reason}` };
  }
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has already exited.
  }
}
