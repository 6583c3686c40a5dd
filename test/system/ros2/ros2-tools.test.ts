import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { documentedAlone, documentedWith } from './support/documentation.ts';
import { buildPackages, middlewares, type Ros, ros2, ros2Unavailable } from './support/ros2.ts';

/** The commands of a robotics engineer with the sourced ROS 2, on the service with each of its transports. */

const skip = ros2Unavailable();

const SUBSCRIBER = `
import math, sys, rclpy
from rclpy.qos import QoSProfile, DurabilityPolicy
from edge_health_interfaces.msg import HealthStatus
rclpy.init()
node = rclpy.create_node('listener')
count = 0
def received(status):
    global count
    count += 1
    assert status.status in ('OK', 'WARNING', 'ERROR', 'CRITICAL', 'UNKNOWN'), status
    assert status.timestamp.endswith('Z') and 0 <= status.memory_percent <= 100
    print(status.node_name, flush=True)
node.create_subscription(HealthStatus, '/health_status', received, QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL))
while count < 3:
    rclpy.spin_once(node, timeout_sec=1.0)
`;

const CALLER = `
import rclpy
from edge_health_interfaces.srv import SafeShutdown
rclpy.init()
node = rclpy.create_node('caller')
client = node.create_client(SafeShutdown, '/safe_shutdown')
assert client.wait_for_service(timeout_sec=15.0)
for timeout in (0.0, float('nan'), 10.0):
    future = client.call_async(SafeShutdown.Request(reason='USER_REQUEST', requested_by='rclpy', timeout=timeout))
    rclpy.spin_until_future_complete(node, future, timeout_sec=10.0)
    print(future.result().success, future.result().message, flush=True)
`;

/** Watches the deadline and the liveliness of the statuses of a process, which it stops for a while after some statuses. */
const WATCHER = `
import os, signal, sys, rclpy
from rclpy.duration import Duration
from rclpy.qos import QoSProfile
from rclpy.event_handler import SubscriptionEventCallbacks
from edge_health_interfaces.msg import HealthStatus
rclpy.init()
node = rclpy.create_node('watcher')
found = {'statuses': 0, 'late': 0, 'alive': 0, 'refused': []}
def received(_):
    found['statuses'] += 1
def late(event):
    found['late'] = event.total_count
def liveliness(event):
    found['alive'] = event.alive_count
def refused(event):
    found['refused'].append(str(event.last_policy_kind).split('.')[-1])
def subscribe(deadline, lease, events):
    qos = QoSProfile(depth=10, deadline=Duration(seconds=deadline), liveliness_lease_duration=Duration(seconds=lease))
    return node.create_subscription(HealthStatus, '/health_status', received, qos, event_callbacks=events)
def until(condition):
    while not condition():
        rclpy.spin_once(node, timeout_sec=1.0)
watching = subscribe(4, 10, SubscriptionEventCallbacks(deadline=late, liveliness=liveliness, incompatible_qos=refused))
strict = subscribe(0.5, 10, SubscriptionEventCallbacks(incompatible_qos=refused))
until(lambda: found['statuses'] >= 10 and found['alive'] == 1 and found['refused'])
print('late', found['late'], 'refused', found['refused'], flush=True)
os.kill(int(sys.argv[1]), signal.SIGSTOP)
until(lambda: found['late'] > 0 and found['alive'] == 0)
os.kill(int(sys.argv[1]), signal.SIGCONT)
until(lambda: found['alive'] == 1)
print('alive again', flush=True)
`;

/** All commands on one service. */
async function engineer(t: Test, host: Host, ros: Ros, middleware: string, service: HostService): Promise<void> {
  const run = (...args: string[]): Promise<string> => ros2(host, ros, middleware, args);
  const status = await run('topic', 'echo', '--once', '/health_status', 'edge_health_interfaces/msg/HealthStatus');
  t.match(
    status,
    /cpu_percent: [\d.]+\nmemory_percent: [\d.]+\ndisk_percent: [\d.]+\ntemperature: .*\nstatus: \w+\nnode_name: health_monitor\n/,
  );
  // With one of these options alone echo is best effort, and Cyclone DDS sends no earlier samples to such a subscriber.
  const lateJoiner = ['--qos-durability', 'transient_local', '--qos-reliability', 'reliable'];
  const alert = await run('topic', 'echo', '--once', ...lateJoiner, '/alerts', 'edge_health_interfaces/msg/Alert');
  t.match(alert, /alert_id: health_monitor\/(cpu|memory)_percent\/\w+\n/, 'an alert of before is still reported');
  t.match(await run('topic', 'echo', '--once', '/diagnostics', 'diagnostic_msgs/msg/DiagnosticArray'), /name: 'health_monitor: CPU usage'/);

  const nodes = (await run('node', 'list', '--no-daemon', '--spin-time', '3')).trim().split('\n');
  for (const name of ['/health_monitor', '/threshold_monitor', '/alert_publisher', '/safe_shutdown'])
    t.same(
      nodes.filter((node) => node === name),
      [name],
      'each once, whichever participant has it',
    );
  const info = await run('topic', 'info', '-v', '/health_status', '--no-daemon', '--spin-time', '3');
  t.match(info, /Publisher count: 1\n\nNode name: health_monitor\n/);
  t.match(info, /Reliability: RELIABLE\n.*History.*\n\s*Durability: TRANSIENT_LOCAL/);
  const listed = await run('param', 'list', '--no-daemon', '--spin-time', '3');
  for (const node of ['health_monitor', 'threshold_monitor'])
    t.match(listed, new RegExp(`/${node}:\\n(  alerts\\..*\\n)+(  thresholds\\..*\\n)+`), `the parameters of ${node}`);
  t.notMatch(listed, /alert_publisher|safe_shutdown/, 'the others have none, and say so at once');
  const warning = ['/threshold_monitor', 'thresholds.cpu.warning'];
  t.equal(await run('param', 'get', '--no-daemon', ...warning), 'Double value is: 80.0\n');
  t.match(await run('param', 'describe', '--no-daemon', ...warning), /Read only: true/);
  const set = ['/threshold_monitor/set_parameters', 'rcl_interfaces/srv/SetParameters', '{parameters: [{name: thresholds.cpu.warning}]}'];
  t.match(await run('service', 'call', ...set), /read-only: change the configuration file/);
  const rate = /average rate: ([\d.]+)/.exec(await ros2(host, ros, middleware, ['topic', 'hz', '/health_status'], 8));
  t.ok(Math.abs(Number(rate?.[1]) - 1) < 0.05, `${rate?.[1]} Hz`);

  const called = await run(
    'service',
    'call',
    '/safe_shutdown',
    'edge_health_interfaces/srv/SafeShutdown',
    '{reason: BOREDOM, requested_by: me, timeout: 1}',
  );
  t.match(called, /success=False, message='refused: reason: found "BOREDOM"/);
  const script = (name: string, text: string): string => {
    const file = join(ros.folder, name);
    writeFileSync(file, text);
    return file;
  };
  t.equal(await run('python3', script('subscriber.py', SUBSCRIBER)), 'health_monitor\n'.repeat(3));
  const watched = await ros2(host, ros, middleware, ['python3', script('watcher.py', WATCHER), String(service.pid)], 120);
  t.match(watched, /^late 0 refused \[.*DEADLINE.*\]\nalive again\n$/);
  const replies = (await run('python3', script('caller.py', CALLER))).trim().split('\n');
  t.match(replies, [/^False .*timeout: found 0/, /^False .*timeout: found NaN/, /^True accepted: dry-run for USER_REQUEST/]);

  const { shutdown } = await service.get<StatusDocument>('/status');
  t.match(shutdown.requests[0], { address: '127.0.0.1', port: Number, user: 'root' }, 'who called is known with either transport');

  const robot = '{node_name: robot2, status: OK, cpu_percent: 12.5, timestamp: "2026-01-01T00:00:00Z"}';
  await run(
    'topic',
    'pub',
    '-t',
    '3',
    '-w',
    '1',
    '--qos-durability',
    'transient_local',
    '/health_status',
    'edge_health_interfaces/msg/HealthStatus',
    robot,
  );
  await service.untilGet<{ data: Alert[] }>('/alerts?node=robot2&metric=health_status&resolved=false', ({ data }) => data.length === 1);
}

t.test('the tools of ROS 2 work with the service', { skip, timeout: 1_200_000 }, async (t) => {
  const folder = temporaryFolder(t);
  const environment = buildPackages(folder);
  const ros: Ros = { environment, folder };
  const prepared = temporaryFolder(t);

  await t.test('ros-setup prepares it, and reports the second time that it is prepared', async (t) => {
    for (const said of [/is prepared/, /already prepared/]) {
      const args = ['ros-setup', '--data', prepared];
      const { status, stdout, stderr } = spawnSync(join(ROOT, 'bin/edge-health'), args, { encoding: 'utf8', env: process.env });
      t.equal(status, 0, stderr);
      t.match(stdout, said);
    }
  });

  await t.test('documented commands that need no service', (t) => documentedAlone(t, ros, middlewares()[0] as string));

  for (const transport of ['embedded', 'rclnodejs'] as const) {
    for (const middleware of middlewares()) {
      await t.test(`${transport} and ${middleware}`, async (t) => {
        const network = new Network();
        t.teardown(() => network.dispose());
        const host = network.host();
        const config = {
          // The prepared copy is found there, and no other process uses it.
          storage: { path: prepared },
          ros: { transport: transport === 'embedded' ? 'embedded' : 'auto' },
          // Memory is always in use.
          thresholds: { memory: { warning: 0.1, critical: 99.9 } },
          alerts: { raise_after_seconds: 0 },
          safe_shutdown: { action: 'dry-run' },
          // With either transport its leaving is an ERROR.
          ops: { check: { nodes: ['robot2'] } },
        };
        const variables = { ...process.env, RMW_IMPLEMENTATION: middleware, ROS_DOMAIN_ID: '0', FASTDDS_BUILTIN_TRANSPORTS: 'UDPv4' };
        const data = temporaryFolder(t);
        const service = await HostService.start(host, data, { config, environment: variables });
        const { ros: state } = await service.untilGet<StatusDocument>('/status', (status) => status.ros.transport !== 'off');
        t.equal(state.transport, transport, state.reason);
        await service.untilGet<{ data: Alert[] }>('/alerts?resolved=false', ({ data }) => data.length > 0);
        const environment = { ...ros.environment, EDGE_HEALTH_CONFIG: join(data, 'config.yaml') };
        await documentedWith(t, service, host, { ...ros, environment }, middleware);
        await engineer(t, host, ros, middleware, service);
        await service.end();
      });
    }
  }
});
