import t from 'tap';
import { Wire } from '../../rtps/testing/memory-network.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import type { DiscoverySettings } from '../graph.ts';
import { isLoopbackOnly, RejoiningSession } from './rejoin.ts';

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

t.test('a failed start and each repetition are repeated with growing pauses, and logged once', async (t) => {
  const time = new VirtualTime(t, 0);
  const starts: number[] = [];
  const lines: string[] = [];
  let problem: string | null = 'UDP port 7400 is in use';
  const rejoining = new RejoiningSession(
    {
      discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] } as const,
      log: (_level, message) => lines.push(message),
      monotonicSeconds: time.now,
      wallMilliseconds: () => 0,
      network: new Wire().host({ lan: '10.0.0.1' }),
    },
    () => ({
      start: async () => {
        starts.push(time.now());
        if (problem !== null) throw new Error(problem);
      },
      stop: () => undefined,
    }),
  );
  await rejoining.start();
  t.match(rejoining.problem, /UDP port 7400 is in use/);
  await time.pass(100);
  t.same(starts.splice(0), [0, 1, 3, 7, 15, 31, 61, 91]);
  t.same(lines.splice(0), ['cannot join the ROS 2 graph; will retry']);
  problem = null;
  await time.pass(30);
  t.equal(rejoining.problem, null);
  t.same(lines.splice(0), ['joined the ROS 2 graph again']);
  await time.pass(100);
  t.same(starts.splice(0), [121], 'only until it has joined');
  problem = 'no free port';
  rejoining.rejoin('the address was removed');
  await time.pass(1);
  t.same(starts, [230, 231], 'the pauses begin again');
  rejoining.stop();
  await time.pass(100);
  t.equal(starts.length, 2);
});

t.test('a static peer without an address is looked up again when a session is replaced', async (t) => {
  const held: (readonly string[])[] = [];
  let address: string | null = null;
  const rejoining = new RejoiningSession(
    {
      discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: ['robot-1'] },
      log: () => undefined,
      monotonicSeconds: () => 0,
      wallMilliseconds: () => 0,
      network: new Wire().host({ lan: '10.0.0.1' }),
      resolve: async () => address ?? Promise.reject(new Error('no network')),
    },
    ({ staticPeers }) => {
      held.push(staticPeers);
      return { start: async () => undefined, stop: () => undefined };
    },
  );
  t.teardown(() => rejoining.stop());
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await rejoining.start();
  await settled();
  t.same(held, [[]]);
  address = '10.0.0.7';
  rejoining.rejoin('an address of this machine was removed');
  await settled();
  t.same(held, [['10.0.0.7'], ['10.0.0.7']], 'the participants see it as well');
});
