import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Host } from '../../../../testkit/network/network.ts';
import { ROOT } from '../../../../testkit/service/service.ts';

/** testkit/network/raw-datagrams.py in a host. */
export class RawProgram {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(host: Host, ...args: readonly string[]) {
    this.#child = host.spawn('python3', [join(ROOT, 'testkit/network/raw-datagrams.py'), ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    const { stdout } = this.#child;
    if (!stdout) throw new Error('no standard output');
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  write(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Its next line. */
  async read(): Promise<string> {
    const { value } = await this.#lines.next();
    return value as string;
  }

  end(): void {
    this.#child.stdin?.end();
  }
}
