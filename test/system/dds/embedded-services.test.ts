import t, { type Test } from 'tap';
import { GraphNode, type NodeOptions } from '../../../testkit/dds/graph-node.ts';
import { Peer, type PeerEvent, peersUnavailable, VENDORS, type Vendor } from '../../../testkit/dds/peers.ts';
import { spread } from '../../../testkit/dds/streams.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';

/**
 * /safe_shutdown called by clients as rmw_cyclonedds and rmw_fastrtps make them: each gets its own response, once. How long a response
 * takes is in the comments of the output.
 */

t.setTimeout(600_000);
const skip = peersUnavailable();
const TIMEOUT_SECONDS = 120;
const FRESH_CLIENTS = 20;
const DISTRIBUTIONS = ['humble', 'iron'] as const;

interface Site {
  readonly node: GraphNode;
  readonly brain: Host;
  readonly clients: Host;
  /** The address of the clients' host. */
  readonly address: string;
}

/** The node on a host of its own, and another host for its clients. */
async function site(t: Test, options: NodeOptions = {}): Promise<Site> {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [brain, clients] = [network.host(), network.host()];
  segment.attach(brain);
  const { address } = segment.attach(clients);
  return { node: await GraphNode.start(brain, options), brain, clients, address };
}

function call(host: Host, vendor: Vendor, requestedBy: string, ...options: readonly string[]): Promise<Peer> {
  const request = ['--set', 'reason=MAINTENANCE', '--set', `requested_by=${requestedBy}`, '--set', 'timeout=12.5'];
  return Peer.start(host, vendor, 'call', [...request, '--match-seconds', '120', '--reply-seconds', '120', ...options]);
}

/** Checks that every reply belongs to its client, and that each of `clients` × `requests` came exactly once. */
function judge(t: Test, peer: Peer, requestedBy: string, clients: number, requests = 1): PeerEvent<'reply'>[] {
  const replies = peer.all('reply');
  const expected = Array.from({ length: clients * requests }, (_, i) => `${Math.floor(i / requests) + 1}.${(i % requests) + 1}`);
  t.same(
    replies.map(({ client, request }) => `${client}.${request}`),
    expected,
    `${requestedBy}: every request is answered, none twice`,
  );
  t.ok(
    replies.every(({ own, repeated }) => own && !repeated),
    'no reply of another client, none again',
  );
  t.ok(
    replies.every(({ data }) => data.success === true && data.message === `MAINTENANCE for ${requestedBy}`),
    'and it says what it should',
  );
  t.same([...peer.all('timeout'), ...peer.all('service_missing')], []);
  return replies;
}

for (const vendor of VENDORS) {
  for (const ros of DISTRIBUTIONS) {
    t.test(`${FRESH_CLIENTS} fresh clients of ${vendor}, as of ${ros}, each get their response`, { skip }, async (t) => {
      const { node, clients, address } = await site(t);
      const requestedBy = `wäre ${vendor}`;
      const peer = await call(clients, vendor, requestedBy, '--clients', String(FRESH_CLIENTS), '--ros', ros);
      await peer.waitForCount('reply', FRESH_CLIENTS, () => true, 300);
      t.equal(await peer.ended, 0);
      const times = judge(t, peer, requestedBy, FRESH_CLIENTS).map(({ round_trip_ms }) => round_trip_ms);
      const found = peer.all('service_matched').map(({ match_ms }) => match_ms);
      t.comment(`${vendor}, ${ros}: answered in ${spread(times)}; found before in ${spread(found)}`);
      t.same(
        node.all('call').map(({ call: request, caller }) => ({ ...request, ...caller })),
        Array(FRESH_CLIENTS).fill({ reason: 'MAINTENANCE', requested_by: requestedBy, timeout: 12.5, address, local: false }),
        'each request arrived once, whole, and from where it came',
      );
      t.equal((await node.details()).refused, 0);
    });
  }
}

t.test('clients of both kinds at once, with several requests each, are not mistaken for each other', { skip }, async (t) => {
  const { node, brain, clients } = await site(t, { answerAfterMs: 30 });
  const all = [clients, brain].flatMap((host) =>
    VENDORS.flatMap((vendor) =>
      DISTRIBUTIONS.map((ros) => ({ host, vendor, ros, name: `${vendor}-${ros}-${host === brain ? 'here' : 'there'}` })),
    ),
  );
  const options = ['--clients', '3', '--repeat', '5', '--listen-ms', '500'];
  const peers = await Promise.all(all.map(({ host, vendor, ros, name }) => call(host, vendor, name, '--ros', ros, ...options)));
  for (const [index, peer] of peers.entries()) {
    t.equal(await peer.ended, 0);
    const { name, host } = all[index] as (typeof all)[number];
    judge(t, peer, name, 3, 5);
    const callers = node.all('call').filter((event) => event.call.requested_by === name);
    t.equal(callers.length, 15);
    t.ok(callers.every(({ caller }) => caller.local === (host === brain)));
  }
  t.equal(node.all('call').length, all.length * 15);
});

t.test('a client that is killed before its response does not affect the others', { skip }, async (t) => {
  const { node, clients } = await site(t, { holdsAnswers: true });
  for (const vendor of VENDORS) {
    const dying = await call(clients, vendor, `dying ${vendor}`);
    await node.waitFor('call', (event) => event.call.requested_by === `dying ${vendor}`, TIMEOUT_SECONDS);
    await dying.kill('SIGKILL');
    node.answerCalls();
    t.same(dying.all('reply'), []);
    const living = await Promise.all(VENDORS.map((other) => call(clients, other, `living ${vendor} ${other}`, '--listen-ms', '1000')));
    for (const other of VENDORS) {
      await node.waitFor('call', (event) => event.call.requested_by === `living ${vendor} ${other}`, TIMEOUT_SECONDS);
    }
    node.answerCalls();
    for (const [index, peer] of living.entries()) {
      t.equal(await peer.ended, 0);
      judge(t, peer, `living ${vendor} ${VENDORS[index]}`, 1);
    }
  }
  t.equal(node.all('call').length, VENDORS.length * (1 + VENDORS.length));
  t.same(
    node.all('log').filter(({ level }) => level === 'error' || level === 'warning'),
    [],
  );
});

t.test('clients get their responses over a link that loses 10 %, duplicates and reorders', { skip }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [brain, clients] = [network.host(), network.host()];
  segment.attach(brain);
  const { link } = await segment.attachLossy(clients, { seed: 11 });
  const node = await GraphNode.start(brain);
  await link.set({ lossPercent: 10, duplicatePercent: 10, reorderPercent: 5, holdMs: 15 });
  const options = ['--clients', '2', '--repeat', '10', '--listen-ms', '1000'];
  const peers = await Promise.all(VENDORS.map((vendor) => call(clients, vendor, vendor, ...options)));
  for (const [index, peer] of peers.entries()) {
    t.equal(await peer.ended, 0);
    const times = judge(t, peer, VENDORS[index] as Vendor, 2, 10).map(({ round_trip_ms }) => round_trip_ms);
    t.comment(`${VENDORS[index]}: answered in ${spread(times)}`);
  }
  t.equal(node.all('call').length, VENDORS.length * 20, 'no request is carried out twice');
});
