import t from 'tap';
import { servicePorts, View, type ViewOptions } from './view.ts';

t.test('each port of a domain has its purpose, sorted by port with Unix sockets last', async (t) => {
  const udp = (port: number, address = '0.0.0.0') => ({ protocol: 'udp' as const, address, port });
  const unix = (name: string) => ({ protocol: 'unix' as const, path: `/run/edge-health/${name}` });
  const sockets = [udp(40_123), unix('control.sock'), unix('rest.sock'), udp(7911), udp(7900), udp(7910)];
  const rest = { address: '::', family: 'IPv6', port: 5000 };
  t.same(
    servicePorts(rest, sockets, 2).map(({ address, port, purpose }) => `${address} ${port} ${purpose}`),
    [
      ':: 5000 REST API and dashboard',
      '0.0.0.0 7900 ROS 2 discovery, multicast',
      '0.0.0.0 7910 ROS 2 discovery',
      '0.0.0.0 7911 ROS 2 samples and services',
      "0.0.0.0 40123 ROS 2, sending from a port of the kernel's choice",
      '/run/edge-health/control.sock null requests of this machine, such as edge-health nodes forget',
      '/run/edge-health/rest.sock null REST API for programs of this machine',
    ],
  );
  t.same(servicePorts(null, [], null), []);
});

t.test('the counts of one /status belong together although parts of it take time to read', async (t) => {
  let samples = 1;
  const view = new View({
    config: { publish_frequency: 1 },
    dataPath: '/nonexistent',
    clocks: { monotonicSeconds: () => 0, wallMilliseconds: () => 0 },
    disks: () => [],
    thresholds: () => ({}),
    memory: { state: () => null },
    power: { state: () => ({ lastUndervoltageSeconds: null }) },
    // A sample is taken meanwhile.
    shutdown: async () => {
      samples += 1;
    },
    live: {
      nodes: () => [],
      node: () => ({ status: null, ageSeconds: null, lastSeenSeconds: null, leftMs: null, conflict: [] }),
      openAlerts: () => [],
      openAlertsOf: () => [],
      openBySeverity: () => ({}),
    },
    rate: { hertz: () => null },
    sampler: {
      get counts() {
        return { taken: samples, missed: 0 };
      },
      probeStates: () => [],
    },
    temperature: { choice: null },
    store: { clockEvents: async () => [], state: () => ({ quarantined: [] }) },
    remote: () => null,
    ros: () => ({ published: { health_status: samples } }),
    controlSocket: () => null,
    ports: () => [],
    localNode: 'robot1',
  } as unknown as ViewOptions);
  const { publish, ros } = await view.status();
  t.equal(publish.samples, 2);
  t.equal(ros.published?.health_status, publish.samples);
});
