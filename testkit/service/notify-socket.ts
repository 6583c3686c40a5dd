/**
 * The receiving end of sd_notify(3), as in systemd. Node has no Unix datagram sockets, so notify-socket-program.ts, a separate process,
 * receives the datagrams and prints them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Teardown, temporaryFolder } from '../folder.ts';
import { until } from '../wait.ts';

export interface Notification {
  /** PID of the sender, from SCM_CREDENTIALS. */
  readonly pid: number;
  /** Assignments by name. */
  readonly state: Readonly<Record<string, string>>;
}

export class NotifySocket {
  readonly path: string;
  /** Notifications in the order in which they were received. */
  readonly all: Notification[] = [];
  readonly #child: ChildProcess;

  private constructor(path: string, child: ChildProcess) {
    this.path = path;
    this.#child = child;
  }

  /** Opens a socket in a temporary folder, or one with an abstract name, `@…`; it is closed at the end of the test. */
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

  /** The notifications with this assignment. */
  having(name: string): Notification[] {
    return this.all.filter(({ state }) => state[name] !== undefined);
  }

  /** Resolves with the first matching notification from index `from` on. */
  waitFor(satisfied: (notification: Notification) => boolean, from = 0): Promise<Notification> {
    const describe = (): unknown => this.all;
    return until(`a notification satisfies ${satisfied}`, () => this.all.slice(from).find(satisfied), { describe });
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }
}
