import t, { type Test } from 'tap';
import { destinationOf, dissect } from './testing/dissect.ts';
import { ForgedParticipant } from './testing/forged-participant.ts';
import { entity, message, sn, submessage, u16, u32 } from './testing/octets.ts';
import { type Side, type Sides, sides, write } from './testing/sides.ts';
import { ENTITY, entityOf } from './wire/protocol.ts';

/** Datagrams with the GUID of another participant are ignored when they come from an address that is not its own. */

const ATTACKER = '10.0.0.99';

interface Scene extends Sides {
  /** The participant under test. */
  readonly own: Side;
  /** The participant whose GUID is forged. */
  readonly friend: Side;
  /** Creates datagrams with its GUID. */
  readonly forged: ForgedParticipant;
}

/** `where`: the address of the friend. */
async function scene(t: Test, where: string): Promise<Scene> {
  const all = sides(t);
  const [own, friend] = [all.side('10.0.0.1'), all.side(where)];
  await own.participant.start();
  await friend.participant.start();
  await all.time.pass(5);
  return { ...all, own, friend, forged: ForgedParticipant.named(friend.participant.prefix, { address: where, port: 7410 }) };
}

const FAR = 2 ** 40;

for (const [who, where] of [
  ['a participant of another machine', '10.0.0.2'],
  ['a participant of this machine', '10.0.0.1'],
] as const) {
  t.test(`datagrams from another address with the GUID of ${who}`, async (t) => {
    const { own, friend, forged, time, wire } = await scene(t, where);
    write(friend, 'true');
    await time.pass(1);
    const [writer, reader] = [entityOf(friend.writer.guid), entityOf(friend.reader.guid)];
    const ends = [entity(ENTITY.UNKNOWN), entity(writer)];
    const lies = {
      'the next sample': forged.data(writer, Buffer.from('a lie'), ENTITY.UNKNOWN, 2),
      'a sample far ahead': forged.data(writer, Buffer.from('a lie'), ENTITY.UNKNOWN, FAR),
      'heartbeats far ahead': forged.heartbeat(writer, FAR, FAR + 1),
      'and again': forged.heartbeat(writer, FAR, FAR + 1),
      'a gap': message(forged.prefix, submessage(0x08, [...ends, sn(1), sn(50), u32(0)])),
      fragments: message(
        forged.prefix,
        submessage(0x16, [u16(0), u16(28), ...ends, sn(2), u32(1), u16(1), u16(4), u32(4), Buffer.from('lie!')]),
      ),
      'a request for everything': forged.request(reader, entityOf(own.writer.guid), 1),
      'an endpoint': forged.endpoint(false, 77),
      'a farewell': message(
        forged.prefix,
        submessage(0x15, [u16(0), u16(16), entity(0), entity(ENTITY.SPDP_WRITER), sn(9), Buffer.from([0, 3, 0, 0, 1, 0, 0, 0])], {
          flags: 8,
        }),
      ),
    };
    const claims = [forged.announcement('', 1), ForgedParticipant.named(forged.prefix).announcement()];
    const { refused } = own.participant;
    const seen = own.reader.samples.length;
    let answers = 0;
    wire.onFlight = ({ datagram, from, isMulticast }) => {
      // Whether the friend is present is asked with heartbeats.
      if (from === '10.0.0.1' && !isMulticast && dissect(datagram).some(({ kind }) => kind !== 'heartbeat')) answers += 1;
    };
    const introduced = Buffer.concat([
      message(new ForgedParticipant(5).prefix),
      submessage(0x0c, [u32(0), Buffer.from('02020110', 'hex'), Buffer.from(forged.prefix, 'hex')]),
    ]);
    const inject = (lie: Buffer): void => {
      own.network.inject(lie, ATTACKER, false);
      // Forwarded by another participant (INFO_SRC).
      own.network.inject(Buffer.concat([introduced, lie.subarray(20)]), ATTACKER, true);
    };
    for (const lie of Object.values(lies)) inject(lie);
    t.equal(answers, 0);
    t.equal(own.participant.refused - refused, 2 * Object.keys(lies).length, 'each is counted');
    const logged = own.participant.lines.filter((line) => /not sent from the address of its participant/.test(line));
    t.equal(logged.length, 1);
    t.match(logged[0], `"from":"${ATTACKER}"`);
    for (const claim of claims) inject(claim);
    t.equal(own.writer.state.readerCount, 1);
    await time.pass(3);
    t.ok(own.participant.isProven(friend.participant.prefix));
    t.equal(own.participant.locatorsOf(friend.participant.prefix)[0]?.address, where);
    wire.onFlight = () => undefined;
    write(friend, 'true again');
    write(own, 'to the friend');
    await time.pass(1);
    t.same(own.reader.samples.slice(seen), ['true again']);
    t.equal(friend.reader.samples.at(-1), 'to the friend');
  });
}

t.test('a participant of this machine may send from any of its addresses', async (t) => {
  const { own, forged, friend } = await scene(t, '10.0.0.1');
  own.network.inject(forged.data(entityOf(friend.writer.guid), Buffer.from('by loopback'), ENTITY.UNKNOWN, 1), '127.0.0.1', false);
  t.same(own.reader.samples, ['by loopback']);
});

t.test('a claimed GUID is released to its real owner', async (t) => {
  const { side, time, wire } = sides(t);
  const own = side('10.0.0.1');
  await own.participant.start();
  const name = new ForgedParticipant(1, { address: '10.0.0.2', port: 7410 });
  const thief = new ForgedParticipant(1, { address: ATTACKER, port: 7410 });
  let isThere = false;
  wire.onFlight = ({ datagram, to }) => {
    const answer = isThere && to === '10.0.0.2' && destinationOf(datagram) === name.prefix && name.answer(datagram);
    if (answer) setTimeout(() => own.network.inject(answer, '10.0.0.2', false), 5);
  };
  own.network.inject(thief.announcement(), ATTACKER, true);
  isThere = true;
  for (let i = 0; i < 600; i += 1) {
    own.network.inject(thief.announcement(), ATTACKER, true);
    if (i % 300 === 0) own.network.inject(name.announcement(), '10.0.0.2', true);
    await time.pass(0.01);
  }
  t.ok(own.participant.isProven(name.prefix));
  t.equal(own.participant.locatorsOf(name.prefix)[0]?.address, '10.0.0.2');
  own.network.inject(thief.announcement(), ATTACKER, true);
  t.equal(own.participant.locatorsOf(name.prefix)[0]?.address, '10.0.0.2');
});

t.test('machines with two networks in common', async (t) => {
  const { side, time } = sides(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  a.network.addresses = { lan: '10.0.0.1', far: '10.0.9.1' };
  b.network.addresses = { lan: '10.0.0.2', far: '10.0.9.2' };
  await a.participant.start();
  await b.participant.start();
  for (let i = 0; i < 30; i += 1) {
    write(a, `${i}`);
    write(b, `${i}`);
    await time.pass(1);
  }
  const all = Array.from({ length: 30 }, (_, i) => `${i}`);
  t.same(a.reader.samples, all);
  t.same(b.reader.samples, all);
  t.same([a.participant.refused, b.participant.refused], [0, 0]);
  // One network fails: over the other one they find each other again, and are proven there.
  a.network.addresses = { far: '10.0.9.1' };
  b.network.addresses = { far: '10.0.9.2' };
  write(a, 'by the other way');
  await time.pass(30);
  t.equal(b.reader.samples.at(-1), 'by the other way');
  t.equal(a.participant.locatorsOf(b.participant.prefix)[0]?.address, '10.0.9.2');
});
