import t from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';

/** Tests that a participant on another host can neither change the alerts of a robot nor take its name. */

t.setTimeout(600_000);
const skip = peersUnavailable();

type List<T> = { readonly data: readonly T[] };
const NAME = 'robot';
const ROBOT = ['--topic', '/health_status', '--set', `node_name=${NAME}`, '--set', 'status=OK'];

const alertOf = (alert_id: string, severity: string, resolved: boolean): string[] => {
  const fields = { alert_id, severity, metric: 'temperature', value: 95, threshold: 90, timestamp: new Date().toISOString(), resolved };
  return [
    '--topic',
    '/alerts',
    '--count',
    '1',
    '--stay',
    ...Object.entries(fields).flatMap(([key, value]) => ['--set', `${key}=${value}`]),
  ];
};

for (const vendor of VENDORS) {
  t.test(`${vendor}: the robot that published first keeps its name and its alerts`, { skip }, async (t) => {
    const network = new Network();
    t.teardown(() => network.dispose());
    const segment = network.segment();
    const [here, there, strange] = [network.host(), network.host(), network.host()] as [Host, Host, Host];
    for (const host of [here, there, strange]) segment.attach(host);
    const service = await HostService.start(here, temporaryFolder(t), { config: { node_name: 'observer' } });
    const publish = (host: Host, cpu: number): Promise<Peer> =>
      Peer.start(host, vendor, 'publish', [...ROBOT, '--hz', '2', '--set', `cpu_percent=${cpu}`, '--set', `timestamp=${stamp(cpu)}`]);
    const node = ({ nodes }: StatusDocument) => nodes.find(({ node_name }) => node_name === NAME);
    const conflict = (isOpen: boolean): Promise<List<Alert>> =>
      service.untilGet<List<Alert>>(`/alerts?node=${NAME}&metric=name_conflict`, ({ data }) => data[0]?.resolved === !isOpen);

    const robot = await publish(there, 11);
    await service.untilGet<StatusDocument>('/status', (status) => node(status)?.status === 'OK');
    const raised = await Peer.start(there, vendor, 'publish', alertOf(`${NAME}/temperature/01`, 'CRITICAL', false));
    await service.untilGet<List<Alert>>(`/alerts?node=${NAME}`, ({ data }) => data.length === 1);
    const end = await Peer.start(strange, vendor, 'publish', alertOf(`${NAME}/temperature/01`, 'CRITICAL', true));
    const { remote } = await service.untilGet<StatusDocument>('/status', ({ remote }) => (remote?.alerts_refused ?? 0) > 0);
    t.equal(remote?.alerts_refused, 1);
    t.match((await service.get<List<Alert>>(`/alerts?node=${NAME}`)).data, [{ severity: 'CRITICAL', resolved: false }]);

    const rival = await publish(strange, 99);
    await conflict(true);
    const status = await service.get<StatusDocument>('/status');
    t.same(node(status)?.conflict_addresses, [there.addresses[0], strange.addresses[0]]);
    t.equal((await service.get<HealthStatus>(`/health?node=${NAME}`)).cpu_percent, 11);
    t.notOk((await service.get<List<HealthStatus>>(`/health/history?node=${NAME}`)).data.some(({ cpu_percent }) => cpu_percent === 99));
    await rival.kill();
    await conflict(false);
    for (const peer of [robot, raised, end]) await peer.kill();
    await service.end();
  });
}

/** Statuses of two publishers must differ in more than their time of publication. */
function stamp(cpu: number): string {
  return new Date(Date.now() - cpu * 1000).toISOString();
}
