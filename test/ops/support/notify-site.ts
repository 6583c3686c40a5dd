/** A real service with notifications beside it, for the tests of notifications. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import type { Message, MessageAlert } from '../../../ops/notify/message.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import type { Receiver } from '../../../testkit/ops/http-receiver.ts';
import { SteadyAddress } from '../../../testkit/ops/steady-address.ts';
import { ROOT, RunningService } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

/** Not the processor: on a busy machine its alerts occur by themselves. */
export type Metric = 'memory' | 'disk';
export const METRICS: readonly Metric[] = ['memory', 'disk'];
export interface AlertList {
  data: { metric: string; resolved: boolean }[];
}

/** A real service whose alerts a test raises and resolves, and notifications beside it that can be killed. */
export class Site {
  readonly #folder: string;
  /** Configuration of the service in addition to host and port. */
  readonly #rest: object;
  readonly #open = new Set<Metric>();
  readonly #address: SteadyAddress;
  readonly hook: Receiver;
  readonly #file: string;
  readonly #notifications: string;
  service!: RunningService;
  #process: ChildProcess | null = null;
  log = '';

  private constructor(t: Test, folder: string, hook: Receiver, rest: object, address: SteadyAddress) {
    this.#folder = folder;
    this.#address = address;
    this.hook = hook;
    this.#rest = rest;
    this.#file = join(folder, 'live.yaml');
    this.#notifications = join(folder, 'notify.yaml');
    writeFileSync(this.#notifications, stringify({ ops: { notify: { group_seconds: 0, webhook: { url: hook.url } } } }));
    this.#write();
    mkdirSync(join(folder, 'ops-data'));
    t.teardown(async () => {
      this.#process?.kill('SIGKILL');
      await this.service.end();
    });
  }

  static async start(t: Test, hook: Receiver, open: Metric[] = [], rest: object = {}): Promise<Site> {
    const site = new Site(t, temporaryFolder(t), hook, rest, await SteadyAddress.open(t));
    for (const metric of open) site.#open.add(metric);
    site.#write();
    await site.startService();
    return site;
  }

  async startService(): Promise<void> {
    this.#write();
    // The last --config wins.
    this.service = await RunningService.start(this.#folder, { arguments: ['--config', this.#file] });
    this.#address.forwardTo(this.service.url);
  }

  /** Raises or resolves the alert of a metric by its threshold, and waits until the service reports that. */
  async set(metric: Metric, isOpen: boolean): Promise<void> {
    if (isOpen) this.#open.add(metric);
    else this.#open.delete(metric);
    this.#write(Number(new URL(this.service.url).port));
    this.service.process.kill('SIGHUP');
    const name = `${metric}_percent`;
    await this.service.until<AlertList>(`/alerts?metric=${name}`, ({ data }) => data[0]?.resolved === !isOpen, 120);
  }

  startNotifying(url = this.#address.url): ChildProcess {
    const program = join(import.meta.dirname, 'notifier-process.ts');
    const child = spawn(
      join(ROOT, 'node_modules/node/bin/node'),
      ['--disable-warning=ExperimentalWarning', program, this.#notifications, join(this.#folder, 'ops-data'), url],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.log += text;
    });
    this.#process = child;
    return child;
  }

  /** Starts notifications that reach the service through a proxy; the returned function returns how often open alerts were requested. */
  async startNotifyingThroughProxy(t: Test): Promise<() => number> {
    let lists = 0;
    const proxy = createServer((request, response) => {
      const forwarded = get(`${this.service.url}${request.url}`, { headers: request.headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
        if (request.url?.startsWith('/alerts?resolved=false')) answer.once('end', () => (lists += 1));
      });
      forwarded.on('error', () => response.destroy());
      response.on('close', () => forwarded.destroy());
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    t.teardown(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    this.startNotifying(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    return () => lists;
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  /** The lines of all notifications, each once, in the order in which they were created. */
  get lines(): MessageAlert[] {
    const byId = new Map(this.hook.messages<Message>().map((message) => [message.id, message]));
    const inOrder = [...byId.values()].sort((a, b) => Number(a.id.split('-').at(-1)) - Number(b.id.split('-').at(-1)));
    return inOrder.flatMap(({ alerts }) => alerts).filter(({ metric }) => METRICS.some((name) => metric === `${name}_percent`));
  }

  get notified(): string[] {
    return this.lines.map(({ metric, state }) => `${state} ${metric}`);
  }

  /** Waits until the notifier has a cursor: every later change is notified. */
  async untilCursor(): Promise<void> {
    await until('the notifier has a cursor', () => this.#state.includes('"cursor":"'), {
      describe: () => this.log,
    });
  }

  /** Waits until nothing is pending in the state on the disk: a kill after that repeats no notification. */
  async untilDelivered(): Promise<void> {
    await until('every notification is recorded as delivered', () => this.#state.includes('"webhook":{"pending":[]'), {
      describe: () => this.log,
    });
  }

  get #state(): string {
    const file = join(this.#folder, 'ops-data/ops/notifications.ndjson');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  async untilNotified(count: number): Promise<void> {
    await until(`${count} notifications came`, () => this.notified.length >= count, {
      describe: () => `${JSON.stringify(this.notified)}\n${this.log}\n${this.service.log}`,
    });
  }

  #write(port = 0): void {
    const threshold = (metric: Metric) => (this.#open.has(metric) ? { warning: 0, critical: 0.01 } : { warning: 99.8, critical: 99.9 });
    const thresholds = { cpu: { warning: 99.9, critical: 100 }, memory: threshold('memory'), disk: threshold('disk') };
    const alerts = { raise_after_seconds: 0, clear_after_seconds: 0 };
    const rest = { ...this.#rest, host: '127.0.0.1', port };
    writeFileSync(
      this.#file,
      stringify({
        rest,
        storage: { path: join(this.#folder, 'data') },
        ros: { transport: 'off' },
        thresholds,
        alerts,
        publish_frequency: 5,
      }),
    );
  }
}
