import t from 'tap';
import { LIMITS } from '../../src/rtps/limits.ts';
import { only } from '../../src/rtps/testing/dissect.ts';
import { heapOctets } from '../../src/rtps/testing/heap.ts';
import { randomFrom } from '../../src/rtps/testing/random.ts';
import { recorded } from '../../src/rtps/testing/recorded.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { ForgedPeers } from './rtps/forged-peers.ts';
import { FuzzedSession } from './rtps/fuzzed-session.ts';
import { mutated, redirected } from './rtps/mutations.ts';

/**
 * The embedded participant under mutated datagrams: it never throws, what it keeps and sends stays bounded, and it continues to serve
 * others. EDGE_HEALTH_FUZZ=2000000 sets their number, EDGE_HEALTH_SEED the seed.
 */
const COUNT = Number(process.env['EDGE_HEALTH_FUZZ'] ?? runs(6000, 200_000));
/** Datagrams per virtual second. */
const A_SECOND = 1000;
/** The addresses from which they seem to come: a friend, this machine, others. */
const SOURCES = ['10.0.0.2', '10.0.0.1', '127.0.0.1', '10.0.0.99', '10.77.1.1'] as const;

t.setTimeout(300_000 + 10 * COUNT);

t.test(`${COUNT} mutated datagrams, seed ${SEED}`, async (t) => {
  const random = randomFrom(SEED);
  const fuzzed = new FuzzedSession(t);
  await fuzzed.session.start();
  const friend = await fuzzed.befriend(t);
  t.same(await fuzzed.exchanges(friend), { out: true, back: true }, 'before');
  const { participant } = fuzzed.session;
  const { target } = fuzzed;
  t.ok(target.writers.length >= 5 && target.readers.length >= 3, JSON.stringify(target));

  // Datagrams of real peers, with their own destination and redirected to this session, and those that the friend sends to it.
  const corpus = [...recorded().map(({ datagram }) => datagram), ...fuzzed.received];
  t.ok(corpus.length > 600, `${corpus.length} datagrams to begin with`);
  const pick = (): Buffer => corpus[Math.floor(random() * corpus.length)] as Buffer;
  const samples = only(
    'data',
    recorded(/call|topic/).map(({ datagram }) => datagram),
  ).flatMap(({ payload }) => payload ?? []);
  const forgedPeers = new ForgedPeers(random, target, samples);
  const next = (): Buffer[] => {
    const kind = random();
    if (kind < 0.3) return forgedPeers.next();
    const original = kind < 0.9 ? redirected(pick(), target, random) : Buffer.from(pick());
    return [random() < 0.2 ? original : mutated(original, pick(), random)];
  };

  // Mostly the address of its sender: from another address nothing of it would be read.
  const sourceOf = (datagram: Buffer): string => {
    const known = random() < 0.8 && datagram.length >= 20 ? participant.locatorsOf(datagram.toString('hex', 8, 20))[0]?.address : null;
    return known ?? (SOURCES[Math.floor(random() * SOURCES.length)] as string);
  };
  const heapBefore = heapOctets();
  const sentBefore = fuzzed.sentOctets;
  let injectedOctets = 0;
  let mostHeld = 0;
  let mostMatched = 0;
  let mostPeers = 0;
  let thrown: unknown = null;
  let waiting: Buffer[] = [];
  for (let i = 0; i < COUNT && thrown === null; i += 1) {
    if (waiting.length === 0) waiting = next();
    const datagram = waiting.shift() as Buffer;
    injectedOctets += datagram.length;
    try {
      fuzzed.network.inject(datagram, sourceOf(datagram), random() < 0.3);
      if (i % A_SECOND === 0) fuzzed.publish();
      if (i % 50 === 0) await fuzzed.time.pass(50 / A_SECOND);
    } catch (error) {
      thrown = error;
      t.comment(`datagram ${i} of seed ${SEED}: ${datagram.toString('hex')}`);
    }
    mostHeld = Math.max(mostHeld, participant.heldOctets);
    mostPeers = Math.max(mostPeers, participant.peerCount);
    if (i % 100 === 0) mostMatched = Math.max(mostMatched, participant.matchedCount);
  }
  const sentOctets = fuzzed.sentOctets - sentBefore;
  const growth = heapOctets() - heapBefore;
  t.comment(
    `${(injectedOctets / 1e6).toFixed(1)} MB in, ${(sentOctets / 1e6).toFixed(1)} MB out; ` +
      `at most ${mostPeers} peers, ${mostMatched} matches, ${mostHeld} octets held; ${participant.refused} refused; heap ${(growth / 1e6).toFixed(1)} MB more`,
  );
  t.equal(thrown, null, 'nothing that arrives makes it throw');
  t.same(fuzzed.lines, [], 'nor is there anything that it did not expect');
  t.ok(mostHeld <= LIMITS.bufferedOctets, `${mostHeld} octets held`);
  t.ok(mostPeers <= LIMITS.participants && mostMatched <= LIMITS.matched, `${mostPeers} peers, ${mostMatched} matches`);
  // A datagram whose content is kept, in whatever structure, takes at least its own octets.
  t.ok(growth < mostHeld + injectedOctets / 2, `the heap grew by ${growth} octets for ${injectedOctets} injected`);
  t.ok(sentOctets < 10 * injectedOctets, `${sentOctets} octets sent for ${injectedOctets}`);
  t.ok(participant.refused > COUNT / 100, `${participant.refused} refused: the mutations did something`);
  t.ok(mostPeers > 10 && mostMatched > 10, 'and came far enough to be matched');

  const newcomer = await fuzzed.befriend(t);
  t.same(await fuzzed.exchanges(newcomer), { out: true, back: true }, 'afterwards');
  // When the leases of the invented participants have ended, all of it is released.
  for (let passed = 0; passed < LIMITS.leaseSeconds + 10; passed += 5) await fuzzed.time.pass(5);
  t.ok(participant.peerCount <= 2, `${participant.peerCount} peers`);
  t.same(await fuzzed.exchanges(newcomer), { out: true, back: true }, 'and for good');
  // Something may still be pending for a friend, but nothing for participants that do not exist.
  for (const peer of [friend, newcomer]) peer.participant.stop();
  await fuzzed.time.pass(1);
  t.same([participant.peerCount, participant.matchedCount, participant.heldOctets], [0, 0, 0], 'nothing is left');
});
