import t from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';

/** Robots that vanish together with the observer, with the real service on ten hosts, and what subscribers of /alerts receive. */

t.setTimeout(900_000);
const skip = peersUnavailable();

type List<T> = { readonly data: readonly T[] };
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];
const STALE = '/alerts?metric=health_status';

t.test('ten robots: those that vanish with the observer are one alert each, on the topic and at the next observer', { skip }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const hosts = new Map<string, Host>();
  const folders = new Map<string, string>();
  const services = new Map<string, HostService>();
  const service = (name: string): HostService => services.get(name) as HostService;
  const start = async (name: string): Promise<void> => {
    const [host, folder] = [hosts.get(name) as Host, folders.get(name) as string];
    services.set(name, await HostService.start(host, folder, { config: { node_name: name } }));
  };
  for (const name of NAMES) {
    const host = network.host();
    segment.attach(host);
    hosts.set(name, host);
    folders.set(name, temporaryFolder(t));
    await start(name);
  }
  const [listening, foreign] = [network.host(), network.host()] as [Host, Host];
  for (const host of [listening, foreign]) segment.attach(host);
  const listeners = await Promise.all(VENDORS.map((vendor) => Peer.start(listening, vendor, 'subscribe', ['--topic', '/alerts'])));
  // Robots of other implementations, whose writers the next observer has announced again.
  for (const vendor of VENDORS)
    await Peer.start(foreign, vendor, 'publish', [
      '--topic',
      '/health_status',
      '--set',
      `node_name=${vendor}`,
      '--set',
      'status=OK',
      '--set',
      'timestamp=2026-01-01T00:00:00Z',
      '--hz',
      '1',
    ]);
  const observes = (name: string, isKnown: readonly string[]): Promise<StatusDocument> =>
    service(name).untilGet<StatusDocument>('/status', ({ nodes, ros }) => {
      const known = nodes.filter(({ timestamp }) => timestamp !== null).map(({ node_name }) => node_name);
      return ros.observing && ros.observers.join() === name && isKnown.every((one) => known.includes(one));
    });
  await observes('a', [...NAMES, ...VENDORS]);
  for (const name of NAMES.slice(1)) await service(name).untilGet<StatusDocument>('/status', ({ ros }) => !ros.observing);

  let before = 0;
  for (const gone of [
    ['a', 'b', 'f'],
    ['a', 'j'],
  ]) {
    const next = NAMES.find((name) => !gone.includes(name)) as string;
    await Promise.all(gone.map((name) => service(name).end('SIGKILL')));
    await observes(next, [...NAMES.filter((name) => !gone.includes(name)), ...VENDORS]);
    const isOpen = (data: readonly Alert[]): boolean =>
      gone.every((name) => data.some((one) => !one.resolved && one.alert_id.startsWith(`${name}/`)));
    const { data } = await service(next).untilGet<List<Alert>>(`${STALE}&resolved=false`, ({ data }) => isOpen(data));
    t.equal(data.length, gone.length, `${gone}: at ${next}`);
    const ids = data.map(({ alert_id }) => alert_id);
    for (const listener of listeners)
      for (const id of ids) await listener.waitFor('sample', ({ data }) => data['alert_id'] === id && data['resolved'] === false);
    for (const name of gone) await start(name);
    await observes('a', [...NAMES, ...VENDORS]);
    for (const listener of listeners)
      for (const id of ids) await listener.waitFor('sample', ({ data }) => data['alert_id'] === id && data['resolved'] === true);
    for (const name of [next, 'a']) await service(name).untilGet<List<Alert>>(`${STALE}&resolved=false`, ({ data }) => data.length === 0);
    before += gone.length;
    for (const listener of listeners) {
      const stale = listener.all('sample').filter(({ data }) => data['metric'] === 'health_status');
      t.equal(new Set(stale.map(({ data }) => data['alert_id'])).size, before, 'no other alert was published');
    }
  }
  for (const one of services.values()) await one.end();
});
