import t from 'tap';
import { LIMITS } from '../limits.ts';
import type { Interface } from '../net/network.ts';
import { Challenge } from './challenge.ts';
import type { ParticipantData } from './discovery-data.ts';
import { chooseLocator, type Peer, Peers } from './peers.ts';

const OURS: readonly Interface[] = [
  { name: 'eth0', address: '10.0.1.1', netmask: '255.255.255.0', isLoopback: false },
  { name: 'wlan0', address: '192.168.4.1', netmask: '255.255.252.0', isLoopback: false },
];

function data(number: number, changes: Partial<ParticipantData> = {}): ParticipantData {
  const at = (port: number) => [{ address: '10.0.1.2', port }];
  return {
    prefix: number.toString(16).padStart(24, '0'),
    vendor: 0x0110,
    domain: 0,
    name: '',
    userData: '',
    leaseSeconds: 20,
    metaUnicast: at(7410),
    userUnicast: at(7411),
    readsLiveliness: false,
    ...changes,
  };
}

const newChallenge = (): Challenge => new Challenge([], 0);

const ANNOUNCEMENT = Buffer.from('as it arrived');

function add(peers: Peers, number: number, now: number, changes: Partial<ParticipantData> = {}): Peer {
  const { peer } = peers.add(data(number, changes), newChallenge(), ANNOUNCEMENT, '10.0.1.2', OURS, now);
  if (!peer) throw new Error('refused');
  return peer;
}

t.test('a lease ends without datagrams', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 100);
  peers.prove(a);
  t.equal(peers.nextExpirySeconds, 100 + LIMITS.unansweredLeaseSeconds, 'or earlier, had it not answered');
  t.same(peers.expired(119.9), []);
  t.equal(peers.nextExpirySeconds, 120);
  peers.recordDatagram(a, '10.0.1.2', OURS, 119.9);
  t.same(peers.expired(120.1), []);
  t.equal(peers.nextExpirySeconds, 139.9);
  t.same(peers.expired(140), [a]);
  t.equal(peers.get(a.data.prefix), a, 'still listed');
  peers.remove(a.data.prefix);
  t.equal(peers.size, 0);
  t.equal(peers.expired(141).length, 0);
  t.equal(peers.nextExpirySeconds, Number.POSITIVE_INFINITY);
});

t.test('the lease of an unproven participant is short', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0, { leaseSeconds: 300 });
  t.same(peers.expired(LIMITS.unansweredLeaseSeconds), []);
  t.same(peers.expired(LIMITS.unansweredLeaseSeconds + 0.1), [a]);
});

t.test('a pause of this process does not end leases', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0);
  peers.prove(a);
  peers.extendLeases(3600);
  t.same(peers.expired(3610), []);
  t.same(peers.expired(3621), [a]);
});

t.test('at the limit the unproven participant with the oldest datagram is evicted', async (t) => {
  const peers = new Peers();
  const all = Array.from({ length: LIMITS.participants }, (_, i) => add(peers, i + 1, i === 7 ? -1 : 0));
  const { peer, evicted } = peers.add(data(9001), newChallenge(), ANNOUNCEMENT, '', OURS, 1);
  t.equal(evicted, all[7]);
  t.ok(peer);
  t.equal(peers.size, LIMITS.participants);
  t.equal(peers.get(all[7]?.data.prefix ?? ''), undefined);
  for (const each of peers.all()) peers.prove(each);
  t.same(peers.add(data(9002), newChallenge(), ANNOUNCEMENT, '', OURS, 1), { peer: null, evicted: null });
  t.equal(peers.refused, 1);
  t.equal(peers.size, LIMITS.participants);
});

t.test('an announcement is kept as a copy, unless it is large', async (t) => {
  const peers = new Peers();
  const datagram = Buffer.from(ANNOUNCEMENT);
  const { peer } = peers.add(data(1), newChallenge(), datagram, '', OURS, 0);
  datagram.fill(0);
  t.same(peer?.announcement, ANNOUNCEMENT);
  t.equal(peer?.announcement.buffer.byteLength, ANNOUNCEMENT.length);
  peers.update(peer as Peer, data(1), Buffer.alloc(LIMITS.announcementOctets + 1), '', OURS, 0);
  t.equal(peer?.announcement.length, 0);
});

t.test('the address to send to is chosen', async (t) => {
  const far = { address: '172.17.0.1', port: 7410 };
  const lan = { address: '10.0.1.2', port: 7410 };
  const wlan = { address: '192.168.7.9', port: 7410 };
  t.same(chooseLocator([far, lan, wlan], '192.168.7.9', OURS), wlan, 'the one that its announcement came from');
  t.same(chooseLocator([far, lan, wlan], '10.9.9.9', OURS), lan, 'else one in a network of ours');
  t.same(chooseLocator([far, wlan], '10.9.9.9', OURS), wlan, 'by its netmask');
  t.same(chooseLocator([far], '10.9.9.9', OURS), far, 'else the first');
  t.equal(chooseLocator([], '10.9.9.9', OURS), null);
});

t.test('another address is used only after a timeout of the chosen one', async (t) => {
  const peers = new Peers();
  const both = (port: number) => [
    { address: '10.0.1.2', port },
    { address: '192.168.4.2', port },
  ];
  const a = add(peers, 1, 0, { metaUnicast: both(7410), userUnicast: both(7411) });
  t.equal(a.meta?.address, '10.0.1.2');
  peers.recordDatagram(a, '192.168.4.2', OURS, 5);
  t.equal(a.meta?.address, '10.0.1.2');
  peers.recordDatagram(a, '10.0.1.2', OURS, 6);
  peers.recordDatagram(a, '192.168.4.2', OURS, 11);
  t.equal(a.meta?.address, '10.0.1.2');
  peers.recordDatagram(a, '10.66.66.66', OURS, 12.5);
  t.equal(a.meta?.address, '10.0.1.2', 'an address that is not its own');
  peers.recordDatagram(a, '192.168.4.2', OURS, 12.5);
  t.equal(a.meta?.address, '192.168.4.2');
  t.same(a.user, { address: '192.168.4.2', port: 7411 });
});

t.test('a changed announcement gives other addresses and another lease', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0);
  peers.prove(a);
  const at = (address: string, port: number) => [{ address, port }];
  peers.update(a, data(1, { leaseSeconds: 5 }), Buffer.from('2'), '10.66.6.6', OURS, 1);
  t.equal(a.meta?.address, '10.0.1.2', 'what stays is kept');
  t.equal(peers.nextExpirySeconds, 5);
  peers.update(a, data(1, { metaUnicast: at('10.0.1.7', 7412), userUnicast: at('10.0.1.7', 7413) }), Buffer.from('3'), '10.0.1.7', OURS, 1);
  t.same(a.meta, { address: '10.0.1.7', port: 7412 });
  t.same(a.user, { address: '10.0.1.7', port: 7413 });
});

t.test('a peer whose address changed without an announcement is handled', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0);
  const moved = '10.0.1.99';
  peers.recordDatagram(a, moved, OURS, 7.9);
  t.equal(a.meta?.address, '10.0.1.2', 'not at once: the GUID may be forged');
  peers.recordDatagram(a, moved, OURS, 8);
  t.same(
    [a.meta, a.user],
    [
      { address: moved, port: 7410 },
      { address: moved, port: 7411 },
    ],
  );
  peers.recordDatagram(a, moved, OURS, 30);
  t.equal(a.meta?.address, moved, 'received from the address in use');
  peers.recordDatagram(a, '10.0.1.55', OURS, 37);
  peers.recordDatagram(a, '10.0.1.55', OURS, 39);
  t.equal(a.meta?.address, '10.0.1.2', 'what it announces has its turn');
});

t.test('at another address a peer is unproven and gets other numbers', async (t) => {
  const peers = new Peers();
  const both = (port: number) => [
    { address: '10.0.1.2', port },
    { address: '192.168.4.2', port },
  ];
  const challenge = new Challenge([{ entity: 0x3c2, last: 3 }], 2 ** 30);
  const { peer } = peers.add(data(1, { metaUnicast: both(7410), userUnicast: both(7411) }), challenge, ANNOUNCEMENT, '10.0.1.2', OURS, 0);
  const a = peer as Peer;
  t.same([a.isProven, a.wasProven], [false, false]);
  peers.prove(a);
  const first = challenge.firstOf(0x3c2);
  peers.update(a, data(1, { metaUnicast: both(7420), userUnicast: both(7421) }), Buffer.from('2'), '10.0.1.2', OURS, 1);
  t.same([a.isProven, a.meta.port, a.user?.port], [true, 7420, 7421], 'at other ports it is');
  peers.recordDatagram(a, '192.168.4.2', OURS, 9);
  t.same([a.isProven, a.wasProven, a.meta.address], [false, true, '192.168.4.2']);
  t.ok(challenge.firstOf(0x3c2) > first + 3);
  peers.prove(a);
  peers.update(a, data(1, { userUnicast: both(7411) }), Buffer.from('3'), '192.168.4.2', OURS, 10);
  t.notOk(a.isProven, 'nor is one that it announces in its place');
});

t.test('samples are sent to the proven address', async (t) => {
  const peers = new Peers();
  const otherNetwork = [{ address: '10.0.1.200', port: 7411 }];
  t.equal(add(peers, 1, 0, { userUnicast: otherNetwork }).user, null);
  t.same(add(peers, 2, 0, { userUnicast: [...otherNetwork, { address: '10.0.1.2', port: 7413 }] }).user, {
    address: '10.0.1.2',
    port: 7413,
  });
});

t.test('challenges at an address have an order', async (t) => {
  const peers = new Peers();
  const [a, b] = [add(peers, 1, 0), add(peers, 2, 0)];
  add(peers, 3, 0, { metaUnicast: [{ address: '10.0.1.3', port: 7410 }] });
  t.equal(peers.challengeTurn(a, 0), 'its turn');
  a.challenges = 1;
  t.equal(peers.challengeTurn(a, 1), 'not yet', 'the other one first');
  t.equal(peers.challengeTurn(b, 1), 'its turn');
  t.equal(peers.challengeTurn(a, 10), 'its turn', 'the other one is not active');
  peers.recordDatagram(b, '10.0.1.2', OURS, 10);
  t.equal(peers.challengeTurn(a, 10), 'not yet');
  b.receivedFromPathSeconds = Number.NEGATIVE_INFINITY;
  t.equal(peers.challengeTurn(a, 10), 'its turn', 'the other one only names the address');
  peers.prove(b);
  t.equal(peers.challengeTurn(a, 10), 'proven address');
});

t.test('an answer from any address confirms the path', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0);
  for (let now = 1; now < 60; now += 1) {
    peers.recordDatagram(a, '10.66.66.66', OURS, now);
    if (now % 5 === 0) peers.recordAcknowledgement(a, now);
  }
  t.equal(a.meta?.address, '10.0.1.2');
});
