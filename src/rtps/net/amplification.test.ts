import t, { type Test } from 'tap';
import type { LocalWriter } from '../endpoints/endpoints.ts';
import { LIMITS } from '../limits.ts';
import { destinationOf } from '../testing/dissect.ts';
import { ForgedParticipant } from '../testing/forged-participant.ts';
import { type Flight, type MemoryNetwork, Wire } from '../testing/memory-network.ts';
import { entity, message, sn, submessage, u16, u32 } from '../testing/octets.ts';
import { participantOn, readerOf, type TestParticipant, writerOf } from '../testing/participants.ts';
import { randomFrom } from '../testing/random.ts';
import { VirtualTime } from '../testing/virtual-time.ts';
import { ParameterWriter } from '../wire/parameters.ts';
import { ENTITY, type EntityId, entityOf, PID } from '../wire/protocol.ts';
import { AmplificationLimit } from './amplification.ts';

const VICTIM = '10.0.0.200';
const ATTACKER = '10.0.0.99';
/** IPv4 and UDP. */
const HEADER_OCTETS = 28;
const SECONDS = 300;

interface Rig {
  readonly time: VirtualTime;
  readonly participant: TestParticipant;
  readonly network: MemoryNetwork;
  readonly writer: LocalWriter;
  /** The datagrams that were sent to the victim. */
  readonly sent: Buffer[];
  /** The attacker sends a datagram with the source address `from`. */
  attack(datagram: Buffer, from: string): void;
  /** Octets and datagrams that the attacker has sent. */
  readonly spent: { octets: number; datagrams: number };
  /** A participant that answers datagrams sent to its address. */
  readonly present: Map<string | null, ForgedParticipant>;
}

/** A participant that publishes once a second, with a history, and reads the same topic. */
async function rig(t: Test): Promise<Rig> {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const network = wire.host({ lan: '10.0.0.1' });
  const participant = participantOn(network, time.now);
  const writer = writerOf(participant);
  readerOf(participant);
  for (let i = 0; i < 40; i += 1) writerOf(participant, { topic: `rt/topic${i}` });
  const large = writerOf(participant, { topic: 'rt/large' });
  for (let i = 0; i < 10; i += 1) participant.write(large, Buffer.alloc(50_000, 'x'));
  t.teardown(() => participant.stop());
  await participant.start();
  const sent: Buffer[] = [];
  const spent = { octets: 0, datagrams: 0 };
  const present: Rig['present'] = new Map();
  wire.onFlight = ({ to, datagram }: Flight) => {
    if (to === VICTIM) sent.push(Buffer.from(datagram));
    const answer = to === VICTIM ? null : present.get(destinationOf(datagram))?.answer(datagram);
    if (answer) setTimeout(() => network.inject(answer, to, false), 1);
  };
  return {
    time,
    participant,
    network,
    writer,
    sent,
    spent,
    present,
    attack: (datagram, from) => {
      spent.octets += datagram.length;
      spent.datagrams += 1;
      network.inject(datagram, from, false);
    },
  };
}

/** Lets time pass, with a sample each second. */
async function publish({ time, participant, writer }: Rig, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    participant.write(writer, Buffer.alloc(200, 'x'));
    await time.pass(1);
  }
}

const atVictim = (number: number, port = 7410): ForgedParticipant => new ForgedParticipant(number, { address: VICTIM, port });
const TOPIC_WRITER: EntityId = 0x103;

/** Attacks with the victim's address. */
const ATTACKS: Readonly<Record<string, (rig: Rig, from: string) => Promise<void>>> = {
  'one announcement': async ({ attack }, from) => attack(atVictim(1).announcement(), from),
  'one announcement, with an acknowledgement in the same datagram': async ({ attack }, from) => {
    const forged = atVictim(1);
    const answer = forged.acknowledgement(ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER, 1);
    attack(Buffer.concat([forged.announcement('', 300), answer.subarray(20)]), from);
  },
  'announcements without end': async (rig, from) => {
    for (let second = 0; second < SECONDS; second += 3) {
      rig.attack(atVictim(1).announcement(), from);
      await publish(rig, 3);
    }
  },
  '256 readers': async (rig, from) => {
    const forged = atVictim(1);
    rig.attack(forged.announcement('', 300), from);
    rig.attack(forged.acknowledgement(ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER, 1), from);
    for (let key = 1; key <= 256; key += 1) rig.attack(forged.endpoint(false, key), from);
    for (let second = 0; second < SECONDS; second += 10) {
      rig.attack(forged.announcement('', 300), from);
      await publish(rig, 10);
    }
  },
  'heartbeats, which ask for acknowledgements': async ({ attack, time }, from) => {
    const forged = atVictim(1);
    attack(forged.announcement(), from);
    attack(forged.endpoint(true, 1), from);
    for (let i = 0; i < 1000; i += 1) {
      for (const writer of [ENTITY.PUBLICATIONS_WRITER, ENTITY.SUBSCRIPTIONS_WRITER, entityOf(forged.guid(true, 1))])
        attack(forged.heartbeat(writer, 1 + (i % 7), 1000 + i), from);
      await time.pass(0.1);
    }
  },
  'requests, which ask for everything again': async ({ attack, time, writer }, from) => {
    const forged = atVictim(1);
    attack(forged.announcement(), from);
    attack(forged.endpoint(false, 1), from);
    attack(forged.endpoint(false, 2, { topic: 'rt/large' }), from);
    const large = entityOf(writer.guid) + 41 * 0x100;
    const fragments = [entity(entityOf(forged.guid(false, 2))), entity(large), sn(1), u32(1), u32(32), u32(0xffffffff)];
    for (let i = 0; i < 500; i += 1) {
      attack(forged.request(ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER, 1 + i), from);
      attack(forged.request(entityOf(forged.guid(false, 1)), entityOf(writer.guid), 1), from);
      attack(message(forged.prefix, submessage(0x12, [...fragments, u32(i)])), from);
      await time.pass(0.1);
    }
  },
  'fragments, whose others are asked for': async ({ attack, time }, from) => {
    const forged = atVictim(1);
    attack(forged.announcement(), from);
    attack(forged.endpoint(true, 1), from);
    const ends = [u16(0), u16(28), entity(0), entity(entityOf(forged.guid(true, 1)))];
    for (let i = 1; i <= 300; i += 1) {
      attack(message(forged.prefix, submessage(0x16, [...ends, sn(i), u32(1), u16(1), u16(8), u32(4096), Buffer.alloc(8)])), from);
      attack(forged.heartbeat(entityOf(forged.guid(true, 1)), 1, i), from);
      await time.pass(0.1);
    }
  },
  'hundreds of participants, at all ports': async ({ attack, time }, from) => {
    for (let number = 1; number <= 400; number += 1) {
      attack(atVictim(number, 1024 + number).announcement(), from);
      attack(atVictim(number, 1024 + number).endpoint(false, 1), from);
      await time.pass(0.25);
    }
  },
  'hundreds of participants in one datagram': async ({ attack, time }, from) => {
    const [first, ...others] = Array.from({ length: 100 }, (_, i) => atVictim(i + 1));
    const parts = others.flatMap((forged) => [
      submessage(0x0c, [u32(0), Buffer.from('02020110', 'hex'), Buffer.from(forged.prefix, 'hex')]),
      forged.announcement().subarray(20),
    ]);
    for (let i = 0; i < 5; i += 1) {
      attack(Buffer.concat([(first as ForgedParticipant).announcement(), ...parts]), from);
      await time.pass(1);
    }
  },
  'guesses of what the victim would answer': async ({ attack, time }, from) => {
    const forged = atVictim(1);
    const random = randomFrom(7);
    attack(forged.announcement(), from);
    for (let i = 0; i < 2000; i += 1) {
      const guess = (): number => 2 + Math.floor(random() * 65_535);
      attack(forged.acknowledgement(ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER, guess()), from);
      attack(forged.acknowledgement(ENTITY.SUBSCRIPTIONS_READER, ENTITY.SUBSCRIPTIONS_WRITER, guess()), from);
      await time.pass(0.01);
    }
  },
  'requests and replies of participants that come and go': async ({ attack, time }, from) => {
    for (let i = 0; i < 200; i += 1) {
      const forged = atVictim(1 + (i % 20));
      attack(forged.announcement(`again ${i}`, 1), from);
      attack(forged.data(TOPIC_WRITER, Buffer.alloc(64)), from);
      await time.pass(1.5);
    }
  },
};

for (const [what, attack] of Object.entries(ATTACKS)) {
  t.test(`${what} with the address of a victim`, async (t) => {
    for (const from of [ATTACKER, VICTIM]) {
      const it = await rig(t);
      await attack(it, from);
      await publish(it, SECONDS);
      const { participant, sent, spent } = it;
      const octets = sent.reduce((sum, { length }) => sum + length, 0);
      const factor = octets / spent.octets;
      const onTheWire = (octets + HEADER_OCTETS * sent.length) / (spent.octets + HEADER_OCTETS * spent.datagrams);
      const how = from === VICTIM ? 'from its address' : 'from another address';
      t.ok(
        sent.length <= LIMITS.unprovenDatagrams * Math.ceil((it.time.now() - 1000) / LIMITS.unprovenSeconds),
        `${how}: ${sent.length} datagrams of ${octets} octets for ${spent.datagrams} of ${spent.octets}`,
      );
      t.ok(factor <= LIMITS.unprovenFactor && onTheWire <= LIMITS.unprovenFactor, `factor ${factor.toFixed(2)}, ${onTheWire.toFixed(2)}`);
      for (let number = 1; number <= 20; number += 1) t.notOk(participant.isProven(atVictim(number).prefix));
      participant.stop();
    }
  });
}

t.test('a proven address does not prove another address of the participant', async (t) => {
  const it = await rig(t);
  const { attack, network, participant, present, sent } = it;
  const here = new ForgedParticipant(1, { address: ATTACKER, port: 7410 });
  present.set(here.prefix, here);
  network.inject(here.announcement(), ATTACKER, false);
  network.inject(here.endpoint(false, 1), ATTACKER, false);
  await publish(it, 1);
  t.ok(participant.isProven(here.prefix));
  // The same participant announces another address.
  const otherAddress = atVictim(1);
  for (let i = 0; i < 30; i += 1) {
    attack(otherAddress.announcement(`moved ${i}`), ATTACKER);
    attack(here.acknowledgement(ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER, 2 + i), ATTACKER);
    attack(here.request(entityOf(here.guid(false, 1)), entityOf(it.writer.guid), 1), ATTACKER);
    await publish(it, 1);
  }
  t.equal(sent.length, 0);
  t.equal(participant.locatorsOf(here.prefix)[0]?.address, ATTACKER);
});

t.test('invented participants at the address of a real one do not increase the traffic to it', async (t) => {
  const it = await rig(t);
  const { attack, network, participant, present, sent, spent } = it;
  const honest = atVictim(1000);
  present.set(honest.prefix, honest);
  network.inject(honest.announcement(), VICTIM, false);
  // The rig leaves its answers to the test, because it is at the address of the victim.
  await it.time.pass(0.01);
  for (const datagram of sent.splice(0)) network.inject(honest.answer(datagram) ?? Buffer.alloc(0), VICTIM, false);
  t.ok(participant.isProven(honest.prefix));
  for (const [from, most] of [
    [ATTACKER, 0],
    [VICTIM, Number.POSITIVE_INFINITY],
  ] as const) {
    sent.length = 0;
    spent.octets = 0;
    for (let number = 1; number <= 200; number += 1) {
      attack(atVictim(from === VICTIM ? number + 200 : number).announcement(), from);
      await it.time.pass(0.1);
    }
    const invented = sent.filter((datagram) => destinationOf(datagram) !== honest.prefix);
    const octets = invented.reduce((sum, { length }) => sum + length, 0);
    t.ok(invented.length <= most && octets <= 3 * spent.octets, `${invented.length} datagrams of ${octets} octets for ${spent.octets}`);
  }
});

t.test('a proven participant cannot redirect its samples to another address', async (t) => {
  const it = await rig(t);
  const { network, participant, present, sent, writer } = it;
  const stranger = new ForgedParticipant(1, { address: ATTACKER, port: 7410 }, { address: VICTIM, port: 7411 });
  present.set(stranger.prefix, stranger);
  network.inject(stranger.announcement(), ATTACKER, false);
  await publish(it, 1);
  const plain = stranger.endpoint(false, 1);
  // Its reader names the victim's address as well: a locator in front of the sentinel.
  const locator = new ParameterWriter().locator(PID.UNICAST_LOCATOR, { address: VICTIM, port: 7411 }).list();
  const endpoint = Buffer.concat([plain.subarray(0, -4), locator]);
  endpoint.writeUInt16LE(endpoint.length - 24, 22);
  network.inject(endpoint, ATTACKER, false);
  await publish(it, 30);
  t.equal(writer.state.readerCount, 1);
  t.ok(participant.isProven(stranger.prefix));
  t.equal(sent.length, 0);
});

t.test('an acknowledgement from an address that was not challenged proves nothing', async (t) => {
  const it = await rig(t);
  const { attack, participant, sent, time } = it;
  const forged = atVictim(1);
  attack(forged.announcement(), VICTIM);
  await time.pass(0.05);
  const answer = forged.answer(sent[0] as Buffer) as Buffer;
  attack(answer, ATTACKER);
  t.notOk(participant.isProven(forged.prefix));
  attack(answer, VICTIM);
  t.ok(participant.isProven(forged.prefix), 'from there it does');
});

t.test('the limit per address', async (t) => {
  const limit = new AmplificationLimit();
  const spend = (now: number, { octets = 72, isUrgent = false } = {}): boolean => {
    const may = limit.allowance(VICTIM, now) >= octets && (isUrgent || !limit.isPausing(VICTIM, now));
    if (may) limit.spend(VICTIM, octets, false, now);
    return may;
  };
  t.notOk(spend(0), 'nothing came');
  limit.receive(VICTIM, 100);
  t.ok(spend(0));
  t.notOk(spend(0.05), 'too soon');
  t.ok(spend(0.05, { isUrgent: true }));
  t.ok(spend(10));
  t.notOk(spend(20), 'three times what came, headers included');
  limit.receive(VICTIM, 100_000);
  for (let i = 3; i < LIMITS.unprovenDatagrams; i += 1) t.ok(spend(20 + 4 * i));
  t.notOk(spend(60), 'as many as there are in all');
  t.ok(limit.allowanceAtProven(VICTIM) >= 72, 'octets alone count where another participant is proven');
  t.ok(spend(60 + LIMITS.unprovenSeconds), 'the count is reset after a time');
  for (let i = 0; i < LIMITS.unprovenAddresses; i += 1) limit.receive(`10.1.${i >> 8}.${i & 255}`, 1);
  t.notOk(spend(2000), 'forgotten, as others were named since');
});
