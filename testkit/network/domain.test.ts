import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import t from 'tap';
import { ports } from '../../src/rtps/wire/protocol.ts';
import { reserveDomain } from './domain.ts';

t.test('a domain in which another program participates is not reserved', async (t) => {
  const free = await reserveDomain(t);
  const taken = await reserveDomain(t);
  t.not(taken, free, 'nor one that is reserved');
  const participant = createSocket({ type: 'udp4', reuseAddr: true });
  t.teardown(() => participant.close());
  // 101 and 102 are not among the domains of the other tests.
  participant.bind(ports.metaMulticast(101));
  await once(participant, 'listening');
  t.equal(await reserveDomain(t, [101, 102]), 102);
});
