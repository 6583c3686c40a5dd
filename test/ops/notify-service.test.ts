import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import type { Message, MessageAlert } from '../../ops/notify/message.ts';
import { ROOT, RunningService, temporaryFolder } from '../../testkit/service.ts';
import { accept, Receiver, until } from './support/receiver.ts';

/** Not the processor: on a busy machine its alerts come by themselves. */
type Metric = 'memory' | 'disk';
const METRICS: readonly Metric[] = ['memory', 'disk'];
interface AlertList {
  data: { metric: string; resolved: boolean }[];
}

/** A real service whose alerts a test raises and resolves, and notifications beside it that can be killed. */
class Site {
  readonly #folder: string;
  readonly #open = new Set<Metric>();
  readonly hook: Receiver;
  readonly #file: string;
  readonly #notifications: string;
  service!: RunningService;
  #process: ChildProcess | null = null;
  log = '';

  constructor(t: Test, folder: string, hook: Receiver) {
    this.#folder = folder;
    this.hook = hook;
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

  static async start(t: Test, hook: Receiver, open: Metric[] = []): Promise<Site> {
    const { path, remove } = temporaryFolder();
    t.teardown(remove);
    const site = new Site(t, path, hook);
    for (const metric of open) site.#open.add(metric);
    site.#write();
    await site.startService();
    return site;
  }

  async startService(port = 0): Promise<void> {
    this.#write(port);
    // The last --config wins.
    this.service = await RunningService.start(this.#folder, { arguments: ['--config', this.#file] });
  }

  /** Raises or resolves the alert of a metric by its threshold, and waits until the service says so. */
  async set(metric: Metric, isOpen: boolean): Promise<void> {
    if (isOpen) this.#open.add(metric);
    else this.#open.delete(metric);
    this.#write(this.port);
    this.service.process.kill('SIGHUP');
    const name = `${metric}_percent`;
    await this.service.until<AlertList>(`/alerts?metric=${name}`, ({ data }) => data[0] !== undefined && data[0].resolved === !isOpen);
  }

  get port(): number {
    return Number(new URL(this.service.url).port);
  }

  startNotifying(url = this.service.url): ChildProcess {
    const program = join(import.meta.dirname, 'support/notifier-process.ts');
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

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  /** Lines of what was told, each notification once, in the order in which they were made. */
  get lines(): MessageAlert[] {
    const byId = new Map(this.hook.messages<Message>().map((message) => [message.id, message]));
    const inOrder = [...byId.values()].sort((a, b) => Number(a.id.split('-').at(-1)) - Number(b.id.split('-').at(-1)));
    return inOrder.flatMap(({ alerts }) => alerts).filter(({ metric }) => METRICS.some((name) => metric === `${name}_percent`));
  }

  get told(): string[] {
    return this.lines.map(({ metric, state }) => `${state} ${metric}`);
  }

  /** Until it knows its place in the order of events: what changes from here on is told. */
  async untilPlaced(): Promise<void> {
    const journal = join(this.#folder, 'ops-data/ops/notifications.ndjson');
    await until(
      () => existsSync(journal) && /"place":"/.test(readFileSync(journal, 'utf8')),
      () => this.log,
    );
  }

  async untilTold(count: number): Promise<void> {
    await until(
      () => this.told.length >= count,
      () => `${JSON.stringify(this.told)}\n${this.log}\n${this.service.log}`,
    );
  }

  #write(port = 0): void {
    const threshold = (metric: Metric) => (this.#open.has(metric) ? { warning: 0, critical: 100 } : { warning: 99.8, critical: 99.9 });
    const thresholds = { cpu: { warning: 99.9, critical: 100 }, memory: threshold('memory'), disk: threshold('disk') };
    const alerts = { raise_after_seconds: 0, clear_after_seconds: 0 };
    const rest = { host: '127.0.0.1', port };
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

t.test('alerts of a real service are told once, whoever was away meanwhile', async (t) => {
  const hook = await Receiver.start();
  t.teardown(() => hook.stop());
  const site = await Site.start(t, hook, ['disk']);
  await site.service.until<AlertList>('/alerts?metric=disk_percent', ({ data }) => data.length === 1);
  site.startNotifying();
  await site.untilTold(1);
  t.same(site.told, ['raised disk_percent'], 'what is open at the first start is told');
  t.match(site.lines[0], { severity: 'WARNING', threshold: 0, unit: '%', node: 'health_monitor' });

  await site.set('memory', true);
  await site.untilTold(2);
  await site.kill('SIGTERM');
  await site.set('disk', false);
  await site.set('memory', false);
  await site.set('memory', true);
  site.startNotifying();
  await site.untilTold(4);
  t.same(site.told.slice(2).sort(), ['changed memory_percent', 'resolved disk_percent'], 'what happened while notifications were away');

  const { port } = site;
  await site.service.end('SIGKILL');
  await site.startService(port);
  await site.set('memory', false);
  await site.untilTold(5);
  t.equal(site.told[4], 'resolved memory_percent', 'the service was killed and came back');
  await new Promise((later) => setTimeout(later, 2500)); // Longer than it takes until what is open is compared.
  t.equal(site.told.length, 5, 'nothing is told twice');
  t.equal(hook.received.length, new Set(hook.messages<Message>().map(({ id }) => id)).size);
  await site.kill('SIGTERM');
  t.notMatch(site.log, /<3>/, 'no error in the log');
});

t.test('killed in the middle of deliveries: nothing is lost, what comes again has the same id', async (t) => {
  const hook = await Receiver.start();
  t.teardown(() => hook.stop());
  const site = await Site.start(t, hook);
  site.startNotifying();
  await site.untilPlaced();
  const seen = new Set<string>();
  let kills = 0;
  hook.behaviour = (response, request, count) => {
    const key = request.headers['idempotency-key'] as string;
    if (seen.has(key)) return accept(response, request, count);
    seen.add(key);
    kills += 1;
    void site.kill('SIGKILL').then(() => {
      response.destroy();
      site.startNotifying();
    });
  };
  for (const isOpen of [true, false, true, false]) {
    const before = seen.size;
    for (const metric of METRICS) await site.set(metric, isOpen);
    await until(
      () => seen.size > before,
      () => site.log,
    );
  }
  const mine = (metric: Metric): MessageAlert[] => site.lines.filter((line) => line.metric === `${metric}_percent`);
  const episodes = (metric: Metric): number => mine(metric).reduce((sum, line) => sum + line.episodes, 0);
  const isAllTold = (): boolean =>
    METRICS.every((metric) => episodes(metric) >= 2 && ['resolved', 'passed'].includes(mine(metric).at(-1)?.state ?? ''));
  await until(isAllTold, () => `${JSON.stringify(site.told)}\n${site.log}`, 30);
  t.ok(kills >= 4, `${kills} kills`);
  for (const metric of METRICS) t.equal(episodes(metric), 2, `every episode once: ${site.told.join(', ')}`);
  const times = (key: string): number => hook.received.filter(({ headers }) => headers['idempotency-key'] === key).length;
  await until(
    () => [...seen].every((key) => times(key) > 1),
    () => 'not all came again',
  );
  for (const key of seen) {
    const bodies = new Set(hook.received.filter(({ headers }) => headers['idempotency-key'] === key).map(({ body }) => body));
    t.equal(bodies.size, 1, 'the same id, the same content');
  }
});
