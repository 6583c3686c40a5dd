import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { row } from '../../src/store/testing/rows.ts';
import { TestStore } from '../../src/store/testing/store.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { NO_ROS } from '../../testkit/network/this-machine.ts';
import { type StatusDocument, startIn } from '../../testkit/service/rest.ts';
import type { RunningService } from '../../testkit/service/service.ts';

type Node = StatusDocument['nodes'][number];

t.test('a service that is stopped has left, also after a restart of the observer; one that is killed is an ERROR', async (t) => {
  const domain = await reserveDomain(t);
  const folders = { observer: temporaryFolder(t), robot: temporaryFolder(t) };
  const machine = new MachineTree(t, 'pi5');
  const start = (name: keyof typeof folders): Promise<RunningService> =>
    startIn(t, folders[name], {
      config: {
        node_name: name,
        publish_frequency: 5,
        thresholds: { disk: { warning: 99.8, critical: 99.9 } },
        alerts: { raise_after_seconds: 3600, node_grace_seconds: 5 },
        ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' },
      },
      environment: NO_ROS,
      arguments: machine.arguments,
    });
  const untilRobot = async (service: RunningService, satisfied: (robot: Node) => boolean): Promise<void> => {
    await service.until<StatusDocument>('/status', ({ nodes }) => nodes.some((node) => node.node_name === 'robot' && satisfied(node)));
  };
  const staleAlerts = async (service: RunningService): Promise<readonly Alert[]> =>
    (await service.json<{ data: Alert[] }>('/alerts?node=robot&metric=health_status')).data;

  // An observer that restarts within a minute forgets a node that it received for the first time.
  const before = new TestStore(folders.observer, { node: 'observer' });
  await before.store.start();
  before.record([row(Date.now() - 60_000)], 'robot');
  await before.stop();
  const observer = await start('observer');
  const robot = await start('robot');
  await untilRobot(observer, ({ timestamp }) => timestamp !== null);
  t.equal(await robot.end('SIGTERM'), 0);
  await untilRobot(observer, ({ left }) => left !== null);
  // Three periods and the grace are 5.6 s: a node that vanished would be an ERROR by now.
  await untilRobot(observer, ({ age_seconds }) => (age_seconds ?? 0) > 7);
  t.same(await staleAlerts(observer), []);
  t.equal((await observer.json<StatusDocument>('/status')).status, 'OK', 'a node that left makes nothing worse');
  t.equal(await observer.end('SIGTERM'), 0);

  const again = await start('observer');
  await untilRobot(again, ({ left, timestamp }) => left !== null && timestamp === null);
  const back = await start('robot');
  await untilRobot(again, ({ left, stale, status }) => left === null && !stale && status !== 'UNKNOWN');
  t.same(await staleAlerts(again), []);
  await back.end('SIGKILL');
  await untilRobot(again, ({ left, stale }) => left === null && stale);
  t.match(await staleAlerts(again), [{ severity: 'ERROR', resolved: false }]);
  t.equal((await again.json<{ count: number }>('/alerts?metric=name_conflict')).count, 0, 'a restart is no conflict');
  const { nodes, status } = await again.json<StatusDocument>('/status');
  t.equal(status, 'ERROR', 'the worst of all nodes and open alerts');
  t.match(
    nodes.map((node) => [node.node_name, node.status]),
    [
      ['observer', 'OK'],
      ['robot', 'UNKNOWN'],
    ],
  );
});
