import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { SNAPSHOT_HEADER } from '../../src/core/snapshot.ts';
import { addNamespace, removeNamespace } from '../network/namespaces.ts';
import { Host } from '../network/network.ts';
import { type Finished, finish } from './finish.ts';
import { rootFilesystem, type Suite } from './images.ts';
import { Supervision } from './supervision.ts';

const RELAY = join(import.meta.dirname, 'relay.ts');
/** On a disk and not in memory, because tests examine the writes of the service. */
const FOLDERS = '/var/tmp';
/** Timeouts only limit a broken test. */
const BOOT_SECONDS = 300;
const TIMEOUT_SECONDS = 120;
const REQUEST_MS = 30_000;
const POLL_MS = 50;
/** systemd-nspawn's exit status when the container has shut itself down. */
const POWERED_OFF = 0;

export interface BootOptions {
  readonly suite: Suite;
  /** A .deb that is installed before the boot. */
  readonly installed?: string;
  /** A separate disk mounted on a folder: it can be filled, and `cutPower` loses its unwritten data. */
  readonly disk?: { readonly path: string; readonly megabytes: number };
  /** Files created before the boot: text by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** A host of a test network whose interfaces the container uses; by default only loopback, with multicast. */
  readonly host?: Host;
}

export interface RunOptions {
  /** Root by default. */
  readonly user?: string;
  /** The program is killed after this time; 120 by default. */
  readonly timeoutSeconds?: number;
  readonly input?: string | Buffer;
  readonly environment?: Readonly<Record<string, string>>;
}

/** How a container ended: power-off (or halt) by itself, or killed. */
export type Ending = 'powered off' | 'killed';

const pause = (ms: number): Promise<void> => new Promise((later) => setTimeout(later, ms));

/** A disposable machine: Debian with a real systemd as PID 1, in separate namespaces and control groups. */
export class Container {
  readonly suite: Suite;
  /** Its network, in which programs of this machine, such as DDS peers, can run too. */
  readonly host: Host;
  readonly #supervision: Supervision;
  readonly #ownsHost: boolean;
  readonly #relays = new Map<number, { readonly url: string; readonly process: ChildProcess }>();

  private constructor(suite: Suite, host: Host, ownsHost: boolean, supervision: Supervision) {
    this.suite = suite;
    this.host = host;
    this.#ownsHost = ownsHost;
    this.#supervision = supervision;
  }

  /** Boots a container; it is removed when the test ends, even after a crash of the test process. */
  static async boot(t: Pick<Test, 'teardown'>, options: BootOptions): Promise<Container> {
    const lower = await rootFilesystem(options.suite, options.installed ?? null);
    const host = options.host ?? new Host(addNamespace('appliance'));
    const folder = mkdtempSync(join(FOLDERS, 'edge-health-test-'));
    const supervision = await Supervision.start({ folder, lower, network: host.name, disk: options.disk ?? null });
    const container = new Container(options.suite, host, options.host === undefined, supervision);
    t.teardown(() => container.stop());
    for (const [path, text] of Object.entries(options.files ?? {})) await container.write(path, text);
    await container.bootAgain();
    return container;
  }

  /** Boots the container again on its file system and waits until systemd has started all units. */
  async bootAgain(): Promise<void> {
    const { starts } = this;
    this.#supervision.send('boot');
    await this.waitForBoot(starts);
  }

  /** Waits until the container has been started more than `starts` times and systemd has started all units. */
  async waitForBoot(starts: number): Promise<void> {
    await this.until(
      async () => {
        if (this.#supervision.endStatus !== null && this.starts > starts)
          throw new Error(`the container ended while booting:\n${this.console}`);
        if (this.starts <= starts || this.pid1 === null) return false;
        const { code, stdout } = await this.run(['systemctl', 'is-system-running', '--wait']);
        return stdout.trim() === 'running' || (stdout.trim() === 'degraded' && code === 1);
      },
      BOOT_SECONDS,
      () => `the container has not booted:\n${this.console}`,
    );
  }

  /** Number of starts, reboots included. */
  get starts(): number {
    return this.#supervision.starts;
  }

  get isUp(): boolean {
    return this.#supervision.isUp;
  }

  /** Output of systemd on the console, for messages of failed tests. */
  get console(): string {
    try {
      return readFileSync(join(this.folder, 'console'), 'utf8');
    } catch {
      return '';
    }
  }

  /** PID of the container's process 1 on this machine; null while it is off. */
  get pid1(): number | null {
    return this.#supervision.pid1;
  }

  /** Folder in which the container's file system is mounted, in a separate mount namespace. */
  get folder(): string {
    return this.#supervision.folder;
  }

  /** Runs a program in the container to its end; while the container is off, with chroot on its file system. */
  run(argv: readonly string[], options: RunOptions = {}): Promise<Finished> {
    const [program, ...args] = this.command(argv, options);
    return finish(program as string, args, options.input, options.timeoutSeconds ?? TIMEOUT_SECONDS);
  }

  /** Runs a shell script in the container; returns its standard output without the last line break. Throws if it fails. */
  async sh(script: string, options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(['sh', '-euc', script], options);
    if (code !== 0) throw new Error(`${script}: exited with ${code}\n${stderr}${stdout}`);
    return stdout.trimEnd();
  }

  /** Program and arguments for `spawn` that run a program in the container. */
  command(argv: readonly string[], { user, environment = {} }: RunOptions = {}): string[] {
    const variables = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', SYSTEMD_PAGER: '', SYSTEMD_COLORS: '0', ...environment };
    const env = ['env', '-i', ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)];
    // Avoids PAM, which would open a session. Uses the primary and supplementary groups of the user.
    const as = user === undefined ? [] : ['chroot', `--userspec=${user}:`, '/'];
    const pid = this.pid1;
    const enter =
      pid === null
        ? ['nsenter', '--target', String(this.#supervision.pid), '--mount', 'chroot', join(this.folder, 'root')]
        : ['nsenter', '--target', String(pid), '--all', '--'];
    return [...enter, ...env, ...as, ...argv];
  }

  /** Runs `systemctl` with these arguments; returns its standard output. Throws if it fails. */
  async systemctl(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(['systemctl', ...args]);
    if (code !== 0) throw new Error(`systemctl ${args.join(' ')}: exited with ${code}\n${stderr}${stdout}`);
    return stdout.trimEnd();
  }

  /** A property of a unit from `systemctl show`. */
  show(unit: string, property: string): Promise<string> {
    return this.systemctl('show', '--value', '--property', property, unit);
  }

  /** Journal messages of a unit, and of systemd about it, from every boot; one per line. */
  async journal(unit: string, ...args: string[]): Promise<string> {
    return (await this.run(['journalctl', '--no-pager', '--quiet', '--output=cat', '--unit', unit, ...args])).stdout;
  }

  async read(path: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(['cat', path]);
    if (code !== 0) throw new Error(stderr);
    return stdout;
  }

  async write(path: string, content: string | Buffer, mode = '644'): Promise<void> {
    await this.sh(`mkdir -p "$(dirname '${path}')"; cat > '${path}'; chmod ${mode} '${path}'`, { input: content });
  }

  /** Copies a file of this machine into the container. */
  copyIn(file: string, path: string): Promise<void> {
    return this.write(path, readFileSync(file));
  }

  /** Copies a folder of the container to this machine, while the container is running or off. */
  async copyOut(path: string, folder: string): Promise<void> {
    const [program, ...args] = this.command(['tar', '-C', path, '-c', '.']);
    const reader = spawn(program as string, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const writer = spawn('tar', ['-C', folder, '-x'], { stdio: ['pipe', 'inherit', 'inherit'] });
    reader.stdout.pipe(writer.stdin);
    const [[read], [written]] = await Promise.all([once(reader, 'close'), once(writer, 'close')]);
    if (read !== 0 || written !== 0) throw new Error(`${path} could not be copied: ${read}, ${written}`);
  }

  /** URL on this machine, http://127.0.0.1:<port>, that is relayed to a port of the container's loopback. Stays valid across reboots. */
  async url(port = 5000): Promise<string> {
    const known = this.#relays.get(port);
    if (known) return known.url;
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port to relay from');
    const [program, args] = this.host.command(process.execPath, [RELAY, String(port)]);
    const relay = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    relay.send('server', server);
    await once(relay, 'message');
    server.close();
    const url = `http://127.0.0.1:${address.port}`;
    this.#relays.set(port, { url, process: relay });
    return url;
  }

  /** Sends a GET request to the service in the container. Rejects if there is no response. */
  async http(path: string, port = 5000, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch((await this.url(port)) + path, { headers, signal: AbortSignal.timeout(REQUEST_MS) });
  }

  /** Requests a copy of the database. */
  snapshot(): Promise<Response> {
    return this.http('/snapshot', 5000, { [SNAPSHOT_HEADER]: '1' });
  }

  async json<T = Record<string, unknown>>(path: string): Promise<T> {
    return (await (await this.http(path)).json()) as T;
  }

  /** Polls until the response satisfies the condition, even while there is no response. Throws with the last response after the timeout. */
  async untilJson<T>(path: string, satisfied: (body: T) => boolean, seconds = TIMEOUT_SECONDS): Promise<T> {
    let last: T | undefined;
    await this.until(
      async () => {
        last = undefined;
        last = await this.json<T>(path).catch(() => undefined);
        return last !== undefined && satisfied(last);
      },
      seconds,
      () => `${path} is ${JSON.stringify(last)?.slice(0, 2000)}`,
    );
    return last as T;
  }

  /** Waits until the condition holds; throws with the description after the timeout. */
  async until(
    holds: () => boolean | Promise<boolean>,
    seconds: number,
    describe: () => string = () => 'the condition does not hold',
  ): Promise<void> {
    const deadline = performance.now() + seconds * 1000;
    while (!(await holds())) {
      if (performance.now() > deadline) throw new Error(`after ${seconds} s ${describe()}`);
      if (this.#supervision.hasEnded) throw new Error('the container has been removed');
      await pause(POLL_MS);
    }
  }

  /** Runs `systemctl reboot` and waits until the container has booted again. */
  async reboot(): Promise<void> {
    const { starts } = this;
    await this.run(['systemctl', '--no-block', 'reboot']);
    await this.waitForBoot(starts);
  }

  /** Waits for the container to end; null after the timeout. A reboot does not count as an end. */
  async waitForEnd(seconds: number): Promise<Ending | null> {
    try {
      await this.until(() => this.#supervision.endStatus !== null, seconds);
    } catch {
      return null;
    }
    return this.#supervision.endStatus === POWERED_OFF ? 'powered off' : 'killed';
  }

  /** Kills all processes of the container at once; data that was not yet written to its disk (see `disk`) is lost. */
  async cutPower(): Promise<void> {
    const { cuts } = this.#supervision;
    this.#supervision.send('cut');
    await this.until(() => this.#supervision.cuts > cuts, TIMEOUT_SECONDS);
  }

  /** Removes the container: processes, mounts, control groups, network, folder. */
  async stop(): Promise<void> {
    for (const { process: relay } of this.#relays.values()) if (relay.connected) relay.disconnect();
    this.#relays.clear();
    await this.#supervision.stop();
    if (this.#ownsHost) removeNamespace(this.host.name);
  }
}
