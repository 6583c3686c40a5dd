import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { GraphWatch } from '../harness/support/graph-watch.ts';
import { buildPackages, ros2, ros2Unavailable } from './support/ros2.ts';

/** Tests the subscription of the harness on either transport, with the service on either transport, in the sourced ROS 2. */

const skip = ros2Unavailable();
const TIMEOUT_SECONDS = 60;
const TRANSPORTS = ['embedded', 'rclnodejs'] as const;
const MIDDLEWARE = process.env['RMW_IMPLEMENTATION'] ?? 'rmw_cyclonedds_cpp';

t.test('the harness receives the service with ROS 2', { skip, timeout: 900_000 }, async (t) => {
  const folder = temporaryFolder(t);
  const ros = { environment: buildPackages(folder), folder };
  const prepared = temporaryFolder(t);
  const { status, stderr } = spawnSync(join(ROOT, 'bin/edge-health'), ['ros-setup', '--data', prepared], { encoding: 'utf8' });
  t.equal(status, 0, stderr);
  const environment = {
    ...process.env,
    RMW_IMPLEMENTATION: MIDDLEWARE,
    ROS_DOMAIN_ID: '0',
    ROS_AUTOMATIC_DISCOVERY_RANGE: 'SUBNET',
    FASTDDS_BUILTIN_TRANSPORTS: 'UDPv4',
  };

  for (const transport of TRANSPORTS) {
    await t.test(`the service on ${transport}`, async (t) => {
      const network = new Network();
      t.teardown(() => network.dispose());
      const host = network.host();
      const config = {
        publish_frequency: 10,
        storage: { path: prepared },
        ros: { transport },
        // Memory is always in use.
        thresholds: { memory: { warning: 0.1, critical: 99.9 } },
        alerts: { raise_after_seconds: 0 },
      };
      let service = await HostService.start(host, temporaryFolder(t), { config, environment });
      await service.untilGet<StatusDocument>('/status', (now) => now.ros.transport === transport);
      const watches = await Promise.all(
        TRANSPORTS.map((by) => GraphWatch.start(host, { transport: by, dataFolder: prepared }, environment)),
      );
      for (const [i, watch] of watches.entries()) {
        t.match(watch.all('ready')[0], { transport: TRANSPORTS[i], reason: /domain 0, discovery range SUBNET/ });
        await watch.waitForCount('status', 30, () => true, TIMEOUT_SECONDS);
        await watch.waitFor('alert', ({ alert }) => alert.metric === 'memory_percent', TIMEOUT_SECONDS);
      }
      const nodes = await ros2(host, ros, MIDDLEWARE, ['node', 'list', '--no-daemon', '--spin-time', '3']);
      t.equal(nodes.split('\n').filter((name) => name === '/edge_health_harness').length, 2, nodes);

      const robot = '{node_name: robot2, status: OK, cpu_percent: 12.5, timestamp: "2026-01-01T00:00:00Z"}';
      const type = 'edge_health_interfaces/msg/HealthStatus';
      await ros2(host, ros, MIDDLEWARE, ['topic', 'pub', '-t', '3', '-w', '1', '/health_status', type, robot]);

      await service.end('SIGKILL');
      const killed = new Date().toISOString();
      service = await HostService.start(host, temporaryFolder(t), { config, environment });
      await service.untilGet<StatusDocument>('/status', (now) => now.ros.transport === transport);
      for (const watch of watches) {
        await watch.waitForCount('status', 30, ({ status }) => status.timestamp > killed, TIMEOUT_SECONDS);
      }
      const { data } = await service.get<{ data: readonly HealthStatus[] }>('/health/history?hours=1&order=asc&limit=10000');
      for (const [i, watch] of watches.entries()) {
        const stamps = watch.statuses.map(({ timestamp }) => timestamp);
        const received = new Set(stamps);
        // From the first received status of each run of the service on; the last ones may still be on their way.
        const runs = [data.filter(({ timestamp }) => timestamp < killed), data.filter(({ timestamp }) => timestamp > killed).slice(0, -20)];
        const firsts = [stamps[0], stamps.find((stamp) => stamp > killed)];
        const missing = runs.flatMap((run, n) => run.filter(({ timestamp }) => timestamp >= (firsts[n] ?? '') && !received.has(timestamp)));
        t.same(missing, [], `${TRANSPORTS[i]}: ${stamps.length} statuses, also over a restart`);
        t.same([...new Set(watch.statuses.map(({ node_name }) => node_name))], ['health_monitor'], 'of nobody else');
        t.equal(await watch.stop(), 0, 'it ended as asked');
      }
      await service.end();
    });
  }
});
