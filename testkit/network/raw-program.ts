import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Host } from './network.ts';

/** testkit/network/raw-datagrams.py in a host. */
export class RawProgram {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(host: Host, ...args: readonly string[]) {
    this.#child = host.spawn('python3', [join(import.meta.dirname, 'raw-datagrams.py'), ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    const { stdout } = this.#child;
    if (!stdout) throw new Error('no standard output');
    // The network may be disposed of first.
    this.#child.stdin?.on('error', () => undefined);
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  /** Octets that it has not read yet. */
  get pendingOctets(): number {
    return this.#child.stdin?.writableLength ?? 0;
  }

  write(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Its next line; undefined: it has ended. */
  async read(): Promise<string | undefined> {
    return (await this.#lines.next()).value;
  }

  end(): void {
    this.#child.stdin?.end();
  }
}
