import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Prints each datagram with the process that sent it, as the kernel vouches for it, as a line of JSON. Ends with its parent. */
const LISTENER = `
import ctypes, json, socket, struct, sys
ctypes.CDLL(None).prctl(1, 15)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(sys.argv[1].replace('@', chr(0)) if sys.argv[1][0] == '@' else sys.argv[1])
print('{}', flush=True)
while True:
    data, extra, _, _ = s.recvmsg(65536, 64)
    pid = struct.unpack('3i', extra[0][2])[0]
    print(json.dumps({'pid': pid, 'state': data.decode()}), flush=True)
`;

export interface Notification {
  readonly pid: number;
  readonly atMs: number;
  /** Assignments by their names. */
  readonly state: Readonly<Record<string, string>>;
}

/** The receiving end of sd_notify(3), as systemd has it. Node has no sockets of this kind. */
export class NotifySocket {
  readonly path: string;
  readonly all: Notification[] = [];
  readonly #child: ChildProcess;

  private constructor(path: string, child: ChildProcess) {
    this.path = path;
    this.#child = child;
  }

  static async listen(folder: string, path = join(folder, `notify-${Math.random().toString(36).slice(2)}`)): Promise<NotifySocket> {
    const child = spawn('python3', ['-c', LISTENER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    const listener = new NotifySocket(path, child);
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    await once(lines, 'line');
    lines.on('line', (line) => {
      const { pid, state } = JSON.parse(line) as { pid: number; state: string };
      const pairs = state
        .split('\n')
        .filter((text) => text !== '')
        .map((text): [string, string] => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]);
      listener.all.push({ pid, atMs: Date.now(), state: Object.fromEntries(pairs) });
    });
    return listener;
  }

  /** The notifications that have this assignment. */
  having(name: string): Notification[] {
    return this.all.filter(({ state }) => state[name] !== undefined);
  }

  /** Resolves with the first notification that satisfies; throws with all that came otherwise. */
  async waitFor(satisfied: (notification: Notification) => boolean, seconds = 20): Promise<Notification> {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
      const found = this.all.find(satisfied);
      if (found) return found;
      if (Date.now() > deadline) throw new Error(`not notified; there came: ${JSON.stringify(this.all)}`);
      await new Promise((later) => setTimeout(later, 20));
    }
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }
}
