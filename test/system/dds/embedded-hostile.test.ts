import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { LIMITS } from '../../../src/rtps/limits.ts';
import { GraphNode, type NodeEvent } from '../../../testkit/dds/graph-node.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { arrivalsAt, missing, numberOf, reached } from '../../../testkit/dds/streams.ts';
import { Network } from '../../../testkit/network/network.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

/**
 * Whatever is sent to it, the node stays up and serves other participants meanwhile and afterwards, and neither its participants nor its
 * log grow without bound. testkit/dds/attacker-program.ts lists what is sent.
 */

t.setTimeout(600_000);

interface Attack {
  readonly what: string;
  /** Whether it must have reached the node. */
  readonly struck: (node: GraphNode, details: NodeEvent<'details'>, refused: number) => boolean;
}

const says = (node: GraphNode, pattern: RegExp): boolean => node.all('log').some(({ message }) => pattern.test(message));

const ATTACKS: Readonly<Record<string, Attack>> = {
  rubbish: {
    what: 'datagrams with something wrong: cut short, longer, other lengths, noise',
    struck: (_node, _details, refused) => refused > 200,
  },
  oversized: {
    what: 'datagrams of 64 kB: noise, zeros, thousands of submessages, huge lists and texts',
    struck: (_node, _details, refused) => refused > 20,
  },
  replayed: {
    what: 'what the group and others once said, again and again',
    struck: (node) => says(node, /participant found/),
  },
  lies: {
    what: 'a participant whose lengths and numbers lie',
    struck: (_node, _details, refused) => refused > 100,
  },
  endpoints: {
    what: 'a participant that announces 100,000 endpoints',
    struck: (node) => says(node, /too many endpoints/),
  },
  flood: {
    what: 'samples, heartbeats and requests for everything, as fast as they go',
    struck: (node) => node.all('health').filter(({ status }) => status.node_name === 'flood').length > 0,
  },
  participants: {
    what: 'thousands of participants that are not there',
    struck: (_node, { peers }) => (peers ?? 0) > 100,
  },
};

const TIMEOUT_SECONDS = 120;
const MOST_LOG_LINES = 20;

t.test('hostile datagrams have no lasting effect', { skip: peersUnavailable() }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [brain, others, attacker] = [network.host(), network.host(), network.host()];
  const { address } = segment.attach(brain);
  segment.attach(others);
  segment.attach(attacker);
  const node = await GraphNode.start(brain);
  const subscribers = await Promise.all(VENDORS.map((vendor) => Peer.start(others, vendor, 'subscribe', ['--topic', '/health_status'])));
  const fields = ['status=OK', 'timestamp=2026-03-04T05:06:07.089Z'].flatMap((field) => ['--set', field]);
  const publishers = await Promise.all(
    VENDORS.map((vendor) => {
      const options = [
        '--topic',
        `/${vendor}/health_status`,
        '--hz',
        '5',
        '--depth',
        '1000',
        '--sequence',
        'cpu_percent',
        '--set',
        `node_name=${vendor}`,
      ];
      return Peer.start(others, vendor, 'publish', [...options, ...fields]);
    }),
  );
  // All samples of the peers' writers are kept, and the last ten of the node's: ten seconds at this rate.
  node.stream({ hz: 1, count: 0 });
  await Promise.all(subscribers.map((peer) => peer.waitFor('sample', () => true, TIMEOUT_SECONDS)));
  for (const vendor of VENDORS) await node.waitFor('health', ({ status }) => status.node_name === vendor, TIMEOUT_SECONDS);

  /** Answers a call and exchanges samples with peers of both kinds. */
  const serves = async (): Promise<void> => {
    const call = ['--set', 'timeout=1', '--match-seconds', '120', '--reply-seconds', '120'];
    const clients = await Promise.all(VENDORS.map((vendor) => Peer.start(others, vendor, 'call', call)));
    const since = await node.lastPublished();
    const received = (name: string): number => node.all('health').filter(({ status }) => status.node_name === name).length;
    const before = new Map(VENDORS.map((vendor) => [vendor, received(vendor)]));
    await Promise.all([
      ...clients.map((client) => client.waitFor('reply', ({ own }) => own, TIMEOUT_SECONDS)),
      ...subscribers.map((peer) => reached(peer, since + 1, TIMEOUT_SECONDS)),
      ...VENDORS.map((vendor) =>
        node.waitForCount('health', (before.get(vendor) ?? 0) + 1, ({ status }) => status.node_name === vendor, TIMEOUT_SECONDS),
      ),
    ]);
    for (const client of clients) await client.kill();
  };

  for (const [attack, { what, struck }] of Object.entries(ATTACKS)) {
    await t.test(what, async (t) => {
      const before = await node.details();
      const lines = node.all('log').length;
      const program = join(ROOT, 'testkit/dds/attacker-program.ts');
      const child = attacker.spawn(process.execPath, [program, attack, address], { stdio: ['ignore', 'pipe', 'inherit'] });
      let output = '';
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
      const closed = once(child, 'close');
      await until('the attack has begun', () => output.startsWith('begins') || child.exitCode !== null);
      await serves();
      t.pass(`served ${child.exitCode === null ? 'while' : 'after'} it lasted`);
      const [code] = await closed;
      // Forged participants are forgotten after 15 s.
      const atEnd = await node.details();
      t.equal(code, 0);
      const { sent, octets, seconds } = JSON.parse(output.split('\n')[1] ?? '') as { sent: number; octets: number; seconds: number };
      await serves();
      t.pass('and afterwards');
      // Everything sent before has been handled by now.
      const details = await node.details();
      const peers = Math.max(atEnd.peers ?? 0, details.peers ?? 0);
      t.ok(struck(node, { ...details, peers }, details.refused - before.refused), 'it was felt');
      const after = await node.details({ collect: true });
      const said = node
        .all('log')
        .slice(lines)
        .filter(({ level }) => level !== 'debug');
      t.ok((after.peers ?? 0) <= LIMITS.participants, `${after.peers} participants`);
      t.ok((after.subscribers ?? 0) <= LIMITS.matchedPerEndpoint, `${after.subscribers} subscribers`);
      t.ok(said.length <= MOST_LOG_LINES, `${said.length} lines in the log`);
      t.same(
        said.filter(({ level }) => level === 'error'),
        [],
        'nothing went wrong inside',
      );
      t.comment(
        `${sent} datagrams, ${(octets / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s; ${after.refused - before.refused} refused, ${after.peers} participants, ` +
          `${(after.cpu_seconds - before.cpu_seconds).toFixed(1)} s of processor time, heap ${(after.heap_bytes / 1e6).toFixed(1)} MB`,
      );
    });
  }

  t.equal(node.all('failed').length, 0);
  const end = await node.lastPublished();
  for (const [index, peer] of subscribers.entries()) {
    await reached(peer, end, TIMEOUT_SECONDS);
    const numbers = arrivalsAt(peer).map(numberOf);
    t.same(missing(numbers, numbers[0] ?? 0, end), [], `${VENDORS[index]}: nothing that the node published was lost meanwhile`);
  }
  for (const [index, publisher] of publishers.entries()) {
    const written = publisher.all('written').at(-1)?.number ?? 0;
    const isLast = (name: string, number: number | null): boolean => name === VENDORS[index] && (number ?? 0) >= written;
    await node.waitFor('health', ({ status }) => isLast(status.node_name, status.cpu_percent), TIMEOUT_SECONDS);
    const received = node.all('health').filter(({ status }) => status.node_name === VENDORS[index]);
    const numbers = received.map(({ status }) => status.cpu_percent ?? 0);
    const last = numbers.at(-1) ?? 0;
    t.same(missing(numbers, numbers[0] ?? 0, last), [], `${VENDORS[index]}: and nothing that it published`);
  }
  // Participants that do not exist are removed; the real ones are not.
  await node.detailsUntil(({ peers }) => peers === subscribers.length + publishers.length, TIMEOUT_SECONDS);
});
