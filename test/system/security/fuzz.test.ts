import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import { randomFrom } from '../../../src/rtps/testing/random.ts';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { SEED } from '../../../testkit/effort.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import type { StatusDocument } from '../../../testkit/service/rest.ts';
import { ROOT } from '../../../testkit/service/service.ts';

/**
 * The whole service under mutated datagrams, requests and lines on its local socket, all at once: not a sample, not a status to a
 * subscriber and not a status from another node is lost. EDGE_HEALTH_FUZZ_SECONDS=3600 makes it an hour.
 */
const SECONDS = Number(process.env['EDGE_HEALTH_FUZZ_SECONDS'] ?? 20);
const NODE = 'robot1';

t.setTimeout(300_000 + 2000 * SECONDS);

interface Sent {
  readonly datagrams: number;
  readonly requests: number;
  readonly answers: number;
}

const LINES = ['{"forget":"nobody","requested_by":"me"}', '{"forget":', '[]', 'null', '{"forget":1}', '{"forget":"a","requested_by":""}'];

/** Sends mutated lines to the control socket until it is stopped; resolves with their number. None names an existing node. */
async function fuzzLocalSocket(path: string, isOver: () => boolean): Promise<number> {
  const random = randomFrom(SEED);
  let count = 0;
  while (!isOver()) {
    const line = Buffer.from(LINES[Math.floor(random() * LINES.length)] as string);
    for (let flips = Math.floor(random() * 4); flips > 0; flips -= 1) line[Math.floor(random() * line.length)] = Math.floor(random() * 256);
    const bytes = random() < 0.1 ? Buffer.alloc(5000, line) : Buffer.concat([line, Buffer.from(random() < 0.7 ? '\n' : '')]);
    await new Promise<void>((resolve) => {
      const socket = connect(path, () => (random() < 0.5 ? socket.end(bytes) : socket.write(bytes)));
      socket.setTimeout(50, () => socket.destroy());
      socket.on('error', () => socket.destroy());
      socket.on('data', () => socket.destroy());
      socket.once('close', () => resolve());
    });
    count += 1;
    await new Promise((later) => setTimeout(later, 20));
  }
  return count;
}

t.test(`${SECONDS} s of mutated datagrams, requests and control lines, seed ${SEED}`, { skip: networkUnavailable() }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [robot, friend, attacker, ally] = [network.host(), network.host(), network.host(), network.host()];
  const { address } = segment.attach(robot);
  segment.attach(friend);
  segment.attach(attacker);
  const { address: allyAddress } = segment.attach(ally);
  const folder = temporaryFolder(t);
  const service = await HostService.start(robot, folder, { config: { alerts: { raise_after_seconds: 3600 } } });
  const node = await GraphNode.start(friend, { localNode: NODE });
  node.stream({ hz: 1, count: 0, nodeName: NODE });
  const own = await service.get<HealthStatus>('/health').then(({ node_name }) => node_name);
  const fromService = (): HealthStatus[] => node.all('health').flatMap(({ status }) => (status.node_name === own ? [status] : []));
  await node.waitFor('health', ({ status }) => status.node_name === own);
  await service.untilGet<StatusDocument>('/status', ({ nodes }) => nodes.some(({ node_name }) => node_name === NODE));
  const from = new Date().toISOString();
  const receivedBefore = fromService().length;
  const publishedBefore = await node.lastPublished();

  const proven = await GraphNode.start(ally, { localNode: 'ally' });
  await proven.waitFor('health', ({ status }) => status.node_name === own);
  const program = join(ROOT, 'test/system/security/support/fuzzer-program.ts');
  const fuzzer = async (host: Host, seed: number, ...from: string[]): Promise<Sent> => {
    const argv = [program, address, String(SECONDS), String(seed), ...from];
    const child = host.spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    await once(child, 'exit');
    return JSON.parse(output) as Sent;
  };
  // One without a known participant, and one on the host of a proven participant, in its name.
  const refused = async (): Promise<number> => (await service.get<StatusDocument>('/status')).ros.refused;
  const refusedBefore = await refused();
  const fuzzers = Promise.all([fuzzer(attacker, SEED), fuzzer(ally, SEED + 1, allyAddress)]);
  let isOver = false;
  const lines = fuzzLocalSocket(join(folder, 'data', 'control.sock'), () => isOver);
  const sent = await fuzzers;
  isOver = true;
  t.comment(`${JSON.stringify(sent)}, ${await lines} control lines`);
  t.ok(
    sent.every(({ answers }) => answers > 0),
    'the service responded to each fuzzer',
  );
  const newlyRefused = (await refused()) - refusedBefore;
  t.ok(newlyRefused > 10 * SECONDS, `${newlyRefused} datagrams and messages refused`);

  const to = new Date().toISOString();
  const last = await node.lastPublished();
  const numbers = (statuses: readonly HealthStatus[]): number[] => statuses.map(({ cpu_percent }) => Number(cpu_percent));
  type History = { readonly data: readonly HealthStatus[] };
  const range = `from=${from}&limit=10000`;
  const stored = await service.untilGet<History>(`/health/history?node=${NODE}&${range}`, ({ data }) => numbers(data).includes(last));
  const expected = Array.from({ length: last - publishedBefore - 1 }, (_, i) => publishedBefore + 2 + i);
  t.same(
    expected.filter((number) => !numbers(stored.data).includes(number)),
    [],
    `every status of another node is stored, ${expected.length} of them`,
  );
  const { publish } = await service.get<StatusDocument>('/status');
  // Without an attack, a machine that stands still for a second misses one as well.
  t.ok(publish.missed <= 1, `${publish.missed} samples missed`);
  const samples = await service.get<History>(`/health/history?${range}&to=${to}`);
  const newest = samples.data.at(-1)?.timestamp;
  await node.waitFor('health', ({ status }) => status.node_name === own && status.timestamp === newest);
  const received = new Set(
    fromService()
      .slice(receivedBefore - 1)
      .map(({ timestamp }) => timestamp),
  );
  t.same(
    samples.data.filter(({ timestamp }) => !received.has(timestamp)).map(({ timestamp }) => timestamp),
    [],
    `every sample reached the subscriber, ${samples.data.length} of them`,
  );
  t.notMatch(service.log, /message handler failed|HTTP request failed/, 'nothing unexpected in the log');
});
