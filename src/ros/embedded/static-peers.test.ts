import { mock } from 'node:test';
import t from 'tap';
import type { DiscoverySettings } from '../graph.ts';
import { StaticPeers } from './static-peers.ts';

const settings = (discovery: Partial<DiscoverySettings>): DiscoverySettings => ({
  domainId: 0,
  discoveryRange: 'SUBNET',
  staticPeers: [],
  ...discovery,
});

t.test('the addresses depend on the discovery range, and are known before any lookup', async (t) => {
  const staticPeers = ['10.0.0.7', '10.0.0.8', '10.0.0.7'];
  const addresses = (discovery: Partial<DiscoverySettings>): string[] => new StaticPeers(settings(discovery), () => undefined).addresses;
  t.same(addresses({ staticPeers }), ['10.0.0.7', '10.0.0.8'], 'each once');
  t.same(addresses({ staticPeers, discoveryRange: 'LOCALHOST' }), ['127.0.0.1', '10.0.0.7', '10.0.0.8']);
  t.same(addresses({ staticPeers, discoveryRange: 'SYSTEM_DEFAULT' }), []);
  t.same(addresses({}), []);
});

t.test('names are looked up by the system', async (t) => {
  const unresolved: unknown[] = [];
  const staticPeers = ['localhost', 'no-such-robot.invalid', '2001:db8::7'];
  const peers = new StaticPeers(settings({ staticPeers }), (_level, _message, fields) => unresolved.push(fields?.['peer']));
  await peers.start();
  t.same(peers.addresses, ['127.0.0.1']);
  t.same(unresolved, ['no-such-robot.invalid', '2001:db8::7'], 'the sockets send to IPv4 addresses only');
  peers.stop();
});

t.test('a name is looked up until it has an address, and again when it may have another', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const known = new Map<string, string>();
  const lines: string[] = [];
  let lookups = 0;
  const peers = new StaticPeers(
    settings({ staticPeers: ['robot-1', '10.0.0.7', 'robot-2'] }),
    (level, message, fields) => lines.push(`${level}: ${message} ${Object.values(fields ?? {}).join(' ')}`),
    async (name) => {
      lookups += 1;
      const address = known.get(name);
      if (address === undefined) throw Object.assign(new Error('no answer'), { code: 'EAI_AGAIN' });
      return address;
    },
  );
  const { addresses } = peers;
  /** Waits `ms` and for the lookup that follows; returns the number of names looked up. */
  const after = async (ms: number): Promise<number> => {
    const before = lookups;
    mock.timers.tick(ms);
    for (let i = 0; i < 10; i += 1) await Promise.resolve();
    return lookups - before;
  };
  await peers.start();
  t.same(addresses, ['10.0.0.7']);
  t.same(lines.splice(0), [
    'warning: static peer not resolved, retrying robot-1 EAI_AGAIN',
    'warning: static peer not resolved, retrying robot-2 EAI_AGAIN',
  ]);
  known.set('robot-2', '10.0.0.2');
  t.equal(await after(2000), 2);
  t.same(addresses, ['10.0.0.7', '10.0.0.2']);
  t.same(lines.splice(0), ['notice: static peer resolved robot-2 10.0.0.2'], 'a repeated failure is not logged');
  t.same([await after(2000), await after(2000)], [0, 2], 'at growing intervals');
  for (const seconds of [8, 16, 32, 60, 60]) t.same([await after(seconds * 1000 - 1), await after(1)], [0, 2]);
  known.set('robot-1', '10.0.0.1');
  await after(60_000);
  t.same(addresses, ['10.0.0.1', '10.0.0.7', '10.0.0.2']);
  known.set('robot-1', '10.0.0.99');
  known.delete('robot-2');
  lines.splice(0);
  await after(60_000);
  t.same(addresses, ['10.0.0.99', '10.0.0.7', '10.0.0.2'], 'a name without an answer keeps its address');
  t.same(lines, ['notice: static peer resolved robot-1 10.0.0.99']);
  known.set('robot-2', '10.0.0.3');
  await peers.start();
  t.same(addresses, ['10.0.0.99', '10.0.0.7', '10.0.0.3'], 'at once after a change of the network');
  peers.stop();
  t.equal(await after(600_000), 0, 'not after the end');
});
