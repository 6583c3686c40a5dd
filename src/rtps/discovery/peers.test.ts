import t from 'tap';
import { LIMITS } from '../limits.ts';
import { Challenge } from './challenge.ts';
import type { ParticipantData } from './discovery-data.ts';
import { type Peer, Peers, pathFrom } from './peers.ts';

const HERE = '10.0.1.2';

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

function add(peers: Peers, number: number, now: number, changes: Partial<ParticipantData> = {}, source = HERE): Peer {
  const peer = peers.add(data(number, changes), newChallenge(), ANNOUNCEMENT, source, false, now);
  if (!peer) throw new Error('refused');
  return peer;
}

t.test('a lease ends without datagrams', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 100);
  peers.prove(a, HERE);
  t.equal(peers.nextExpirySeconds, 100 + LIMITS.unansweredLeaseSeconds, 'or earlier, had it not answered');
  t.same(peers.expired(119.9), []);
  t.equal(peers.nextExpirySeconds, 120);
  peers.recordDatagram(a, HERE, 119.9);
  t.same(peers.expired(120.1), []);
  t.equal(peers.nextExpirySeconds, 139.9);
  t.same(peers.expired(140), [a]);
  t.equal(peers.get(a.data.prefix), a, 'still listed');
  peers.remove(a);
  t.equal(peers.size, 0);
  t.equal(peers.expired(141).length, 0);
  t.equal(peers.nextExpirySeconds, Number.POSITIVE_INFINITY);
});

t.test('the lease of an unproven participant is short, whatever is announced', async (t) => {
  for (const leaseSeconds of [0, 300]) {
    const peers = new Peers();
    const a = add(peers, 1, 0, { leaseSeconds });
    t.same(peers.expired(LIMITS.unansweredLeaseSeconds), []);
    t.same(peers.expired(LIMITS.unansweredLeaseSeconds + 0.1), [a]);
  }
});

t.test('a pause of this process does not end leases', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0);
  peers.prove(a, HERE);
  peers.extendLeases(3600);
  t.same(peers.expired(3610), []);
  t.same(peers.expired(3621), [a]);
});

t.test('at the limit the unproven participant with the oldest datagram is removed', async (t) => {
  const peers = new Peers();
  const source = (i: number): string => `10.1.${i >> 8}.${i & 255}`;
  const all = Array.from({ length: LIMITS.participants }, (_, i) => add(peers, i + 1, 0, {}, source(i)));
  for (const peer of all) if (peer !== all[7]) peers.recordDatagram(peer, peer.meta.address, 1);
  const isListed = (peer: Peer | undefined): boolean => peers.get(peer?.key ?? '') === peer;
  t.ok(isListed(add(peers, 9001, 2, {}, source(9001))));
  t.equal(peers.size, LIMITS.participants);
  t.notOk(isListed(all[7]));
  for (const each of peers.all()) peers.prove(each, each.meta.address);
  t.equal(peers.add(data(9002), newChallenge(), ANNOUNCEMENT, HERE, false, 3), null);
  t.equal(peers.refused, 1);
  t.equal(peers.size, LIMITS.participants);
});

t.test('unproven participants at one address do not displace those at others', async (t) => {
  const peers = new Peers();
  const other = add(peers, 1, 0, {}, '10.1.1.1');
  const [proven, first] = [add(peers, 2, 0), add(peers, 3, 1)];
  peers.prove(proven, HERE);
  for (let number = 4; number < 4 + 2 * LIMITS.participants; number += 1) add(peers, number, 2);
  t.equal(peers.size, LIMITS.unprovenAtAddress + 2);
  t.equal(peers.get(other.key), other);
  t.equal(peers.get(proven.key), proven);
  t.equal(peers.get(first.key), undefined, 'the one with the oldest datagram is removed');
});

t.test('ended leases are searched for at intervals, however many end', async (t) => {
  const peers = new Peers();
  for (let number = 1; number <= 10; number += 1) peers.prove(add(peers, number, 100, { leaseSeconds: number / 100 }), HERE);
  t.equal(peers.nextExpirySeconds, 100.01);
  t.equal(peers.expired(100.015).length, 1);
  t.ok(peers.nextExpirySeconds > 100.1, 'the others later, together');
  t.equal(peers.expired(peers.nextExpirySeconds).length, 10);
});

t.test('an announcement is kept as a copy, unless it is large', async (t) => {
  const peers = new Peers();
  const datagram = Buffer.from(ANNOUNCEMENT);
  const peer = peers.add(data(1), newChallenge(), datagram, HERE, false, 0);
  datagram.fill(0);
  t.same(peer?.announcement, ANNOUNCEMENT);
  t.equal(peer?.announcement.buffer.byteLength, ANNOUNCEMENT.length);
  peers.update(peer as Peer, data(1), Buffer.alloc(LIMITS.announcementOctets + 1), HERE, 0);
  t.equal(peer?.announcement.length, 0);
});

t.test('the path to a participant is at the source of its announcement', async (t) => {
  const lan = { address: HERE, port: 7410 };
  const wlan = { address: '192.168.7.9', port: 7412 };
  const both = data(1, { metaUnicast: [lan, wlan] });
  t.same(pathFrom(both, '192.168.7.9', false), wlan);
  t.same(pathFrom(both, '10.9.9.9', false), { address: '10.9.9.9', port: 7410 }, 'also if it is not announced');
  t.same(pathFrom(both, '127.0.0.1', true), lan, 'on this machine, one that it announces');
  t.throws(() => pathFrom(data(1, { metaUnicast: [] }), HERE, false), RangeError);
});

t.test('datagrams from an address that was never proven are not those of the participant', async (t) => {
  const peers = new Peers();
  const other = '192.168.4.2';
  const a = add(peers, 1, 0, {
    metaUnicast: [
      { address: HERE, port: 7410 },
      { address: other, port: 7410 },
    ],
  });
  const { prefix } = a.data;
  peers.prove(a, HERE);
  t.equal(peers.find(prefix, HERE, false), a);
  t.equal(peers.find(prefix, other, false), undefined, 'although it announces it');
  peers.vouch(a, other);
  t.equal(peers.find(prefix, other, false), a);
});

t.test('the same GUID at another address is another participant', async (t) => {
  const peers = new Peers();
  const thief = '10.0.1.66';
  const forged = data(1, { metaUnicast: [{ address: thief, port: 7410 }] });
  const first = peers.add(forged, newChallenge(), ANNOUNCEMENT, thief, false, 0);
  const genuine = add(peers, 1, 1);
  const { prefix } = genuine.data;
  t.equal(first?.key, prefix);
  t.not(genuine.key, prefix);
  t.match(genuine.key, /^[0-9a-f]{24}$/);
  t.same([peers.find(prefix, thief, false), peers.find(prefix, HERE, false)], [first, genuine]);
  t.same(peers.withPrefix(prefix), [first, genuine]);
  t.equal(peers.get(genuine.key), genuine);
  peers.remove(first as Peer);
  t.same([peers.find(prefix, HERE, false), peers.withPrefix(prefix), peers.size], [genuine, [genuine], 1]);
  peers.remove(genuine);
  t.same([peers.withPrefix(prefix), peers.size], [[], 0]);
});

t.test('claims to one GUID are limited, and none removes a proven participant', async (t) => {
  const peers = new Peers();
  const genuine = add(peers, 1, 0);
  peers.prove(genuine, HERE);
  for (let i = 1; i < 50; i += 1) {
    const thief = `10.0.2.${i}`;
    peers.add(data(1, { metaUnicast: [{ address: thief, port: 7410 }] }), newChallenge(), ANNOUNCEMENT, thief, false, i);
  }
  t.equal(peers.withPrefix(genuine.data.prefix).length, LIMITS.participantsOfGuid);
  t.equal(peers.find(genuine.data.prefix, HERE, false), genuine);
});

t.test('an address counts as reachable while a participant that was proven there sends', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0);
  t.ok(peers.mayBeUnreachable(a, 0), 'the announcement may be forged');
  peers.prove(a, HERE);
  t.notOk(peers.mayBeUnreachable(a, 1));
  t.notOk(peers.mayBeUnreachable(add(peers, 2, 1), 1), 'another one at the same address');
  t.ok(peers.mayBeUnreachable(add(peers, 3, 1, { metaUnicast: [{ address: '10.0.1.3', port: 7410 }] }, '10.0.1.3'), 1));
  t.ok(peers.mayBeUnreachable(a, 10), 'it no longer sends');
  peers.recordDatagram(a, HERE, 10);
  t.notOk(peers.mayBeUnreachable(a, 10));
});

t.test('another address is used only after a timeout of the path', async (t) => {
  const peers = new Peers();
  const both = (port: number) => [
    { address: HERE, port },
    { address: '192.168.4.2', port },
  ];
  const a = add(peers, 1, 0, { metaUnicast: both(7410), userUnicast: both(7411) });
  t.equal(a.meta.address, HERE);
  peers.prove(a, HERE);
  peers.recordDatagram(a, '192.168.4.2', 5);
  t.equal(a.meta.address, HERE);
  peers.recordDatagram(a, HERE, 6);
  peers.recordDatagram(a, '192.168.4.2', 11);
  t.equal(a.meta.address, HERE);
  peers.recordAcknowledgement(a, 12);
  peers.recordDatagram(a, '192.168.4.2', 17.5);
  t.equal(a.meta.address, HERE, 'an answer from any address confirms the path');
  peers.recordDatagram(a, '192.168.4.2', 18);
  t.same([a.meta, a.user, a.isProven], [{ address: '192.168.4.2', port: 7410 }, { address: '192.168.4.2', port: 7411 }, false]);
  peers.recordDatagram(a, '10.0.1.99', 30);
  t.same(
    [a.meta, a.user],
    [
      { address: '10.0.1.99', port: 7410 },
      { address: '10.0.1.99', port: 7411 },
    ],
    'one that it does not announce',
  );
});

t.test('a changed announcement gives other addresses and another lease', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0);
  peers.prove(a, HERE);
  const at = (address: string, port: number) => [{ address, port }];
  peers.update(a, data(1, { leaseSeconds: 5 }), Buffer.from('2'), '10.66.6.6', 1);
  t.equal(a.meta.address, HERE, 'what stays is kept');
  t.equal(peers.nextExpirySeconds, 5);
  peers.update(a, data(1, { metaUnicast: at('10.0.1.7', 7412), userUnicast: at('10.0.1.7', 7413) }), Buffer.from('3'), '10.0.1.7', 1);
  t.same(a.meta, { address: '10.0.1.7', port: 7412 });
  t.same(a.user, { address: '10.0.1.7', port: 7413 });
});

t.test('at another address a peer is unproven and gets other numbers', async (t) => {
  const peers = new Peers();
  const both = (port: number) => [
    { address: HERE, port },
    { address: '192.168.4.2', port },
  ];
  const challenge = new Challenge([{ entity: 0x3c2, last: 3 }], 2 ** 30);
  const peer = peers.add(data(1, { metaUnicast: both(7410), userUnicast: both(7411) }), challenge, ANNOUNCEMENT, HERE, false, 0);
  const a = peer as Peer;
  t.same([a.isProven, a.wasProven], [false, false]);
  peers.prove(a, HERE);
  const first = challenge.firstOf(0x3c2);
  peers.update(a, data(1, { metaUnicast: both(7420), userUnicast: both(7421) }), Buffer.from('2'), HERE, 1);
  t.same([a.isProven, a.meta.port, a.user?.port], [true, 7420, 7421], 'at other ports it is');
  peers.recordDatagram(a, '192.168.4.2', 9);
  t.same([a.isProven, a.wasProven, a.meta.address], [false, true, '192.168.4.2']);
  t.ok(challenge.firstOf(0x3c2) > first + 3);
});

t.test('a participant that is not reachable continues where its successor is proven', async (t) => {
  const peers = new Peers();
  const a = add(peers, 1, 0);
  peers.prove(a, HERE);
  const moved = '10.0.1.7';
  const peer = peers.add(data(1, { metaUnicast: [{ address: moved, port: 7410 }] }), newChallenge(), ANNOUNCEMENT, moved, false, 9);
  peers.remove(peer as Peer);
  peers.move(a, peer as Peer, 10);
  t.same([a.meta.address, a.isProven, a.challenge, a.receivedSeconds], [moved, true, peer?.challenge, 10]);
  t.same([peers.find(a.data.prefix, moved, false), peers.find(a.data.prefix, HERE, false)], [a, undefined]);
});

t.test('samples are sent to the proven address', async (t) => {
  const peers = new Peers();
  const otherNetwork = [{ address: '10.0.1.200', port: 7411 }];
  t.equal(add(peers, 1, 0, { userUnicast: otherNetwork }).user, null);
  t.same(add(peers, 2, 0, { userUnicast: [...otherNetwork, { address: HERE, port: 7413 }] }).user, { address: HERE, port: 7413 });
});

t.test('challenges at an address have an order', async (t) => {
  const peers = new Peers();
  const [a, b] = [add(peers, 1, 0), add(peers, 2, 0)];
  t.ok(peers.isNextToChallenge(a, 0));
  a.challenges = 1;
  t.notOk(peers.isNextToChallenge(a, 1), 'the other one first');
  t.ok(peers.isNextToChallenge(b, 1));
  t.ok(peers.isNextToChallenge(a, 10), 'the other one is not active');
  peers.recordDatagram(b, HERE, 10);
  t.notOk(peers.isNextToChallenge(a, 10));
  t.notOk(peers.hasProvenAt(HERE, 0));
  peers.prove(b, HERE);
  t.ok(peers.hasProvenAt(HERE, 0));
  t.notOk(peers.hasProvenAt('10.1.1.1', 1));
});
