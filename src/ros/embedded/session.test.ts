import t from 'tap';
import { LIMITS } from '../../rtps/limits.ts';
import { destinationOf } from '../../rtps/testing/dissect.ts';
import { ForgedParticipant } from '../../rtps/testing/forged-participant.ts';
import { Wire } from '../../rtps/testing/memory-network.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import { applianceTopic } from '../names.ts';
import { topicOf } from './dds-names.ts';
import { newPrefix } from './rejoin.ts';
import { Session } from './session.ts';
import { NAMES } from './testing/transport-rig.ts';

t.test('a participant that vanishes under one name after the other does not fill the memory', async (t) => {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const network = wire.host({ lan: '10.0.0.1' });
  const [log, monotonicSeconds] = [() => undefined, time.now];
  const session = new Session(
    {
      discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
      names: NAMES,
      listener: { onHealthStatus: () => undefined, onAlert: () => undefined, onSafeShutdown: null },
      localNode: 'here',
      observe: 'auto',
      publishSeconds: 1,
      isObserving: true,
      parameters: () => [],
      diagnostics: () => {
        throw new Error('no diagnostics are published');
      },
      log,
      monotonicSeconds,
    },
    {
      domain: 0,
      prefix: newPrefix(),
      userData: '',
      network,
      staticPeers: [],
      localhostOnly: false,
      log,
      monotonicSeconds,
      wallMilliseconds: () => 1_700_000_000_000,
    },
    null,
  );
  t.teardown(() => session.stop());
  await session.start();
  const address = '10.0.0.99';
  let hostile = new ForgedParticipant(0);
  // It answers until it is known.
  wire.onFlight = ({ datagram }) => {
    if (destinationOf(datagram) !== hostile.prefix || session.participant.isProven(hostile.prefix)) return;
    const answer = hostile.answer(datagram);
    if (answer) setTimeout(() => network.inject(answer, address, false), 1);
  };
  for (let i = 0; i < LIMITS.participants + 100; i += 1) {
    hostile = new ForgedParticipant(i, { address, port: 7410 });
    network.inject(hostile.announcement('hostile', 0.5), address, false);
    await time.pass(0.1);
    network.inject(hostile.endpoint(true, 1), address, false);
    network.inject(hostile.endpoint(true, 2, { topic: topicOf(applianceTopic({ name: `robot${i}`, mode: 'auto' })) }), address, false);
    await time.pass(2);
    if (i === 9) t.equal(session.appliances.expected().length, 10);
  }
  t.equal(session.appliances.expected().length, LIMITS.participants);
});
