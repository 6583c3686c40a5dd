import t from 'tap';
import { RobotHost } from '../../../bench/fleet/robots.ts';
import type { Aggregate } from '../../../src/core/ports.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Cleanup } from '../../../testkit/cleanup.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';

const HOSTS = 3;
const ROBOTS_A_HOST = 12;
const ROBOTS = HOSTS * ROBOTS_A_HOST;
const DOMAIN_ID = 41;
const SECONDS = 3;

const pause = (seconds: number): Promise<void> => new Promise((later) => setTimeout(later, seconds * 1000));

t.test('a fleet in namespaces: every robot is received, every status is stored, and missing robots raise alerts', async (t) => {
  const network = new Network();
  const folder = temporaryFolder(t);
  const cleanup = new Cleanup();
  t.teardown(async () => {
    await cleanup.end();
    network.dispose();
  });
  const segment = network.segment();
  const place = network.host();
  segment.attach(place, { number: 250 });
  const service = await HostService.start(place, folder, { config: { ros: { transport: 'embedded', domain_id: DOMAIN_ID } } });
  t.teardown(() => service.end('SIGKILL'));
  const robotAddresses = Array.from({ length: HOSTS }, (_, i) => segment.address(i + 1));
  const hosts = await Promise.all(
    robotAddresses.map((_, i) => {
      const host = network.host();
      segment.attach(host, { number: i + 1 });
      const range = { first: i * ROBOTS_A_HOST, count: ROBOTS_A_HOST, isNamespaced: true, observe: false };
      return RobotHost.start(cleanup, host, { domainId: DOMAIN_ID, robotAddresses, ...range });
    }),
  );
  await Promise.all(hosts.map((host) => host.ask({ do: 'join' }, 'joined')));
  for (const host of hosts) host.send({ do: 'publish' });
  // More topics than are announced to every participant: further ones work as well.
  const robotsOf = ({ nodes }: StatusDocument): StatusDocument['nodes'] => nodes.filter(({ local }) => !local);
  await service.untilGet<StatusDocument>('/status', (status) => robotsOf(status).filter(({ timestamp }) => timestamp).length === ROBOTS);

  // Counted by the time stamps of the hosts, which have one clock: each status in the range is counted once, however long this takes.
  const fromMs = Date.now();
  await pause(SECONDS);
  const toMs = Date.now();
  const sent = (await Promise.all(hosts.map((host) => host.ask({ do: 'sent', fromMs, toMs }, 'sent')))).flatMap(({ robots }) => robots);
  t.equal(sent.length, ROBOTS);
  const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs - 1).toISOString()}`;
  // One that was announced to every participant, one that was announced individually, and one in between.
  for (const { name, count } of [sent[0], sent[ROBOTS / 2], sent[ROBOTS - 1]] as typeof sent) {
    t.ok(count > 0, `${count} of ${name}`);
    const path = `/health/aggregate?node=${encodeURIComponent(name)}&${range}`;
    await service.untilGet<Aggregate>(path, ({ samples_received }) => samples_received === count);
  }
  const before = await service.get<StatusDocument>('/status');
  t.same(
    robotsOf(before).filter(({ stale }) => stale),
    [],
    'nobody is called stale',
  );
  t.equal(before.ros.peers, ROBOTS);

  const { names } = await (hosts[1] as RobotHost).ask({ do: 'vanish', count: 3 }, 'vanished');
  const after = await service.untilGet<StatusDocument>('/status', (status) => robotsOf(status).some(({ stale }) => stale));
  const stale = await service
    .untilGet<StatusDocument>('/status', (status) => robotsOf(status).filter((node) => node.stale).length === names.length)
    .then((status) => robotsOf(status).filter((node) => node.stale));
  t.same(stale.map(({ node_name }) => node_name).sort(), [...names].sort(), 'those and no others');
  t.equal(robotsOf(after).length, ROBOTS);
});
