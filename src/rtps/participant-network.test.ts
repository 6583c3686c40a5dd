import t from 'tap';
import { LEASE_SECONDS } from './participant.ts';
import { dissect, only } from './testing/dissect.ts';
import { ForgedParticipant } from './testing/forged-participant.ts';
import { sides, write } from './testing/sides.ts';
import { ParameterList } from './wire/parameters.ts';
import { ENTITY, entityOf, PID } from './wire/protocol.ts';

t.test('rediscovery after one or both leases have expired', async (t) => {
  for (const [what, deaf] of [
    ['one side received nothing', ['a']],
    ['both received nothing', ['a', 'b']],
  ] as const) {
    let isCut: (flight: { to: string }) => boolean = () => false;
    const { time, wire, side } = sides(t);
    const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
    await a.participant.start();
    await b.participant.start();
    await time.pass(3);
    write(a, 'before');
    await time.pass(1);
    // Frames to a host that does not receive are lost.
    const cut = new Set<string>(deaf.map((name) => (name === 'a' ? '10.0.0.1' : '10.0.0.2')));
    isCut = ({ to }) => cut.has(to);
    for (const { network } of [a, b]) {
      const inject = network.inject.bind(network);
      const [own] = network.interfaces();
      network.inject = (datagram, from, viaMulticast) => {
        if (!isCut({ to: own?.address ?? '' })) inject(datagram, from, viaMulticast);
      };
    }
    await time.pass(60);
    t.equal(a.participant.peerCount, 0, `${what}: forgotten`);
    for (let i = 0; i < 20; i += 1) write(a, `meanwhile ${i}`);
    isCut = () => false;
    await time.pass(10);
    t.equal(a.participant.peerCount, 1);
    t.same(
      b.reader.samples.slice(-10),
      Array.from({ length: 10 }, (_, i) => `meanwhile ${i + 10}`),
      `${what}: what is still in the history arrived`,
    );
    write(b, 'back');
    await time.pass(1);
    t.equal(a.reader.samples.at(-1), 'back');
    t.equal(new Set(b.reader.samples).size, b.reader.samples.length, 'nothing twice');
    a.participant.stop();
    b.participant.stop();
    t.equal(wire.networks.size, 0);
  }
});

t.test('static peers without multicast', async (t) => {
  const { time, wire, side } = sides(t);
  const a = side('10.0.0.1');
  const b = side('10.0.0.2', { staticPeers: ['10.0.0.1'] });
  const third = side('10.0.0.3');
  for (const { network } of [a, b, third]) network.receiverOfGroup = () => null;
  for (const { participant } of [a, b, third]) await participant.start();
  await time.pass(2);
  write(a, 'hello');
  await time.pass(1);
  t.same(b.reader.samples, ['hello']);
  t.equal(a.participant.peerCount, 1);
  t.equal(third.participant.peerCount, 0);
  let multicasts = 0;
  wire.onFlight = ({ isMulticast }) => {
    if (isMulticast) multicasts += 1;
  };
  await time.pass(2 * LEASE_SECONDS);
  t.equal(a.participant.peerCount, 1, 'both are announced to by unicast as well');
  t.equal(b.participant.peerCount, 1);
  t.ok(multicasts > 0);
});

t.test('leases survive a pause of this process', async (t) => {
  const { time, side } = sides(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  await a.participant.start();
  await b.participant.start();
  await time.pass(5);
  // Both at the same time, as when the machine is suspended: datagrams received meanwhile have not been read.
  time.freeze(3600);
  await time.pass(0.05);
  t.equal(a.participant.peerCount, 1);
  await time.pass(LEASE_SECONDS + 5);
  t.equal(b.participant.peerCount, 1);
  b.network.isFrozen = true;
  await time.pass(LEASE_SECONDS + 5);
  t.equal(a.participant.peerCount, 0, 'the lease still ends');
});

t.test('an announcement of another domain at its own port is ignored', async (t) => {
  const { time, wire, side } = sides(t);
  const a = side('10.0.0.1');
  const b = side('10.0.0.2', { domain: 7 });
  let announcements = 0;
  wire.onFlight = ({ datagram, from, isMulticast }) => {
    if (!isMulticast || from !== '10.0.0.2') return;
    announcements += 1;
    a.network.inject(datagram, from, true);
  };
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  t.ok(announcements > 0);
  t.equal(a.participant.peerCount, 0);
});

t.test('announcements on a new interface, and detection of a removed one', async (t) => {
  let lost = 0;
  const { time, side } = sides(t);
  const a = side('10.0.0.1', { onAddressLost: () => (lost += 1) });
  const b = side('10.0.0.2');
  await a.participant.start();
  await b.participant.start();
  await time.pass(5);
  const far = side('10.0.9.2');
  far.network.addresses = { far: '10.0.9.2' };
  await far.participant.start();
  await time.pass(5);
  t.equal(far.participant.peerCount, 0);
  a.network.addresses = { lan: '10.0.0.1', far: '10.0.9.1' };
  await time.pass(6);
  write(a, 'everywhere');
  await time.pass(1);
  t.same(far.reader.samples, ['everywhere']);
  t.same(b.reader.samples, ['everywhere']);
  t.equal(lost, 0);
  a.network.addresses = { lan: '10.0.0.1' };
  await time.pass(2.9);
  t.equal(lost, 0, 'the link may be down for a moment only');
  await time.pass(4);
  t.equal(lost, 1);
  t.match(a.participant.lines.join('\n'), /network interface added.*10\.0\.9\.1[\s\S]*network address removed.*10\.0\.9\.1/);
});

t.test('stopped during the start', async (t) => {
  const { wire, time, side } = sides(t);
  const a = side('10.0.0.1');
  const starting = a.participant.start();
  a.participant.stop();
  await starting;
  await time.pass(5);
  t.equal(wire.networks.size, 0);
  t.equal(time.pending, 0);
});

t.test('localhost only: nothing from other machines', async (t) => {
  const { time, side } = sides(t);
  const a = side('10.0.0.1', { localhostOnly: true });
  const b = side('10.0.0.2');
  await a.participant.start();
  await b.participant.start();
  await time.pass(3);
  t.equal(a.participant.peerCount, 0);
  const { refused } = a.participant;
  // Its only submessage is truncated, so it is refused when it is read.
  const malformed = Buffer.from('RTPS\x02\x02'.padEnd(24));
  a.network.inject(malformed, '10.0.0.2', false);
  t.equal(a.participant.refused, refused, 'from another machine');
  a.network.inject(malformed, '127.0.0.1', false);
  t.equal(a.participant.refused, refused + 1, 'from this one');
});

t.test('localhost and static peers: no other addresses', async (t) => {
  const { time, wire, side } = sides(t);
  const a = side('10.0.0.1', { localhostOnly: true, staticPeers: ['10.0.0.2'] });
  const b = side('10.0.0.2');
  const c = side('10.0.0.3');
  const groups: string[] = [];
  wire.onFlight = ({ from, isMulticast }) => {
    if (isMulticast && from === '10.0.0.1') groups.push(from);
  };
  for (const { participant } of [a, b, c]) await participant.start();
  await time.pass(3);
  t.same([a.participant.peerCount, b.participant.peerCount, c.participant.peerCount], [1, 2, 1]);
  t.ok(a.participant.hasParticipant(b.participant.prefix));
  t.same(groups, [], 'nothing is announced to the group');
});

t.test('a replaced address is removed at once; without any network none is', async (t) => {
  let lost = 0;
  const { time, side } = sides(t);
  const a = side('10.0.0.1', { onAddressLost: () => (lost += 1) });
  a.network.addresses = { lan: '10.0.0.1' };
  await a.participant.start();
  await time.pass(5);
  a.network.addresses = {};
  await time.pass(60);
  a.network.addresses = { lan: '10.0.0.1' };
  await time.pass(10);
  t.equal(lost, 0);
  a.network.addresses = { lan: '10.0.0.9' };
  await time.pass(3.1);
  t.equal(lost, 1);
});

t.test("a participant on a new link gets the announcement of that link's address only", async (t) => {
  const { time, wire, side } = sides(t);
  const a = side('10.0.0.1');
  await a.participant.start();
  await time.pass(6);
  const reported: Buffer[] = [];
  wire.onFlight = ({ datagram, to }) => {
    if (to === '10.0.9.2' && dissect(datagram).some(({ kind, sender }) => kind === 'data' && sender.endsWith('000100c2')))
      reported.push(datagram);
  };
  a.network.addresses = { lan: '10.0.0.1', far: '10.0.9.1' };
  a.network.inject(new ForgedParticipant(1, { address: '10.0.9.2', port: 7410 }).announcement(), '10.0.9.2', true);
  await time.pass(1.5);
  t.ok(reported.length > 0, 'it need not wait for the next announcement to all');
  for (const { payload } of only('data', reported)) {
    const list = ParameterList.ofPayload(payload ?? Buffer.alloc(0));
    for (const id of [PID.METATRAFFIC_UNICAST_LOCATOR, PID.DEFAULT_UNICAST_LOCATOR])
      t.same(
        list?.locators(id).map(({ address }) => address),
        ['10.0.9.1'],
      );
  }
});

t.test('a new participant is challenged again until it answers', async (t) => {
  const { time, wire, side } = sides(t);
  const [a, b] = [side('10.0.0.1'), side('10.0.0.2')];
  const reported = new Map<string, number>();
  wire.onFlight = ({ datagram, from, to, isMulticast }) => {
    if (isMulticast || from !== '10.0.0.1') return;
    const firsts = only('heartbeat', [datagram]).filter(({ sender }) => entityOf(sender) === ENTITY.PUBLICATIONS_WRITER);
    if (firsts.length > 0) reported.set(to, (reported.get(to) ?? 0) + 1);
  };
  await a.participant.start();
  await b.participant.start();
  a.network.inject(new ForgedParticipant(1, { address: '10.0.0.99', port: 7410 }).announcement(), '10.0.0.99', true);
  await time.pass(10);
  t.ok(
    (reported.get('10.0.0.99') ?? 0) >= 2 && (reported.get('10.0.0.99') ?? 0) <= 5,
    `${reported.get('10.0.0.99')} times to one who is silent`,
  );
  t.ok((reported.get('10.0.0.2') ?? 0) <= 3, `${reported.get('10.0.0.2')} times to one who answers`);
});

t.test('a participant behind a router is challenged, too, even if the first challenges are lost', async (t) => {
  const { time, wire, side } = sides(t);
  const a = side('10.0.0.1');
  const stranger = new ForgedParticipant(1, { address: '10.5.5.5', port: 7410 });
  let isReceived = false;
  wire.onFlight = ({ datagram, to }) => {
    const hasAnnouncement = only('data', [datagram]).length > 0;
    const answer = isReceived && to === '10.5.5.5' && hasAnnouncement && stranger.answer(datagram);
    if (answer) setTimeout(() => a.network.inject(answer, '10.5.5.5', false), 30);
  };
  await a.participant.start();
  await time.pass(5);
  for (let i = 0; i < 4; i += 1) {
    a.network.inject(stranger.announcement(), '10.5.5.5', false);
    await time.pass(3);
    t.equal(a.participant.isProven(stranger.prefix), isReceived);
    isReceived = i > 0;
  }
});
