import t from 'tap';
import { runs } from '../../../testkit/effort.ts';
import { LIMITS } from '../limits.ts';
import { destinationOf } from '../testing/dissect.ts';
import { ForgedParticipant } from '../testing/forged-participant.ts';
import { randomFrom } from '../testing/random.ts';
import { sides, write } from '../testing/sides.ts';
import { Challenge, Proof, ReaderProof } from './challenge.ts';

const [A, B] = [0x3c2, 0x4c2];
const WRITERS = [
  { entity: A, last: 5 },
  { entity: B, last: 0 },
];
const MOST = 2 ** 23;

t.test('exactly the numbers of all writers must be acknowledged', async (t) => {
  const challenge = new Challenge(WRITERS, MOST);
  const firsts = (): number[] => [challenge.firstOf(A), challenge.firstOf(B)];
  const [a = 0, b = 0] = firsts();
  t.ok(a > 1 && b > 1);
  t.notOk(challenge.acknowledge(A, 0), 'the question of Fast DDS');
  t.notOk(challenge.acknowledge(A, 1), 'the question of others');
  t.notOk(challenge.acknowledge(A, a), 'one of two');
  t.notOk(challenge.acknowledge(A, a));
  t.ok(challenge.acknowledge(B, b));
});

t.test('a wrong number renews all; a repeated one or an answer to former numbers does not', async (t) => {
  const challenge = new Challenge(WRITERS, MOST);
  const firsts = (): number[] => [challenge.firstOf(A), challenge.firstOf(B)];
  const [a = 0, b = 0] = firsts();
  challenge.acknowledge(A, a);
  t.notOk(challenge.acknowledge(B, b + 1));
  const [a2 = 0, b2 = 0] = firsts();
  t.ok(a2 > a + 5 && b2 > b + 1, 'above what it can know');
  for (const [writer, base] of [
    [B, b + 1],
    [A, a],
    [B, b],
  ] as const)
    t.notOk(challenge.acknowledge(writer, base));
  t.same(firsts(), [a2, b2]);
  t.notOk(challenge.acknowledge(B, b2), 'what was answered before does not count');
  t.ok(challenge.acknowledge(A, a2));
});

t.test('new numbers are above those that a rediscovering participant has seen, up to a limit', async (t) => {
  const challenge = new Challenge(WRITERS, MOST);
  t.notOk(challenge.acknowledge(A, 4_000_000));
  t.ok(challenge.firstOf(A) > 4_000_000 && challenge.firstOf(A) < 4_100_000);
  t.notOk(challenge.acknowledge(A, 2 ** 40));
  t.ok(challenge.firstOf(A) < 5_000_000);
  for (let i = 0; i < 1000; i += 1) {
    challenge.renew();
    for (const writer of [A, B]) t.ok(challenge.firstOf(writer) > 1 && challenge.firstOf(writer) < MOST + 2 ** 17);
  }
});

t.test('two participants discover each other over any lossy network, in any order of start', async (t) => {
  let [longest, tries] = [0, 0];
  for (const loss of [0.1, 0.3]) {
    for (let seed = 1; seed <= runs(25, 1000); seed += 1) {
      const random = randomFrom(seed);
      const { time, side } = sides(t, {
        delayMs: () => (random() < loss ? null : 1 + random() * 20),
        copies: () => (random() < 0.1 ? 2 : 1),
      });
      const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
      await a.participant.start();
      await time.pass(random() * 3);
      await b.participant.start();
      const began = time.now();
      const proven = (): boolean => a.participant.isProven(b.participant.prefix) && b.participant.isProven(a.participant.prefix);
      while (!proven() && time.now() - began < 60) await time.pass(0.1);
      if (!proven()) t.fail(`seed ${seed}, loss ${loss}`);
      longest = Math.max(longest, time.now() - began);
      tries += 1;
      write(a, 'after all');
      // Repairs are at most three seconds apart, and at this loss three of four fail.
      for (let waited = 0; waited < 60 && b.reader.samples.at(-1) !== 'after all'; waited += 0.5) await time.pass(0.5);
      if (b.reader.samples.at(-1) !== 'after all') t.fail(`seed ${seed}, loss ${loss}: no sample`);
      a.participant.stop();
      b.participant.stop();
    }
  }
  t.pass(`${tries} times, within ${longest.toFixed(1)} s`);
});

t.test('a hundred participants of one machine start at the same moment', async (t) => {
  const { time, wire, side } = sides(t);
  const a = side('10.0.0.1');
  const strangers = new Map<string | null, ForgedParticipant>();
  const readyAt = time.now() + 2;
  wire.onFlight = ({ datagram, to }) => {
    // The machine is so busy that none of them reads anything at first, and some have left when the others do.
    const stranger = time.now() < readyAt ? undefined : strangers.get(destinationOf(datagram));
    const answer = stranger?.answer(datagram);
    if (answer) setTimeout(() => a.network.inject(answer, to, false), 20);
  };
  await a.participant.start();
  const forged = Array.from({ length: 100 }, (_, i) => new ForgedParticipant(i, { address: '10.0.0.99', port: 7410 + 2 * i }));
  for (const [i, stranger] of forged.entries()) if (i >= 5) strangers.set(stranger.prefix, stranger);
  const began = time.now();
  const proven = (): number => forged.filter(({ prefix }) => a.participant.isProven(prefix)).length;
  for (let second = 0; second < 30 && proven() < 95; second += 1) {
    if (second % 3 === 0) for (const stranger of forged) a.network.inject(stranger.announcement(), '10.0.0.99', true);
    await time.pass(1);
  }
  t.equal(proven(), 95, `within ${(time.now() - began).toFixed(0)} s`);
});

t.test('a participant is rediscovered while it still remembers this one', async (t) => {
  for (let round = 0; round < 8; round += 1) {
    const { time, side } = sides(t);
    const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
    await a.participant.start();
    await b.participant.start();
    await time.pass(3);
    const inject = a.network.inject.bind(a.network);
    a.network.inject = () => undefined;
    await time.pass(60);
    t.notOk(a.participant.isProven(b.participant.prefix));
    t.ok(b.participant.isProven(a.participant.prefix));
    a.network.inject = inject;
    await time.pass(5);
    t.ok(a.participant.isProven(b.participant.prefix));
    write(a, 'again');
    await time.pass(1);
    t.equal(b.reader.samples.at(-1), 'again');
    a.participant.stop();
    b.participant.stop();
  }
});

t.test('the limit of an address is reset after a time', async (t) => {
  const { time, side } = sides(t);
  const a = side('10.0.0.1');
  await a.participant.start();
  const stranger = new ForgedParticipant(1);
  for (let i = 0; i < 100; i += 1) {
    a.network.inject(stranger.announcement(), '10.0.0.99', true);
    await time.pass(3);
  }
  // It answers long after the limit of its address was reached.
  const b = side('10.0.0.99');
  await b.participant.start();
  await time.pass(LIMITS.unprovenSeconds + 5);
  t.ok(a.participant.isProven(b.participant.prefix));
});

t.test('a repeated proof: new numbers prove it, guesses fail it, late answers are ignored', async (t) => {
  const writers = [
    { entity: A, last: 5 },
    { entity: B, last: 0 },
  ];
  const proven = async (answer: (proof: Proof, former: readonly number[], firsts: readonly number[]) => void): Promise<boolean> => {
    const challenge = new Challenge(writers, MOST);
    const firsts = (): number[] => writers.map(({ entity }) => challenge.firstOf(entity));
    const former = firsts();
    const proof = new Proof(challenge, writers);
    answer(proof, former, firsts());
    return proof.result;
  };
  t.ok(
    await proven((proof, [former = 0], [a = 0, b = 0]) => {
      for (const base of [0, 1, former, former + 5]) proof.acknowledge(A, base);
      proof.acknowledge(A, a + 5);
      proof.acknowledge(A, a + 5);
      proof.acknowledge(B, b);
    }),
  );
  t.notOk(await proven((proof, _, [a = 0]) => proof.acknowledge(A, a)), 'one of two');
  for (const offset of [-1, 6, 2 ** 20]) {
    for (const [guesses, isProven] of [
      [2, true],
      [3, false],
    ] as const) {
      const result = proven((proof, _, [a = 0, b = 0]) => {
        for (let i = 0; i < guesses; i += 1) proof.acknowledge(A, a + offset);
        proof.acknowledge(A, a);
        proof.acknowledge(B, b);
      });
      t.equal(await result, isProven, `${guesses} times ${offset} beside the number`);
    }
  }
});

t.test('a present participant can be proven again without other effects', async (t) => {
  const { time, side } = sides(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  await a.participant.start();
  await b.participant.start();
  await time.pass(5);
  const prove = async (): Promise<boolean> => {
    const proof = a.participant.prove(b.participant.prefix, '10.0.0.2');
    await time.pass(1);
    return proof;
  };
  for (let i = 0; i < 20; i += 1) t.ok(await prove());
  const both = [a.participant.prove(b.participant.prefix, '10.0.0.2'), a.participant.prove(b.participant.prefix, '10.0.0.2')];
  write(a, 'one');
  write(b, 'two');
  await time.pass(1);
  t.same(await Promise.all(both), [true, true]);
  t.same([a.reader.samples, b.reader.samples], [['two'], ['one']]);
  b.network.isFrozen = true;
  t.notOk(await prove());
  t.ok(a.participant.isProven(b.participant.prefix), 'it may only be slow');
  b.network.isFrozen = false;
  await time.pass(3);
  t.ok(await prove());
  t.notOk(await a.participant.prove('0110aaaaaaaaaaaaaaaaaaaa', '10.0.0.2'));
  t.same([...a.participant.lines, ...b.participant.lines], []);
});

t.test('a reader is proven by the expected number alone, and not after three guesses', async (t) => {
  const genuine = new ReaderProof(10);
  for (let late = 2; late <= 10; late += 1) genuine.acknowledge(late);
  genuine.acknowledge(genuine.expected);
  t.ok(await genuine.result);
  const forged = new ReaderProof(10);
  for (let guess = 1; guess <= 3; guess += 1) forged.acknowledge(forged.expected + guess);
  forged.acknowledge(forged.expected);
  t.notOk(await forged.result);
});
