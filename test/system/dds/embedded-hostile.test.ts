import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { GraphNode, type NodeEvent } from '../../../testkit/dds/graph-node.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { arrivalsAt, missing, numberOf, publishedUntil, reached, wait } from '../../../testkit/dds/streams.ts';
import { Network } from '../../../testkit/network/network.ts';
import { ROOT } from '../../../testkit/service.ts';

/**
 * Whatever somebody on the network sends, the node stays up, goes on serving the others while it lasts and afterwards, and neither its
 * memory nor its log grows without bound. See testkit/dds/attacker-program.ts for what is sent.
 */

t.setTimeout(240_000);

interface Attack {
  readonly what: string;
  /** Whether it reached the node at all. */
  readonly struck: (node: GraphNode, details: NodeEvent<'details'>, refused: number) => boolean;
}

const says = (node: GraphNode, pattern: RegExp): boolean => node.all('log').some(({ message }) => pattern.test(message));

const ATTACKS: Readonly<Record<string, Attack>> = {
  rubbish: {
    what: '20,000 datagrams with something wrong: cut short, longer, other lengths, noise',
    struck: (_node, _details, refused) => refused > 5000,
  },
  oversized: {
    what: 'datagrams of 64 kB: noise, zeros, thousands of submessages, huge lists and texts',
    struck: (_node, _details, refused) => refused > 300,
  },
  replayed: {
    what: 'what the group and others once said, again and again',
    struck: (node) => says(node, /participant found/),
  },
  lies: {
    what: 'a participant whose lengths and numbers lie',
    struck: (_node, _details, refused) => refused > 4000,
  },
  endpoints: {
    what: 'a participant that announces 100,000 endpoints',
    struck: (node) => says(node, /too many endpoints/) && says(node, /too many topics/),
  },
  flood: {
    what: 'samples, heartbeats and requests for everything, as fast as they go',
    struck: (node) => node.all('health').filter(({ status }) => status.node_name === 'flood').length > 1000,
  },
  participants: {
    what: '5,000 participants that are not there',
    struck: (_node, { peers }) => (peers ?? 0) > 500,
  },
};

const PATIENCE_SECONDS = 60;
/** Beyond what it takes in peace; what strangers may make it hold is 8 MiB of samples, and 512 participants. */
const MOST_HEAP_BYTES = 40e6;
const MOST_RSS_BYTES = 300e6;
const MOST_LOG_LINES = 20;

t.test('hostile datagrams', { skip: peersUnavailable() }, async (t) => {
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
      const options = ['--topic', `/${vendor}/health_status`, '--hz', '5', '--sequence', 'cpu_percent', '--set', `node_name=${vendor}`];
      return Peer.start(others, vendor, 'publish', [...options, ...fields]);
    }),
  );
  node.stream({ hz: 5, count: 0 });
  await Promise.all(subscribers.map((peer) => peer.waitFor('sample', () => true, PATIENCE_SECONDS)));
  await wait(3);
  const peace = await node.details({ collect: true });
  t.comment(`in peace: heap ${(peace.heap_bytes / 1e6).toFixed(1)} MB, resident ${(peace.rss_bytes / 1e6).toFixed(1)} MB`);

  /** Answers a call and exchanges samples with peers of both kinds. */
  const serves = async (): Promise<void> => {
    const call = ['--set', 'timeout=1', '--match-seconds', '45', '--reply-seconds', '45'];
    const clients = await Promise.all(VENDORS.map((vendor) => Peer.start(others, vendor, 'call', call)));
    const [since, now] = [publishedUntil(node, Date.now()), Date.now()];
    await Promise.all([
      ...clients.map((client) => client.waitFor('reply', ({ own }) => own, PATIENCE_SECONDS)),
      ...subscribers.map((peer) => reached(peer, since + 1, PATIENCE_SECONDS)),
      ...VENDORS.map((vendor) =>
        node.waitFor('health', ({ status, wall_ms }) => status.node_name === vendor && wall_ms > now, PATIENCE_SECONDS),
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
      let told = '';
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        told += text;
      });
      const closed = once(child, 'close');
      while (!told.startsWith('begins') && child.exitCode === null) await wait(0.05);
      await serves();
      t.pass(`served ${child.exitCode === null ? 'while' : 'after'} it lasted`);
      const [code] = await closed;
      t.equal(code, 0);
      const details = await node.details();
      t.ok(struck(node, details, details.refused - before.refused), 'it was felt');
      const { sent, octets, seconds } = JSON.parse(told.split('\n')[1] ?? '') as { sent: number; octets: number; seconds: number };
      await serves();
      t.pass('and afterwards');
      const after = await node.details({ collect: true });
      const said = node
        .all('log')
        .slice(lines)
        .filter(({ level }) => level !== 'debug');
      t.ok(after.heap_bytes - peace.heap_bytes < MOST_HEAP_BYTES, `heap ${(after.heap_bytes / 1e6).toFixed(1)} MB`);
      t.ok(after.rss_bytes < MOST_RSS_BYTES, `resident ${(after.rss_bytes / 1e6).toFixed(1)} MB`);
      t.ok(said.length <= MOST_LOG_LINES, `${said.length} lines in the log`);
      t.same(
        said.filter(({ level }) => level === 'error'),
        [],
        'nothing went wrong inside',
      );
      t.comment(
        `${sent} datagrams, ${(octets / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s; ${after.refused - before.refused} refused, ${after.peers} participants, ` +
          `${(after.cpu_seconds - before.cpu_seconds).toFixed(1)} s of processor time`,
      );
    });
  }

  t.equal(node.all('failed').length, 0);
  const until = publishedUntil(node, Date.now());
  for (const [index, peer] of subscribers.entries()) {
    await reached(peer, until, PATIENCE_SECONDS);
    const numbers = arrivalsAt(peer).map(numberOf);
    t.same(missing(numbers, numbers[0] ?? 0, until), [], `${VENDORS[index]}: nothing that the node published was lost meanwhile`);
  }
  for (const [index, publisher] of publishers.entries()) {
    const heard = node.all('health').filter(({ status }) => status.node_name === VENDORS[index]);
    const numbers = heard.map(({ status }) => status.cpu_percent ?? 0);
    const last = numbers.at(-1) ?? 0;
    t.same(missing(numbers, numbers[0] ?? 0, last), [], `${VENDORS[index]}: and nothing that it published`);
    t.ok(last >= (publisher.all('written').at(-1)?.number ?? 0) - 50);
  }
  // Those that were never there are forgotten; the honest ones are not.
  const { heap_bytes, rss_bytes } = await node.detailsUntil(
    ({ peers }) => peers === subscribers.length + publishers.length,
    PATIENCE_SECONDS,
  );
  t.comment(`at the end: heap ${(heap_bytes / 1e6).toFixed(1)} MB, resident ${(rss_bytes / 1e6).toFixed(1)} MB`);
});
