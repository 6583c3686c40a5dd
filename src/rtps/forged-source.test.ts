import t, { type Test } from 'tap';
import type { ParticipantOptions } from './participant.ts';
import { destinationOf, only } from './testing/dissect.ts';
import { ForgedParticipant } from './testing/forged-participant.ts';
import { entity, message, sn, submessage, u16 } from './testing/octets.ts';
import { type Side, type Sides, sides, write } from './testing/sides.ts';
import { DISCOVERY_READERS, ENTITY } from './wire/protocol.ts';

/**
 * Attacks by hosts that forge the source address of a participant, or claim its GUID at their own: what they send in its name is believed only
 * if the participant does not respond at its address any more.
 */

const [OWN, FRIEND, ATTACKER] = ['10.0.0.1', '10.0.0.2', '10.0.0.99'];

interface Scene extends Sides {
  /** The participant under test. */
  readonly own: Side;
  /** The participant in whose name the attacker sends. */
  readonly friend: Side;
  /** Creates datagrams with its GUID. */
  readonly forged: ForgedParticipant;
  /** Removed endpoints of the friend: whether it has left. */
  readonly gone: boolean[];
  /** The friend's samples arrive, and those to it. */
  works(t: Test): Promise<void>;
}

async function scene(t: Test, options: Partial<ParticipantOptions> = {}): Promise<Scene> {
  const all = sides(t);
  const gone: boolean[] = [];
  const own = all.side(OWN, { onRemoteGone: (_, hasLeft) => gone.push(hasLeft), ...options });
  const friend = all.side(FRIEND);
  await own.participant.start();
  await friend.participant.start();
  await all.time.pass(5);
  let samples = 0;
  const works = async (t: Test): Promise<void> => {
    samples += 1;
    write(friend, `from the friend ${samples}`);
    write(own, `to the friend ${samples}`);
    await all.time.pass(1);
    t.equal(own.reader.samples.at(-1), `from the friend ${samples}`);
    t.equal(friend.reader.samples.at(-1), `to the friend ${samples}`);
  };
  await works(t);
  return {
    ...all,
    own,
    friend,
    gone,
    works,
    forged: ForgedParticipant.named(friend.participant.prefix, { address: ATTACKER, port: 7410 }),
  };
}

/** The disposal of a participant, without a signature. */
function disposalOf(prefix: string): Buffer {
  const ends = [u16(0), u16(16), entity(0), entity(ENTITY.SPDP_WRITER), sn(9)];
  return message(prefix, submessage(0x15, [...ends, Buffer.from([0, 3, 0, 0, 1, 0, 0, 0])], { flags: 8 }));
}

t.test('a disposal from the address of a participant that is present has no effect', async (t) => {
  const { own, friend, gone, time, works } = await scene(t);
  for (let i = 0; i < 20; i += 1) {
    own.network.inject(disposalOf(friend.participant.prefix), FRIEND, i % 2 === 0);
    await works(t);
  }
  await time.pass(5);
  t.same(gone, []);
  t.match(own.participant.lines.join('\n'), /forged datagram ignored.*10\.0\.0\.2/);
  // It is lost now, and what is sent in its name does not hide that.
  friend.network.isFrozen = true;
  for (let i = 0; i < 80; i += 1) {
    own.network.inject(disposalOf(friend.participant.prefix), FRIEND, false);
    own.network.inject(ForgedParticipant.named(friend.participant.prefix).heartbeat(0x103, 1, 1), FRIEND, false);
    await time.pass(0.1);
  }
  t.same(gone, [false, false], 'lost, not left');
});

t.test('a participant that leaves has left at once; one that is lost before its forged disposal has not', async (t) => {
  for (const isLost of [false, true]) {
    const { own, friend, gone, time } = await scene(t);
    if (isLost) {
      friend.network.isFrozen = true;
      own.network.inject(disposalOf(friend.participant.prefix), FRIEND, true);
      await time.pass(3);
    } else {
      friend.participant.stop();
      await time.pass(0.1);
    }
    t.same(gone, [!isLost, !isLost]);
    t.equal(own.participant.peerCount, 0);
  }
});

t.test('the disposal of another implementation is credible if it is sent soon after other datagrams and nothing responds', async (t) => {
  for (const [silentSeconds, hasLeft] of [
    [1, true],
    [6, false],
  ] as const) {
    const { own, gone, time, wire } = await scene(t);
    const vendor = new ForgedParticipant(7, { address: ATTACKER, port: 7410 });
    let isThere = true;
    wire.onFlight = ({ datagram, to }) => {
      const answer = isThere && to === ATTACKER && destinationOf(datagram) === vendor.prefix && vendor.answer(datagram);
      if (answer) setTimeout(() => own.network.inject(answer, ATTACKER, false), 1);
    };
    own.network.inject(vendor.announcement(), ATTACKER, true);
    await time.pass(0.5);
    own.network.inject(vendor.endpoint(true, 1), ATTACKER, false);
    await time.pass(0.5);
    own.network.inject(disposalOf(vendor.prefix), ATTACKER, false);
    await time.pass(3);
    t.same(gone, [], 'it is present');
    // Suspicion ends after ten minutes.
    for (let i = 0; i < 210; i += 1) {
      own.network.inject(vendor.announcement(), ATTACKER, true);
      await time.pass(3);
    }
    own.network.inject(vendor.announcement(), ATTACKER, true);
    isThere = false;
    await time.pass(silentSeconds);
    own.network.inject(disposalOf(vendor.prefix), ATTACKER, false);
    await time.pass(3);
    t.same(gone, [hasLeft], `after ${silentSeconds} s`);
  }
});

t.test('a changed announcement from the address of a participant that is present has no effect', async (t) => {
  const { own, friend, forged, gone, time, wire, works } = await scene(t);
  const toAttacker: string[] = [];
  wire.onFlight = ({ from, to }) => {
    if (from === OWN && to === ATTACKER) toAttacker.push(to);
  };
  const atOtherPorts = ForgedParticipant.named(friend.participant.prefix, { address: FRIEND, port: 9999 });
  for (let second = 0; second < 120; second += 1) {
    for (const lie of [forged.announcement(), forged.announcement('', 0), atOtherPorts.announcement('', 0.1)])
      own.network.inject(lie, FRIEND, second % 2 === 0);
    await works(t);
  }
  t.same([gone, toAttacker], [[], []]);
  t.same(own.participant.locatorsOf(friend.participant.prefix), [
    { address: FRIEND, port: 7410 },
    { address: FRIEND, port: 7411 },
  ]);
  await time.pass(30);
  t.same(gone, []);
});

t.test('announcements from the address of a participant that is not proven yet do not keep it out', async (t) => {
  const { side, time, wire } = sides(t);
  const own = side(OWN);
  await own.participant.start();
  const vendor = new ForgedParticipant(7, { address: FRIEND, port: 7410 });
  wire.onFlight = ({ datagram, port, to }) => {
    const answer = to === FRIEND && port === 7410 && destinationOf(datagram) === vendor.prefix && vendor.answer(datagram);
    // Long enough for something to be forged in between.
    if (answer) setTimeout(() => own.network.inject(answer, FRIEND, false), 50);
  };
  const forge = (port: number, leaseSeconds: number): void =>
    own.network.inject(ForgedParticipant.named(vendor.prefix, { address: FRIEND, port }).announcement('', leaseSeconds), FRIEND, true);
  for (let i = 0; i < 500; i += 1) {
    if (i % 300 === 0) own.network.inject(vendor.announcement(), FRIEND, true);
    await time.pass(0.01);
    forge(9000, 0);
    forge(7410, 0);
  }
  t.ok(own.participant.isProven(vendor.prefix));
  t.match(own.participant.locatorsOf(vendor.prefix)[0], { address: FRIEND, port: 7410 });
});

t.test('forged acknowledgements do not make a participant iterate over billions of numbers', async (t) => {
  const { side, time, wire } = sides(t);
  const own = side(OWN);
  await own.participant.start();
  const flights: Buffer[] = [];
  wire.onFlight = ({ datagram, to }) => {
    if (to === FRIEND) flights.push(datagram);
  };
  // It claims to be of an implementation that does not iterate.
  const forged = new ForgedParticipant(7, { address: FRIEND, port: 7410 });
  for (let i = 0; i < 10; i += 1) {
    own.network.inject(forged.announcement(), FRIEND, true);
    for (const [writer, reader] of DISCOVERY_READERS) {
      for (const base of [2 ** 23 - 2, 2 ** 40]) own.network.inject(forged.acknowledgement(reader, writer, base + i), FRIEND, false);
    }
    await time.pass(0.5);
  }
  const firsts = only('heartbeat', flights).map(({ first }) => first);
  t.ok(firsts.length > 0);
  t.ok(Math.max(...firsts) < 2 ** 24, `numbers up to ${Math.max(...firsts)}`);
});

t.test('a changed announcement counts when the former one is not repeated any more', async (t) => {
  const { own, time, wire } = await scene(t);
  const at = (port: number): ForgedParticipant => new ForgedParticipant(7, { address: ATTACKER, port });
  const before = at(7410);
  wire.onFlight = ({ datagram, to }) => {
    const answer = to === ATTACKER && destinationOf(datagram) === before.prefix && before.answer(datagram);
    if (answer) setTimeout(() => own.network.inject(answer, ATTACKER, false), 1);
  };
  own.network.inject(before.announcement(), ATTACKER, true);
  await time.pass(1);
  t.ok(own.participant.isProven(before.prefix));
  for (let i = 0; i < 13; i += 1) {
    own.network.inject(at(7420).announcement(), ATTACKER, true);
    t.equal(own.participant.locatorsOf(before.prefix)[0]?.port, i < 12 ? 7410 : 7420);
    await time.pass(3);
  }
});

t.test('two participants with one GUID: neither excludes the other', async (t) => {
  for (const order of ['the genuine one first', 'the other one first']) {
    const { side, time } = sides(t);
    const own = side(OWN);
    const genuine = side(FRIEND);
    const rival = side(ATTACKER, { prefix: genuine.participant.prefix });
    const [first, second] = order === 'the genuine one first' ? [genuine, rival] : [rival, genuine];
    // They ignore each other, because each takes the other's datagrams for its own.
    await first.participant.start();
    await own.participant.start();
    await time.pass(5);
    await second.participant.start();
    await time.pass(8);
    for (let i = 0; i < 30; i += 1) {
      write(genuine, `genuine ${i}`);
      write(rival, `rival ${i}`);
      write(own, `own ${i}`);
      await time.pass(1);
    }
    for (const [who, { reader }] of Object.entries({ genuine, rival })) {
      const expected = Array.from({ length: 30 }, (_, i) => `${who} ${i}`);
      t.same(
        own.reader.samples.filter((sample) => sample.startsWith(who)),
        expected,
        order,
      );
      t.same(
        reader.samples.filter((sample) => sample.startsWith('own')),
        Array.from({ length: 30 }, (_, i) => `own ${i}`),
        order,
      );
    }
    t.match(own.participant.lines.join('\n'), /two participants with one GUID.*10\.0\.0\.(2|99).*10\.0\.0\.(2|99)/);
    rival.participant.stop();
    await time.pass(1);
    write(genuine, 'still here');
    await time.pass(1);
    t.equal(own.reader.samples.at(-1), 'still here');
  }
});

t.test('a rival that was first and acknowledges from the address of the genuine participant does not exclude it', async (t) => {
  const { side, time, wire } = sides(t);
  const [own, genuine] = [side(OWN), side(FRIEND)];
  const rival = ForgedParticipant.named(genuine.participant.prefix, { address: ATTACKER, port: 7410 });
  let from = ATTACKER;
  wire.onFlight = ({ datagram, to }) => {
    const answer = to === ATTACKER && destinationOf(datagram) === rival.prefix && rival.answer(datagram);
    if (answer) setTimeout(() => own.network.inject(answer, from, false), 1);
  };
  await own.participant.start();
  own.network.inject(rival.announcement(), ATTACKER, true);
  await time.pass(3);
  t.ok(own.participant.isProven(rival.prefix));
  from = FRIEND;
  own.network.inject(rival.heartbeat(0x103, 1, 1), FRIEND, false);
  await time.pass(0.5);
  from = ATTACKER;
  await genuine.participant.start();
  for (let i = 0; i < 60; i += 1) {
    for (const source of [ATTACKER, FRIEND]) own.network.inject(rival.announcement(), source, true);
    write(genuine, `${i}`);
    await time.pass(1);
  }
  t.same(
    own.reader.samples,
    Array.from({ length: 60 }, (_, i) => `${i}`),
  );
});

t.test('a participant continues at another address when it does not respond at the former one', async (t) => {
  const { own, friend, gone, time } = await scene(t);
  const [received] = [own.reader.samples.length];
  friend.network.addresses = { lan: '10.0.0.7' };
  for (let i = 0; i < 20; i += 1) {
    write(friend, `moved ${i}`);
    await time.pass(1);
  }
  t.same(
    own.reader.samples.slice(received),
    Array.from({ length: 20 }, (_, i) => `moved ${i}`),
  );
  t.equal(own.participant.locatorsOf(friend.participant.prefix)[0]?.address, '10.0.0.7');
  t.same(gone, []);
});

t.test('a participant may send from another address than its path', async (t) => {
  const { own, friend, works, wire } = await scene(t);
  const other = '10.0.0.77';
  const inject = own.network.inject.bind(own.network);
  own.network.inject = (datagram, from, viaMulticast, port) => inject(datagram, from === FRIEND ? other : from, viaMulticast, port);
  for (let i = 0; i < 5; i += 1) await works(t);
  t.equal(own.participant.locatorsOf(friend.participant.prefix)[0]?.address, FRIEND);
  // Nobody else is believed because of that.
  wire.onFlight = () => undefined;
  inject(ForgedParticipant.named(friend.participant.prefix).data(0x103, Buffer.from('a lie'), ENTITY.UNKNOWN, 99), ATTACKER, false);
  await works(t);
  t.notOk(own.reader.samples.includes('a lie'));
});

t.test('a request is proved only at the very address that it comes from', async (t) => {
  const { own, friend, time, wire } = await scene(t);
  const proof = async (source: string): Promise<boolean> => {
    const result = own.participant.prove(friend.participant.prefix, source);
    await time.pass(1.5);
    return result;
  };
  t.ok(await proof(FRIEND));
  t.notOk(await proof(ATTACKER));
  t.ok(await proof(FRIEND), 'also afterwards');
  // A participant that announces a second address, which is not its own.
  const allowed = '10.0.0.50';
  const liar = new ForgedParticipant(7, { address: ATTACKER, port: 7410 }, { address: allowed, port: 7411 });
  wire.onFlight = ({ datagram, to }) => {
    const answer = to === ATTACKER && destinationOf(datagram) === liar.prefix && liar.answer(datagram);
    // It answers from both.
    if (answer) for (const from of [ATTACKER, allowed]) setTimeout(() => own.network.inject(answer, from, false), 1);
  };
  own.network.inject(liar.announcement(), ATTACKER, true);
  await time.pass(1);
  t.ok(own.participant.isProven(liar.prefix));
  own.network.inject(liar.endpoint(true, 1), allowed, false);
  await time.pass(3);
  const result = own.participant.prove(liar.prefix, allowed);
  await time.pass(1.5);
  t.notOk(await result);
});

t.test('a participant of two networks may request from the address that is not its path', async (t) => {
  const { side, time } = sides(t);
  const [a, b] = [side(OWN), side(FRIEND)];
  const far = '10.0.9.2';
  a.network.addresses = { lan: OWN, far: '10.0.9.1' };
  b.network.addresses = { lan: FRIEND, far };
  await a.participant.start();
  await b.participant.start();
  await time.pass(5);
  t.equal(a.participant.locatorsOf(b.participant.prefix)[0]?.address, FRIEND);
  // It sends everything by the other network.
  const inject = a.network.inject.bind(a.network);
  a.network.inject = (datagram, from, viaMulticast, port) => inject(datagram, from === FRIEND ? far : from, viaMulticast, port);
  // Other implementations accept datagrams from any address.
  const injectThere = b.network.inject.bind(b.network);
  b.network.inject = (datagram, from, viaMulticast, port) => injectThere(datagram, from === '10.0.9.1' ? OWN : from, viaMulticast, port);
  for (const text of ['the first', 'the second']) {
    write(b, text);
    await time.pass(2);
    t.equal(a.reader.samples.at(-1), text);
  }
  const result = a.participant.prove(b.participant.prefix, far);
  await time.pass(2);
  t.equal(await result, true);
  t.equal(a.participant.locatorsOf(b.participant.prefix)[0]?.address, far);
});

t.test('the numbers of a path are not sent to an address that is only announced', async (t) => {
  const { own, time, wire } = await scene(t);
  // The first announcement of a participant is forged, with an address of the attacker.
  const victim = new ForgedParticipant(7, { address: FRIEND, port: 9410 });
  const announcement = victim.announcement();
  const locator = announcement.indexOf(Buffer.from([0x32, 0, 24, 0]));
  const further = Buffer.from(announcement.subarray(locator, locator + 28));
  Buffer.from([10, 0, 0, 99]).copy(further, 24);
  const lie = Buffer.concat([announcement.subarray(0, locator), further, announcement.subarray(locator)]);
  lie.writeUInt16LE(lie.length - 24, 22);
  const toAttacker: string[] = [];
  wire.onFlight = ({ datagram, from, to, port }) => {
    if (from === OWN && to === ATTACKER) toAttacker.push(to);
    const answer = to === FRIEND && port === 9410 && victim.answer(datagram);
    if (answer) setTimeout(() => own.network.inject(answer, FRIEND, false), 1);
  };
  own.network.inject(lie, FRIEND, true);
  await time.pass(1);
  t.ok(own.participant.isProven(victim.prefix));
  own.network.inject(victim.heartbeat(0x103, 1, 1), ATTACKER, false);
  await time.pass(5);
  t.same(toAttacker, []);
});

t.test('a robot that restarts is found although others invent participants at its address', async (t) => {
  const { own, friend, side, time } = await scene(t);
  friend.participant.stop();
  let number = 1000;
  const flood = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds * 20; i += 1) {
      for (let each = 0; each < 5; each += 1) {
        number += 1;
        own.network.inject(new ForgedParticipant(number, { address: FRIEND, port: 7410 }).announcement(), FRIEND, true);
      }
      await time.pass(0.05);
    }
  };
  await flood(20);
  const again = side(FRIEND);
  await again.participant.start();
  await flood(3);
  t.ok(own.participant.isProven(again.participant.prefix));
});
