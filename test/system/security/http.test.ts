import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { InProcessService, statusOf, TestClocks } from '../../../testkit/service/remote-nodes.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';
import type { HttpCounts } from './support/http-program.ts';

// Another host attacks the REST port with four addresses of its own; programs of the machine itself get responses throughout.

const PROGRAM = join(import.meta.dirname, 'support/http-program.ts');
const NODES = 480;
/** A node that is received for a minute is stored. */
const SAMPLED_SECONDS = 80;
const WEEK = '/health/aggregate?by=minute&hours=166';
/** Of the unit, in bytes. */
const MEMORY_MAX = Number(/^MemoryMax=(\d+)M$/m.exec(readFileSync(join(ROOT, 'systemd/edge-health.service'), 'utf8'))?.[1]) * 1024 * 1024;

/** As many nodes as are kept, with names of the maximum length, received for a minute before the start: /metrics is large. */
async function rememberNodes(folder: string): Promise<void> {
  mkdirSync(join(folder, 'run'), { recursive: true });
  const clocks = new TestClocks();
  clocks.wallMs = Date.now() - SAMPLED_SECONDS * 1000;
  const past = new InProcessService(folder, clocks);
  await past.start();
  past.remoteNodes.setObserving(true, []);
  await past.run(SAMPLED_SECONDS, (second) => {
    if (second % 5 > 0) return;
    for (let n = 0; n < NODES; n += 1) past.remoteNodes.onHealthStatus(statusOf(`robot ${n} `.padEnd(64, '機'), clocks.wallMs));
  });
  await past.stop();
}

const network = new Network();
t.teardown(() => network.dispose());
const segment = network.segment();
const [here, attacker, other] = [network.host(), network.host(), network.host()];
segment.attach(here, { number: 1 });
segment.attach(other, { number: 2 });
segment.attach(attacker, { number: 10 });
const SOURCES = [10, 11, 12, 13].map((number) => segment.address(number));
for (const address of SOURCES.slice(1)) attacker.ip('address', 'add', `${address}/24`, 'dev', 'eth0');
const address = segment.address(1);
const folder = temporaryFolder(t);
await rememberNodes(folder);
const service = await HostService.start(here, folder, {
  config: { ros: { transport: 'embedded', observe: 'always', domain_id: 43, discovery_range: 'LOCALHOST' } },
  environment: { RUNTIME_DIRECTORY: join(folder, 'run') },
});
t.teardown(() => service.end('SIGKILL'));

class Client {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #output = '';

  private constructor(process: ChildProcess) {
    this.#process = process;
    this.#ended = once(process, 'close');
    process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
    });
  }

  /** Resolves when all of its connections are open. */
  static async start(t: Pick<Test, 'teardown'>, host: Host, ...args: readonly (string | number)[]): Promise<Client> {
    const client = new Client(
      host.spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM, ...args.map(String)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    );
    t.teardown(() => client.#process.kill('SIGKILL'));
    await until('it begins', () => client.#output.includes('begins\n'));
    return client;
  }

  async end(): Promise<HttpCounts> {
    this.#process.kill('SIGTERM');
    await this.#ended;
    return JSON.parse(this.#output.trim().split('\n').at(-1) ?? '') as HttpCounts;
  }
}

const rest = async (): Promise<StatusDocument['rest']> => (await service.get<StatusDocument>('/status')).rest;

/** The most memory that the service itself has used, and what the kernel holds for its connections now, in bytes. */
function memory(): { own: number; kernel: number } {
  const own = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) * 1024;
  // Received, allocated ahead, and to be sent: ss(8).
  const kernel = [...here.exec('ss', '-tamnH', '( sport = :5000 )').matchAll(/skmem:\(r(\d+),.*?,f(\d+),w(\d+),/g)]
    .flatMap(([, ...bytes]) => bytes.map(Number))
    .reduce((sum, bytes) => sum + bytes, 0);
  return { own, kernel };
}

/** Requests of this host and of another one during the attack. */
async function during(t: Test, attack: (watch: () => void) => Promise<void>): Promise<void> {
  const local = await Client.start(t, here, 'watch', '127.0.0.1', '/health');
  let most = 0;
  await attack(() => {
    most = Math.max(most, memory().kernel);
  });
  const { answered, failed, longest } = await local.end();
  t.ok(answered > 0, `${answered} requests of this host were answered, the slowest after ${longest.toFixed(0)} ms`);
  t.equal(failed, 0, 'none failed');
  const { own } = memory();
  t.ok(own + most < MEMORY_MAX, `${Math.round(own / 1e6)} MB in the process, ${Math.round(most / 1e6)} MB in the kernel`);
}

/** Calls `watch` this many times during an attack. */
async function look(watch: () => void, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    watch();
    await new Promise((later) => setTimeout(later, 200));
  }
}

await service.untilGet<StatusDocument>('/status', ({ nodes }) => nodes.length > NODES);
t.comment(`/metrics has ${(await service.text('/metrics')).length} characters`);

t.test('120 connections request megabytes at once and read nothing, others one after the other', async (t) => {
  await during(t, async (watch) => {
    const attacks = [
      await Client.start(t, attacker, 'unread', address, '/metrics', 120, 0),
      await Client.start(t, attacker, 'unread', address, WEEK, 60, 0, ...SOURCES),
      await Client.start(t, attacker, 'unread', address, '/metrics', 40, 100, ...SOURCES),
    ];
    await look(watch, 20);
    for (const attack of attacks) await attack.end();
  });
});

t.test('300 connections send 64 requests each and read nothing: they are dropped to make space', async (t) => {
  await during(t, async (watch) => {
    const { dropped_connections: before } = await rest();
    const attack = await Client.start(t, attacker, 'pipeline', address, '/openapi.json', 300, 0, ...SOURCES);
    await look(watch, 10);
    // A new connection from another host replaces a reader that has read nothing.
    const newcomer = await Client.start(t, other, 'watch', address, '/health');
    await until('they are dropped', async () => (await rest()).dropped_connections - before > 200);
    t.ok((await newcomer.end()).answered > 10, 'another host is answered as well');
    await attack.end();
  });
});

t.test('connections that the service has to close, and that read nothing, do not accumulate', async (t) => {
  await during(t, async (watch) => {
    const orphans = (): number => Number(/orphan (\d+)/.exec(here.exec('cat', '/proc/net/sockstat'))?.[1]);
    const attack = await Client.start(t, attacker, 'close', address, '/health/aggregate?by=hour&hours=90', 1500, 1, ...SOURCES);
    watch();
    t.ok(orphans() < 50, `${orphans()} connections without an owner`);
    await attack.end();
  });
});

t.test('event streams of one host leave as many to others, and those of all hosts leave some to this host', async (t) => {
  await during(t, async () => {
    const one = await Client.start(t, attacker, 'streams', address, '/events', 64, 0);
    const another = await Client.start(t, other, 'streams', address, '/events', 20, 0);
    const all = await Client.start(t, attacker, 'streams', address, '/events', 64, 0, ...SOURCES.slice(1));
    const local = await Client.start(t, here, 'streams', '127.0.0.1', '/events', 8, 0);
    await until('this host has its streams', async () => (await rest()).event_streams === 64 + 8);
    t.match((await one.end()).statuses, { 200: 32, 503: 32 });
    t.match((await another.end()).statuses, { 200: 20 });
    t.match((await all.end()).statuses, { 200: 12 });
    t.match((await local.end()).statuses, { 200: 8 });
  });
});

t.test('the service is healthy afterwards', async (t) => {
  await until('all connections are gone', async () => (await rest()).connections <= 2);
  const { publish } = await service.get<StatusDocument>('/status');
  t.ok(publish.missed <= 3, `${publish.missed} of ${publish.samples + publish.missed} samples missed`);
  t.notMatch(service.log, /request failed|Error\b/);
});
