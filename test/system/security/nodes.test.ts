import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import { topicOf, typeHashData } from '../../../src/ros/embedded/dds-names.ts';
import { newPrefix } from '../../../src/ros/embedded/rejoin.ts';
import { ALERT, HEALTH_STATUS } from '../../../src/ros/interfaces.generated.ts';
import type { MessageType } from '../../../src/ros/interfaces.ts';
import type { LocalWriter } from '../../../src/rtps/endpoints/endpoints.ts';
import { UdpNetwork } from '../../../src/rtps/net/network.ts';
import type { Participant } from '../../../src/rtps/participant.ts';
import { participantOn } from '../../../src/rtps/testing/participants.ts';
import { encode } from '../../../src/rtps/wire/cdr.ts';
import { row } from '../../../src/store/testing/rows.ts';
import { TestStore } from '../../../src/store/testing/store.ts';
import { reserveDomain } from '../../../testkit/network/domain.ts';
import { NO_ROS } from '../../../testkit/network/this-machine.ts';
import { alertOf, statusOf } from '../../../testkit/service/remote-nodes.ts';
import { type StatusDocument, startIn } from '../../../testkit/service/rest.ts';
import type { RunningService } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

// A participant of the graph with real datagrams that publishes what no robot does.

const LEASE_SECONDS = 5;
const OLD_ROBOT = 'robot1/health_monitor';
const NEW_ROBOT = 'robot2/health_monitor';

/** A participant that answers as any other does, and may vanish without a goodbye. */
class Outsider {
  readonly #network = new UdpNetwork(true);
  readonly #participant: Participant;

  constructor(t: Test, domain: number) {
    this.#participant = participantOn(this.#network, () => performance.now() / 1000, {
      domain,
      prefix: newPrefix(),
      staticPeers: ['127.0.0.1'],
      localhostOnly: true,
      leaseSeconds: LEASE_SECONDS,
      wallMilliseconds: Date.now,
    });
    t.teardown(() => this.vanish());
  }

  writes(topic: string, type: MessageType, depth = 1000): LocalWriter {
    return this.#participant.createWriter({
      topic: topicOf(topic),
      type: type.ddsName,
      transientLocal: true,
      depth,
      userData: typeHashData(type),
    });
  }

  start(): Promise<void> {
    return this.#participant.start();
  }

  /** Call it once a reader is matched. */
  publish(writer: LocalWriter, type: MessageType, message: object): void {
    this.#participant.write(writer, encode(type, { ...message }));
  }

  vanish(): void {
    this.#network.close();
  }
}

const isRead = (writer: LocalWriter): Promise<true> => until('it is read', () => writer.state.readerCount > 0);

/** Its files are on a disk, so that its writes can be measured. */
async function startOnDisk(t: Test, folder: string, domain: number, ros: object = {}): Promise<RunningService> {
  return startIn(t, folder, {
    config: {
      alerts: { raise_after_seconds: 3600 },
      ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST', ...ros },
    },
    environment: NO_ROS,
  });
}

function folderOnDisk(t: Test): string {
  const folder = mkdtempSync('/var/tmp/edge-health-test-');
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A robot that publishes its status twice a second. */
async function startRobot(t: Test, domain: number, name: string): Promise<LocalWriter> {
  const robot = new Outsider(t, domain);
  const writer = robot.writes(`/${name}/health_status`, HEALTH_STATUS, 10);
  await robot.start();
  const timer = setInterval(() => robot.publish(writer, HEALTH_STATUS, statusOf(name, Date.now())), 500);
  t.teardown(() => clearInterval(timer));
  return writer;
}

const remotes = (service: RunningService): Promise<string[]> =>
  service.json<StatusDocument>('/status').then(({ nodes }) => nodes.filter(({ local }) => !local).map(({ node_name }) => node_name));

t.test('invented nodes and topics do not keep a robot out, and are gone after a restart', async (t) => {
  const domain = await reserveDomain(t);
  const folder = folderOnDisk(t);
  // One robot is known from before; a node that is received for the first time is established after a minute.
  mkdirSync(join(folder, 'run'));
  const before = new TestStore(folder, { node: 'health_monitor' });
  await before.store.start();
  before.record([row(Date.now() - 60_000)], OLD_ROBOT);
  await before.stop();
  const first = await startOnDisk(t, folder, domain);
  const liar = new Outsider(t, domain);
  const statuses = liar.writes('/health_status', HEALTH_STATUS);
  await liar.start();
  await isRead(statuses);
  // Names of the maximum length, and some invalid ones.
  for (let i = 0; i < 511; i += 1) liar.publish(statuses, HEALTH_STATUS, statusOf(`made_up_${i}_`.padEnd(64, 'x'), Date.now()));
  for (const name of ['x'.repeat(65), 'a\u202eb', 'a\u001b[2Jb', '\u3164'])
    liar.publish(statuses, HEALTH_STATUS, statusOf(name, Date.now()));
  const crowded = await first.until<StatusDocument>('/status', ({ nodes, ros }) => nodes.length === 513 && ros.refused >= 4);
  t.ok(
    crowded.nodes.every(({ node_name }) => /^[\w/]{1,64}$/.test(node_name)),
    'names keep to the rule',
  );
  const metrics = await (await first.get('/metrics')).text();
  t.ok(metrics.length < 1_000_000, `${metrics.length} octets of /metrics`);
  await first.until<{ data: Alert[] }>('/alerts?metric=remote_nodes', ({ data }) => data[0]?.severity === 'WARNING' && !data[0].resolved);
  t.equal(crowded.nodes.find(({ local }) => local)?.node_name, 'health_monitor');

  const crowd = Array.from({ length: 5 }, (_, k) => {
    const one = new Outsider(t, domain);
    for (let i = 0; i < 240; i += 1) one.writes(`/made_up_${k}_${i}/health_status`, HEALTH_STATUS, 1);
    return one;
  });
  for (const one of crowd) await one.start();
  await first.logged(/too many remote topics/);
  for (const one of [liar, ...crowd]) one.vanish();

  const robots = [await startRobot(t, domain, OLD_ROBOT), await startRobot(t, domain, NEW_ROBOT)];
  for (const writer of robots) await isRead(writer);
  for (const robot of [OLD_ROBOT, NEW_ROBOT])
    await until(`${robot} is served`, async () => (await first.get(`/health?node=${robot}`)).status === 200);
  const names = await remotes(first);
  t.ok(names.includes(OLD_ROBOT) && names.includes(NEW_ROBOT));
  t.ok(names.length <= 512);
  await first.end();

  const second = await startOnDisk(t, folder, domain);
  t.same(
    (await remotes(second)).filter((name) => name !== NEW_ROBOT),
    [OLD_ROBOT],
  );
  for (const robot of [OLD_ROBOT, NEW_ROBOT])
    await until(`${robot} is served again`, async () => (await second.get(`/health?node=${robot}`)).status === 200);
  await second.until<{ count: number }>('/alerts?resolved=false', ({ count }) => count === 0);
});

const bytesWritten = ({ pid }: RunningService): number => Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);

t.test('413 forged changes of alerts write little to the disk, and are shown at once', async (t) => {
  const domain = await reserveDomain(t);
  const service = await startOnDisk(t, folderOnDisk(t), domain);
  const liar = new Outsider(t, domain);
  const alerts = liar.writes('/alerts', ALERT);
  await liar.start();
  await isRead(alerts);
  const before = bytesWritten(service);
  for (let i = 0; i < 413; i += 1) {
    const alert_id = `made_up_${i % 20}/battery/${i}`;
    liar.publish(alerts, ALERT, alertOf('', '', Date.now(), { metric: 'battery', alert_id }));
  }
  await service.until<{ count: number }>('/alerts?resolved=false&limit=1000', ({ count }) => count === 413);
  // The next minute's commit writes them.
  await until('they are written', async () =>
    (await service.get('/snapshot', { headers: { 'Edge-Health-Snapshot': '1' } }))
      .arrayBuffer()
      .then((body) => Buffer.from(body).includes('battery/412')),
  );
  const megabytes = (bytesWritten(service) - before) / 1e6;
  t.comment(`413 forged changes: ${megabytes.toFixed(2)} MB`);
  t.ok(megabytes < 3, `${megabytes.toFixed(2)} MB`);
});
