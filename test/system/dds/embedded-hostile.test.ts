import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import { LIMITS } from '../../../src/rtps/limits.ts';
import { GraphNode, type NodeEvent } from '../../../testkit/dds/graph-node.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { arrivalsAt, missing, numberOf, reached } from '../../../testkit/dds/streams.ts';
import { Network } from '../../../testkit/network/network.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

/**
 * The node survives hostile datagrams and serves other participants during and after an attack, and neither its participants nor its log
 * grow without bound. testkit/dds/attacker-program.ts sends the attacks.
 */

t.setTimeout(600_000);

/** What the node shows of an attack. */
interface Effect {
  readonly details: NodeEvent<'details'>;
  /** Datagrams and messages refused since the attack began. */
  readonly refused: number;
  /** Lines logged since the attack began. */
  readonly log: readonly NodeEvent<'log'>[];
  readonly statuses: readonly HealthStatus[];
}

interface Attack {
  readonly what: string;
  /** Whether the attack reached the node. */
  readonly hasArrived: (effect: Effect) => boolean;
}

const ATTACKS: Readonly<Record<string, Attack>> = {
  rubbish: {
    what: 'malformed datagrams: truncated, extended, with wrong lengths, noise',
    hasArrived: ({ refused }) => refused > 200,
  },
  oversized: {
    what: 'datagrams of 64 kB: noise, zeros, thousands of submessages, huge lists and texts',
    hasArrived: ({ refused }) => refused > 20,
  },
  replayed: {
    what: 'recorded datagrams of this group and of other participants, replayed many times',
    hasArrived: ({ refused }) => refused > 100,
  },
  lies: {
    what: 'a participant that sends false lengths and numbers',
    hasArrived: ({ refused }) => refused > 100,
  },
  endpoints: {
    what: 'a participant that announces 100,000 endpoints',
    hasArrived: ({ log }) => log.some(({ message }) => message.includes('too many endpoints')),
  },
  flood: {
    what: 'samples, heartbeats and requests for all samples, at full speed',
    hasArrived: ({ statuses }) => statuses.some(({ node_name }) => node_name === 'flood'),
  },
  participants: {
    what: 'thousands of participants that do not exist',
    hasArrived: ({ details }) => (details.peers ?? 0) > 100,
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

  for (const [attack, { what, hasArrived }] of Object.entries(ATTACKS)) {
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
      t.pass(`served ${child.exitCode === null ? 'during' : 'after'} the attack`);
      const [code] = await closed;
      // Forged participants are removed after 15 s.
      const atEnd = await node.details();
      t.equal(code, 0);
      const { sent, octets, seconds } = JSON.parse(output.split('\n')[1] ?? '') as { sent: number; octets: number; seconds: number };
      await serves();
      t.pass('and afterwards');
      // Everything that was sent before has been handled by now.
      const details = await node.details();
      const peers = Math.max(atEnd.peers ?? 0, details.peers ?? 0);
      const effect: Effect = {
        details: { ...details, peers },
        refused: details.refused - before.refused,
        log: node.all('log').slice(lines),
        statuses: node.all('health').map(({ status }) => status),
      };
      t.ok(hasArrived(effect), 'it reached the node');
      const after = await node.details({ collect: true });
      const logged = node
        .all('log')
        .slice(lines)
        .filter(({ level }) => level !== 'debug');
      t.ok((after.peers ?? 0) <= LIMITS.participants, `${after.peers} participants`);
      t.ok((after.subscribers ?? 0) <= LIMITS.matchedPerEndpoint, `${after.subscribers} subscribers`);
      t.ok(logged.length <= MOST_LOG_LINES, `${logged.length} lines in the log`);
      t.same(
        logged.filter(({ level }) => level === 'error'),
        [],
        'no internal error',
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
    t.same(missing(numbers, numbers[0] ?? 0, end), [], `${VENDORS[index]}: no sample of the node was lost`);
  }
  for (const [index, publisher] of publishers.entries()) {
    const written = publisher.all('written').at(-1)?.number ?? 0;
    const isLast = (name: string, number: number | null): boolean => name === VENDORS[index] && (number ?? 0) >= written;
    await node.waitFor('health', ({ status }) => isLast(status.node_name, status.cpu_percent), TIMEOUT_SECONDS);
    const received = node.all('health').filter(({ status }) => status.node_name === VENDORS[index]);
    const numbers = received.map(({ status }) => status.cpu_percent ?? 0);
    const last = numbers.at(-1) ?? 0;
    t.same(missing(numbers, numbers[0] ?? 0, last), [], `${VENDORS[index]}: no sample of the peer was lost`);
  }
  // Participants that do not exist are removed; the real ones are not.
  await node.detailsUntil(({ peers }) => peers === subscribers.length + publishers.length, TIMEOUT_SECONDS);
});
