/**
 * The receiving end of sd_notify(3), as systemd has it. Node has no sockets of this kind: notify-socket-program.ts, a process of its own,
 * receives the datagrams and prints them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Teardown, temporaryFolder } from '../folder.ts';
import { until } from '../wait.ts';

export interface Notification {
  /** The process that sent it, as the kernel vouches for it. */
  readonly pid: number;
  /** Assignments by their names. */
  readonly state: Readonly<Record<string, string>>;
}

export class NotifySocket {
  readonly path: string;
  /** In the order in which they were received. */
  readonly all: Notification[] = [];
  readonly #child: ChildProcess;

  private constructor(path: string, child: ChildProcess) {
    this.path = path;
    this.#child = child;
  }

  /** A socket in a folder of its own, or one with an abstract name, `@…`; closed at the end of the test. */
  static async listen(t: Teardown, path = join(temporaryFolder(t), 'notify')): Promise<NotifySocket> {
    const program = join(import.meta.dirname, 'notify-socket-program.ts');
    const child = spawn(process.execPath, ['--experimental-ffi', '--disable-warning=ExperimentalWarning', program, path], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: undefined },
    });
    const listener = new NotifySocket(path, child);
    t.teardown(() => listener.close());
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    await once(lines, 'line');
    lines.on('line', (line) => {
      const { pid, state } = JSON.parse(line) as { pid: number; state: string };
      const pairs = state
        .split('\n')
        .filter((text) => text !== '')
        .map((text): [string, string] => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]);
      listener.all.push({ pid, state: Object.fromEntries(pairs) });
    });
    return listener;
  }

  /** The notifications that have this assignment. */
  having(name: string): Notification[] {
    return this.all.filter(({ state }) => state[name] !== undefined);
  }

  /** Resolves with the first notification that satisfies, of those from `from` on. */
  waitFor(satisfied: (notification: Notification) => boolean, from = 0): Promise<Notification> {
    const describe = (): unknown => this.all;
    return until(`a notification satisfies ${satisfied}`, () => this.all.slice(from).find(satisfied), { describe });
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }
}
