/**
 * Calls the safe shutdown as a user of a test host: a client of the embedded transport in a process of that user. Needs root.
 */
import type { ChildProcess } from 'node:child_process';
import { chmodSync, copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { ShutdownCall, ShutdownReply } from '../../src/core/shutdown/shutdown.ts';
import { type Teardown, temporaryFolder } from '../folder.ts';
import type { Host } from '../network/network.ts';
import { EventProcess } from '../service/event-process.ts';

interface ClientEvents {
  /** `writer`: the guid of its request writer. */
  started: { readonly writer: string };
  /** `ms`: time from the request to the reply. */
  reply: { readonly data: ShutdownReply; readonly ms: number };
}

/** Copies of the program and of Node that every user can run, independent of the permissions of the checkout. */
export async function sharedProgram(t: Teardown): Promise<readonly [node: string, program: string]> {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const [node, program] = [join(folder, 'node'), join(folder, 'client.mjs')] as const;
  copyFileSync(process.execPath, node);
  const source = join(import.meta.dirname, 'shutdown-client-program.ts');
  await build({ entryPoints: [source], outfile: program, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  return [node, program];
}

export class ShutdownClient extends EventProcess<ClientEvents> {
  readonly writer: string;
  #replies = 0;

  private constructor(process: ChildProcess, title: string) {
    super(process, title, 120);
    this.writer = '';
  }

  /** Resolves when it has joined the graph. `server`: the address of the host that offers the service, if it is not `host`. */
  static async start(
    host: Host,
    uid: number,
    [node, program]: readonly [string, string],
    service = '/safe_shutdown',
    server?: string,
  ): Promise<ShutdownClient> {
    const as = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
    const child = host.spawn('setpriv', [...as, node, '--no-warnings', program, service, ...(server ? [server] : [])], {
      cwd: '/',
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const client = new ShutdownClient(child, `shutdown client of user ${uid}`);
    const { writer } = await client.waitFor('started');
    return Object.assign(client, { writer });
  }

  /** Resolves with the reply and its round trip time in milliseconds. */
  async call(request: Partial<ShutdownCall> = {}): Promise<ShutdownReply & { readonly ms: number }> {
    this.process.stdin?.write(`${JSON.stringify({ reason: 'EMERGENCY', requested_by: 'test', timeout: 5, ...request })}\n`);
    this.#replies += 1;
    const replies = await this.waitForCount('reply', this.#replies);
    const { data, ms } = replies[this.#replies - 1] as (typeof replies)[number];
    return { ...data, ms };
  }

  async end(): Promise<void> {
    this.process.stdin?.end();
    await this.ended;
  }
}
