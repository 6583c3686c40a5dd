import t from 'tap';
import { Wire } from '../../rtps/testing/memory-network.ts';
import type { DiscoverySettings } from '../graph.ts';
import { addressesOf, isLoopbackOnly, RejoiningSession } from './rejoin.ts';

async function addresses(discovery: Partial<DiscoverySettings>): Promise<{ found: string[]; lines: string[] }> {
  const lines: string[] = [];
  const whole: DiscoverySettings = { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [], ...discovery };
  const found = await addressesOf(whole, (level, message, fields) => lines.push(`${level}: ${message} ${JSON.stringify(fields)}`));
  return { found, lines };
}

t.test('unicast addresses depend on the discovery range', async (t) => {
  const staticPeers = ['10.0.0.7', '10.0.0.8', '10.0.0.7'];
  t.same((await addresses({ staticPeers })).found, ['10.0.0.7', '10.0.0.8'], 'each once');
  t.same((await addresses({ staticPeers, discoveryRange: 'LOCALHOST' })).found, ['127.0.0.1', '10.0.0.7', '10.0.0.8']);
  t.same((await addresses({ staticPeers, discoveryRange: 'SYSTEM_DEFAULT' })).found, []);
  t.same((await addresses({})).found, []);
});

t.test('names are resolved; an unknown one is logged and skipped', async (t) => {
  const { found, lines } = await addresses({ staticPeers: ['localhost', 'no-such-robot.invalid', '10.0.0.7'] });
  t.same(found, ['127.0.0.1', '10.0.0.7']);
  t.equal(lines.length, 1);
  t.match(lines[0], /^warning: static peer not resolved .*no-such-robot\.invalid/);
});

t.test('with LOCALHOST other interfaces are used only for static peers', async (t) => {
  const discovery: DiscoverySettings = { domainId: 0, discoveryRange: 'LOCALHOST', staticPeers: [] };
  t.ok(isLoopbackOnly(discovery));
  t.notOk(isLoopbackOnly({ ...discovery, staticPeers: ['10.0.0.7'] }));
  t.notOk(isLoopbackOnly({ ...discovery, discoveryRange: 'SUBNET' }));
});

t.test('a session is replaced only once its start has ended, since all sessions use the same network', async (t) => {
  const events: string[] = [];
  const starts: { readonly succeed: () => void; readonly fail: () => void }[] = [];
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const options = {
    discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] } as const,
    log: () => undefined,
    monotonicSeconds: () => 0,
    wallMilliseconds: () => 0,
    network: new Wire().host({ lan: '10.0.0.1' }),
  };
  let sessions = 0;
  const rejoining = new RejoiningSession(options, () => {
    sessions += 1;
    const number = sessions;
    return {
      start: () => {
        events.push(`start ${number}`);
        return new Promise<void>((resolve, reject) => starts.push({ succeed: resolve, fail: () => reject(new Error('no port')) }));
      },
      stop: () => void events.push(`stop ${number}`),
    };
  });
  const started = rejoining.start();
  await settled();
  starts[0]?.succeed();
  await started;
  rejoining.rejoin('the address was removed');
  rejoining.rejoin('observation started');
  rejoining.rejoin('observation stopped');
  await settled();
  t.same(events.splice(0), ['start 1', 'stop 1', 'start 2']);
  starts[1]?.succeed();
  await settled();
  t.same(events.splice(0), ['stop 2', 'start 3'], 'once for all requests');
  rejoining.rejoin('the address was removed');
  starts[2]?.fail();
  await settled();
  t.same(events.splice(0), ['stop 3', 'start 4']);
  t.match(rejoining.problem, /no port/);
  rejoining.rejoin('the address was removed');
  rejoining.stop();
  starts[3]?.succeed();
  await settled();
  t.same(events, ['stop 4'], 'not after the end');
});
