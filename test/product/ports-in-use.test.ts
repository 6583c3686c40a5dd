import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t, { type Test } from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { MULTICAST_GROUP, ports } from '../../src/rtps/wire/protocol.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { NotifySocket } from '../../testkit/service/notify-socket.ts';
import { type StatusDocument, startIn } from '../../testkit/service/rest.ts';
import type { RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

// Tests that the service monitors this machine, and reports the reason, while its ports are in use, and uses them once they are free.

const ALERTS = { raise_after_seconds: 3600, sensor_timeout_seconds: 1, clear_after_seconds: 0 };

const alertsOf = async (service: RunningService, metric: string): Promise<readonly Alert[]> =>
  (await service.json<{ data: Alert[] }>(`/alerts?metric=${metric}`)).data;

t.test('while its port is in use the service is ready, monitors and raises an ERROR, also across a restart', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  t.teardown(() => holder.close());
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const manager = await NotifySocket.listen(t);
  const reported = (text: string): Promise<boolean> =>
    until(`the status line has "${text}"`, () => manager.all.some(({ state }) => state['STATUS']?.includes(text)), {
      describe: () => manager.all,
    });
  const folder = temporaryFolder(t);
  const start = (): Promise<RunningService> =>
    startIn(t, folder, { config: { rest: { port }, alerts: ALERTS }, environment: { NOTIFY_SOCKET: manager.path } });
  const first = await start();
  const [, id = ''] = await first.logged(/alert ERROR metric=rest_api .*alert_id=(\S+)/);
  await reported(`REST API not listening: port ${port} is in use`);
  t.ok(
    manager.all.some(({ state }) => state['READY'] === '1'),
    'a service manager must not end it',
  );
  t.equal(await first.end(), 0);

  const second = await start();
  await second.logged(/open alerts restored count=1/);
  holder.close();
  const [resolved] = await second.logged(/alert resolved metric=rest_api .*/).then(() => alertsOf(second, 'rest_api'));
  t.match(resolved, { alert_id: id, severity: 'ERROR', resolved: true }, 'one episode');
  t.equal((await second.json<StatusDocument>('/status')).rest.problem, null);
  const history = await second.json<{ count: number }>('/health/history?hours=1');
  t.ok(history.count > 0, 'what was measured meanwhile is stored');
});

/** Binds ports as a program does that does not share them. */
async function holdPorts(t: Test, address: string, numbers: readonly number[]): Promise<() => void> {
  const sockets = await Promise.all(
    numbers.map(async (port): Promise<Socket> => {
      const socket = createSocket('udp4').bind(port, address);
      await once(socket, 'listening');
      return socket;
    }),
  );
  const release = (): void => {
    for (const socket of sockets.splice(0)) socket.close();
  };
  t.teardown(release);
  return release;
}

t.test('while the ports of the ROS 2 graph are in use the service raises an ERROR, and joins once they are free', async (t) => {
  const domain = await reserveDomain(t);
  const cases = {
    'held by a program that does not share it': await holdPorts(t, MULTICAST_GROUP, [ports.metaMulticast(domain)]),
    'no free port for another participant': null,
  };
  for (const [problem, held] of Object.entries(cases)) {
    const release =
      held ??
      (await holdPorts(
        t,
        '127.0.0.1',
        Array.from({ length: 120 }, (_, index) => ports.metaUnicast(domain, index)),
      ));
    const config = { ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' }, alerts: ALERTS };
    const service = await startIn(t, temporaryFolder(t), { config });
    await service.logged(/alert ERROR metric=ros_graph /);
    t.match((await service.json<StatusDocument>('/status')).ros.problem, problem);
    release();
    await service.logged(/alert resolved metric=ros_graph /);
    t.match(await alertsOf(service, 'ros_graph'), [{ severity: 'ERROR', resolved: true }], 'one episode');
    t.equal((await service.json<StatusDocument>('/status')).ros.problem, null);
    t.equal(await service.end(), 0);
  }
});
