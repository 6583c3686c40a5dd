import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Alert } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { ShutdownCall, ShutdownCaller, ShutdownProgress } from '../../core/shutdown/shutdown.ts';
import { decode, encode } from '../../rtps/wire/cdr.ts';
import type { DiagnosticContext } from '../diagnostics.ts';
import type { ShutdownServer } from '../graph.ts';
import { ALERT, ALERT_ARRAY, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import { healthStatusMessage } from '../messages.ts';
import { graphNames } from '../names.ts';
import { FakeLibrary, type FakePublisher } from './testing/fake-library.ts';
import { RclnodejsTransport } from './transport.ts';

const STATUS: HealthStatus = {
  cpu_percent: 12.5,
  memory_percent: null,
  disk_percent: 78.9,
  temperature: 51,
  status: 'OK',
  node_name: 'brain/health_monitor',
  timestamp: '2026-03-04T05:06:07.089Z',
};
const PROGRESS: ShutdownProgress = {
  request_id: '01J',
  state: 'in_progress',
  step: 'announce',
  reason: 'MANUAL',
  requested_by: 'Größe ✓',
  action: 'dry-run',
  seconds_left: 29.5,
  message: '',
  timestamp: STATUS.timestamp,
};
const PARAMETER = { name: 'thresholds.cpu.warning', value: 80, description: '', constraints: '' };
const LIMIT = { warning: 80, critical: 90 };
const DIAGNOSTICS: DiagnosticContext = {
  hostname: 'box',
  thresholds: { cpu_percent: LIMIT, memory_percent: LIMIT, disk_percent: LIMIT, temperature: LIMIT },
  openAlerts: [],
  isExpected: () => true,
};

interface Changes {
  readonly observe?: boolean;
  readonly offerShutdown?: boolean;
  readonly enclave?: string;
  readonly shutdownServer?: ShutdownServer;
}

function setUp(t: Test, { observe = true, offerShutdown = true, enclave, shutdownServer }: Changes = {}) {
  const before = { ...process.env };
  t.teardown(() => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  });
  const library = new FakeLibrary();
  const calls: { call: ShutdownCall; caller: ShutdownCaller }[] = [];
  const statuses: HealthStatus[] = [];
  const left: string[] = [];
  const lines: string[] = [];
  const clock = { seconds: 1000 };
  const transport = new RclnodejsTransport({
    load: () => library.asRclnodejs(),
    prepared: { key: 'jazzy-2.2.0-1a2b3c4d', distro: 'jazzy', folder: '/nonexistent' },
    enclave: enclave ?? null,
    shutdownServer: shutdownServer ?? null,
    discovery: { domainId: 42, discoveryRange: 'LOCALHOST', staticPeers: ['10.0.0.1'] },
    names: graphNames({ node_name: 'health_monitor', namespace: '/brain' }, []),
    localNode: 'brain/health_monitor',
    observe: observe ? 'always' : 'never',
    parameters: () => [PARAMETER],
    publishSeconds: 1,
    diagnostics: () => DIAGNOSTICS,
    log: (level, message, fields) => lines.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`),
    monotonicSeconds: () => clock.seconds,
    listener: {
      onHealthStatus: (status) => statuses.push(status),
      onAlert: () => undefined,
      onPublisherGone: (node, participant, hasLeft) => left.push(`${node} ${participant} ${hasLeft}`),
      onSafeShutdown: offerShutdown
        ? async (call, caller) => {
            calls.push({ call, caller });
            return { success: true, message: 'started' };
          }
        : null,
    },
  });
  const publisher = (node: string, topic: string): FakePublisher => library.node(node).publishers.get(topic) as FakePublisher;
  return { transport, library, calls, statuses, left, lines, clock, publisher };
}

t.test('four nodes are created with their topics and types, in the configured domain', async (t) => {
  const { transport, library, publisher } = setUp(t, { enclave: '/edge_health' });
  await transport.start();
  t.same(
    library.nodes.map(({ name, namespace }) => `${namespace}/${name}`),
    ['/brain/health_monitor', '/brain/threshold_monitor', '/brain/alert_publisher', '/brain/safe_shutdown'],
  );
  t.ok(library.nodes.every(({ options }) => !options.enableRosout && !options.startParameterServices));
  const offered = library.nodes.flatMap(({ publishers }) =>
    [...publishers].map(([topic, { type, qos }]) => [topic, type, qos.reliability, qos.durability, qos.depth]),
  );
  t.same(offered, [
    ['/brain/health_status', 'edge_health_interfaces/msg/HealthStatus', 1, 1, 10],
    ['/diagnostics', 'diagnostic_msgs/msg/DiagnosticArray', 1, 2, 10],
    ['/_edge_health/always/brain/health_monitor', 'edge_health_interfaces/msg/HealthStatus', 1, 2, 1],
    ['/brain/alerts', 'edge_health_interfaces/msg/Alert', 1, 1, 10],
    ['/brain/open_alerts', 'edge_health_interfaces/msg/AlertArray', 1, 1, 1],
    ['/brain/shutdown_status', 'edge_health_interfaces/msg/ShutdownStatus', 1, 1, 200],
  ]);
  t.same(
    [...library.node('safe_shutdown').services].map(([name, { type }]) => [name, type]),
    [
      ['/brain/safe_shutdown', 'edge_health_interfaces/srv/SafeShutdown'],
      ['/brain/health_monitor/safe_shutdown', 'edge_health_interfaces/srv/SafeShutdown'],
    ],
  );
  t.same(library.argv, ['--ros-args', '--disable-external-lib-logs', '--enclave', '/edge_health']);
  t.match(process.env, { ROS_DOMAIN_ID: '42', ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST', ROS_STATIC_PEERS: '10.0.0.1' });
  t.same(
    library.nodes.map(({ spunWith }) => spunWith),
    [null, 500, null, 500],
    'only nodes that wait for something spin',
  );
  t.match(publisher('health_monitor', '/brain/health_status').qos, { deadlineMilliseconds: 2000, leaseMilliseconds: 5000 });
  t.notOk('deadlineMilliseconds' in publisher('alert_publisher', '/brain/alerts').qos);
  await transport.stop();
  t.equal(library.contexts[0]?.shutdowns, 1);
});

t.test('messages are published unchanged', async (t) => {
  const { transport, publisher } = setUp(t);
  await transport.start();
  const alert: Alert = {
    alert_id: 'brain/health_monitor/cpu_percent/1',
    severity: 'CRITICAL',
    metric: 'cpu_percent',
    value: 97,
    threshold: 95,
    timestamp: STATUS.timestamp,
    resolved: false,
  };
  transport.publishHealth(STATUS);
  transport.publishAlert(alert);
  transport.publishOpenAlerts([alert, alert], '1970-01-01T00:01:40.007Z');
  transport.publishShutdown(PROGRESS);
  const [health] = publisher('health_monitor', '/brain/health_status').sent;
  t.match(decode(HEALTH_STATUS, health as Buffer), { ...STATUS, memory_percent: Number.NaN });
  t.same(decode(ALERT, publisher('alert_publisher', '/brain/alerts').sent[0] as Buffer), alert);
  t.same(decode(ALERT_ARRAY, publisher('alert_publisher', '/brain/open_alerts').sent[0] as Buffer), {
    stamp: { sec: 100, nanosec: 7_000_000 },
    node_name: 'brain/health_monitor',
    alerts: [alert, alert],
  });
  t.same(decode(SHUTDOWN_STATUS, publisher('safe_shutdown', '/brain/shutdown_status').sent[0] as Buffer), PROGRESS);
  await transport.stop();
});

t.test('diagnostics at most once a second, and only with a subscriber', async (t) => {
  const { transport, publisher, clock } = setUp(t);
  await transport.start();
  const diagnostics = publisher('health_monitor', '/diagnostics');
  transport.publishHealth(STATUS);
  t.equal(diagnostics.sent.length, 0, 'no subscriber');
  diagnostics.subscriptionCount = 1;
  for (let i = 0; i < 30; i += 1) {
    transport.publishHealth(STATUS);
    clock.seconds += 0.1;
  }
  t.equal(diagnostics.sent.length, 3, 'three seconds at 10 Hz');
  t.match(decode(DIAGNOSTIC_ARRAY, diagnostics.sent[0] as Buffer), { status: [{ hardware_id: 'box', message: 'OK' }] });
  await transport.stop();
});

t.test('a request is passed to the handler and answered', async (t) => {
  const { transport, library, calls } = setUp(t);
  await transport.start();
  const service = library.node('safe_shutdown').services.get('/brain/safe_shutdown');
  t.same(await service?.answer({ reason: 'MANUAL', requested_by: 'ops', timeout: 30 }), { success: true, message: 'started' });
  t.match(calls, [{ call: { reason: 'MANUAL', requested_by: 'ops', timeout: 30 }, caller: { dds: null } }]);
  await transport.stop();
});

t.test('without safe shutdown and without observation no executor runs', async (t) => {
  const { transport, library, publisher } = setUp(t, { observe: false, offerShutdown: false });
  await transport.start();
  t.same(
    library.nodes.map(({ name }) => name),
    ['health_monitor', 'threshold_monitor', 'alert_publisher'],
    'no node of a service that is not offered',
  );
  t.ok(
    publisher('health_monitor', '/brain/shutdown_status'),
    'the steps of a shutdown that was requested another way are published all the same',
  );
  t.ok(
    library.nodes.every(({ services, subscriptions, spunWith }) => services.size === 0 && subscriptions.length === 0 && spunWith === null),
  );
  await transport.stop();
});

t.test('where the embedded participant serves the safe shutdown, it has the node with the services and /shutdown_status', async (t) => {
  const arrived: string[] = [];
  const shutdownServer = {
    problem: null as string | null,
    start: async () => void arrived.push('started'),
    stop: () => void arrived.push('stopped'),
    publish: (message: Buffer) => void arrived.push((decode(SHUTDOWN_STATUS, message) as { step: string }).step),
  };
  const { transport, library } = setUp(t, { shutdownServer });
  await transport.start();
  t.same(
    library.nodes.map(({ name }) => name),
    ['health_monitor', 'threshold_monitor', 'alert_publisher'],
  );
  t.ok(library.nodes.every(({ services }) => services.size === 0));
  t.notOk(library.nodes.some(({ publishers }) => publishers.has('/brain/shutdown_status')));
  transport.publishShutdown(PROGRESS);
  t.equal(transport.details().problem, null);
  shutdownServer.problem = 'no free port';
  t.equal(transport.details().problem, 'no free port');
  await transport.stop();
  t.same(arrived, ['started', PROGRESS.step, 'stopped']);
});

t.test('messages before the start and after the stop are dropped', async (t) => {
  const { transport, publisher } = setUp(t);
  transport.publishHealth(STATUS);
  await transport.start();
  const { sent } = publisher('health_monitor', '/brain/health_status');
  await transport.stop();
  transport.publishHealth(STATUS);
  t.equal(sent.length, 0);
  await transport.stop();
});

t.test('errors of the middleware are logged and do not reach the service', async (t) => {
  const { transport, publisher, lines, clock } = setUp(t);
  await transport.start();
  publisher('health_monitor', '/brain/health_status').failure = new Error('out of resources');
  for (let i = 0; i < 5; i += 1) transport.publishHealth(STATUS);
  t.match(lines, [/^error cannot publish through rclnodejs .*\/brain\/health_status.*out of resources/]);
  t.equal(lines.length, 1, 'once a minute');
  clock.seconds += 61;
  transport.publishHealth(STATUS);
  t.match(lines.at(-1), /suppressed/);
  await transport.stop();
});

t.test('an error in a callback does not reach native code', async (t) => {
  const { transport, library, lines } = setUp(t);
  await transport.start();
  const node = library.node('safe_shutdown');
  node.onExecute = () => {
    throw new Error('deserialization failed');
  };
  t.doesNotThrow(() => node.execute([]));
  t.match(lines, [/^warning rclnodejs could not process a message .*safe_shutdown.*deserialization failed/]);
  await transport.stop();
});

t.test('a start that fails leaves nothing running', async (t) => {
  const { transport, library } = setUp(t);
  library.refusedNode = 'alert_publisher';
  await t.rejects(transport.start(), /no node alert_publisher here/);
  t.equal(library.contexts[0]?.shutdowns, 1);
  t.doesNotThrow(() => transport.publishHealth(STATUS));
});

t.test('only remote subscribers are counted', async (t) => {
  const { transport, library, publisher, statuses } = setUp(t);
  t.equal(transport.details().subscribers, null, 'not known yet');
  await transport.start();
  const health = publisher('health_monitor', '/brain/health_status');
  health.subscriptionCount = 3;
  t.equal(transport.details().subscribers, 2, 'without the own one');
  health.subscriptionCount = 0;
  t.equal(transport.details().subscribers, 0, 'not matched with itself yet');
  transport.publishHealth(STATUS);
  library.node('threshold_monitor').subscriptions[0]?.deliver(health.sent[0] as Buffer);
  await setImmediate();
  t.same(
    [statuses, transport.details()],
    [[], { peers: null, subscribers: 0, refused: 0, problem: null, note: null }],
    'its own comes back and is nothing new',
  );
  library.node('threshold_monitor').subscriptions[0]?.deliver(Buffer.from('?'));
  await setImmediate();
  t.equal(transport.details().refused, 1);
  await transport.stop();
});

t.test('topics of other namespaces are read by the end of their name', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { transport, library } = setUp(t);
  const [health, alert] = ['edge_health_interfaces/msg/HealthStatus', 'edge_health_interfaces/msg/Alert'];
  library.graph.topics.push(
    { name: '/robot1/health_status', types: [health] },
    { name: '/robot1/my_health_status', types: [health] },
    { name: '/robot1/alerts', types: [alert] },
    { name: '/robot2/alerts', types: [health] },
  );
  await transport.start();
  mock.timers.tick(1000);
  const node = library.node('threshold_monitor');
  node.runTriggered();
  t.same(
    node.subscriptions.map(({ topic }) => topic),
    ['/brain/health_status', '/brain/alerts', '/robot1/alerts', '/robot1/health_status'],
  );
  await transport.stop();
});

t.test('another monitor with the same name is logged once, and a problem until a minute after its last message', async (t) => {
  const { transport, library, lines, clock } = setUp(t);
  await transport.start();
  for (const second of [0, 59, 118]) {
    clock.seconds = 1000 + second;
    library.node('threshold_monitor').subscriptions[0]?.deliver(encode(HEALTH_STATUS, healthStatusMessage(STATUS)));
    await setImmediate();
  }
  t.match(
    transport.details().problem,
    /^another monitor on the graph is also named brain\/health_monitor; set another node_name on one of the two machines, then: sudo systemctl restart/,
  );
  t.match(lines, [/^warning another monitor on the graph has the same name.*"topic":"\/brain\/health_status"/]);
  clock.seconds += 60;
  t.equal(transport.details().problem, null);
  await transport.stop();
});

t.test('other machines that offer the shared name of the safe shutdown are noted while they are present, and no problem', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { transport, library, lines } = setUp(t);
  library.graph.servers = { '/brain/safe_shutdown': 2 };
  await transport.start();
  for (let i = 0; i < 3; i += 1) mock.timers.tick(5000);
  t.equal(transport.details().problem, null);
  t.match(
    transport.details().note,
    /^2 other machines on the graph offer \/brain\/safe_shutdown too, .*call \/brain\/health_monitor\/safe_shutdown/,
  );
  t.equal(lines.filter((line) => line.includes('several machines offer the same safe shutdown')).length, 1);
  library.graph.servers = {};
  mock.timers.tick(5000);
  t.equal(transport.details().note, null);
  await transport.stop();
});

t.test('parameter services are offered while they have a client', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  const { transport, library, lines } = setUp(t);
  await transport.start();
  const pass = (milliseconds: number): void => {
    mock.timers.tick(milliseconds);
    for (const node of library.nodes) node.runTriggered();
  };
  const offered = () => library.nodes.map(({ services }) => [...services.keys()].filter((name) => name.includes('parameter')).length);
  pass(5000);
  t.same(offered(), [0, 0, 0, 0]);
  library.graph.clients = { '/brain/alert_publisher/list_parameters': 1 };
  pass(1000);
  t.same(offered(), [6, 6, 6, 6], 'those of the other nodes as well, for which it will ask next');
  t.same(
    library.nodes.map(({ spunWith }) => spunWith),
    [500, 500, 500, 500],
  );
  const ask = async (node: string, service: string, request: Record<string, unknown>) =>
    await library.node(node).services.get(`/brain/${node}/${service}`)?.answer(request);
  t.equal(library.node('health_monitor').services.get('/brain/health_monitor/list_parameters')?.type, 'rcl_interfaces/srv/ListParameters');
  t.match(await ask('threshold_monitor', 'get_parameters', { names: [PARAMETER.name] }), { values: [{ type: 3, double_value: 80 }] });
  t.match(await ask('alert_publisher', 'get_parameters', { names: [PARAMETER.name] }), { values: [{ type: 0 }] });
  t.match(await ask('health_monitor', 'set_parameters', { parameters: [{ name: 'a' }] }), {
    results: [{ successful: false, reason: /read-only/ }],
  });
  pass(30_000);
  t.same(offered(), [6, 6, 6, 6], 'it still has a client');
  library.graph.clients = {};
  pass(9000);
  t.same(offered(), [6, 6, 6, 6]);
  pass(1000);
  t.same(offered(), [0, 0, 0, 0]);
  t.equal(library.node('safe_shutdown').services.size, 2, 'the safe shutdown stays');
  library.graph.clients = { '/brain/health_monitor/describe_parameters': 1 };
  pass(1000);
  t.same(offered(), [6, 6, 6, 6]);
  t.same(lines, []);
  await transport.stop();
});

t.test('a refused parameter service affects nothing else', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  const { transport, library, lines } = setUp(t);
  await transport.start();
  library.graph.clients = { '/brain/health_monitor/get_parameters': 1 };
  for (const node of library.nodes)
    node.createService = () => {
      throw new Error('not allowed by the security policy');
    };
  for (let i = 0; i < 3; i += 1) {
    mock.timers.tick(1000);
    for (const node of library.nodes) node.runTriggered();
  }
  t.equal(lines.filter((line) => line.startsWith('info no parameter services')).length, 1);
  await transport.stop();
});

t.test('scans of the graph: other nodes, and a persistent duplicate', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { transport, library, lines } = setUp(t);
  const own = ['health_monitor', 'threshold_monitor', 'alert_publisher', 'safe_shutdown'].map((name) => ({ name, namespace: '/brain' }));
  library.graph.nodes = [...own, { name: 'talker', namespace: '/' }, { name: 'health_monitor', namespace: '/brain' }];
  await transport.start();
  t.equal(transport.details().peers, null, 'not looked yet');
  mock.timers.tick(1000);
  for (let i = 0; i < 6; i += 1) mock.timers.tick(5000);
  t.match(transport.details(), { peers: 2, problem: null }, 'one that was killed stays until its lease ends');
  mock.timers.tick(5000);
  t.match(transport.details().problem, /another node on the graph is also named \/brain\/health_monitor/);
  t.equal(lines.length, 1);
  library.graph.nodes = own;
  mock.timers.tick(5000);
  t.match(transport.details(), { peers: 0, problem: null });
  await transport.stop();
});

t.test('the observers are those of the announced appliances, so that one of them publishes alerts about a remote node', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { transport, library } = setUp(t);
  const announce = (...appliances: string[]): void => {
    const topics = appliances.map((name) => ({ name: `/_edge_health/${name}`, types: ['edge_health_interfaces/msg/HealthStatus'] }));
    library.graph.topics.splice(0, Infinity, ...topics);
  };
  announce('always/brain/health_monitor', 'always/arm', 'auto/base', 'never/leg', 'sometimes/tail');
  t.same(transport.observers(), [], 'not known before the graph was scanned');
  await transport.start();
  t.same(transport.observers(), []);
  mock.timers.tick(1000);
  t.same(transport.observers(), ['arm', 'brain/health_monitor', 'base']);
  announce('always/brain/health_monitor', 'auto/a', 'auto/b', 'auto/c', 'auto/d');
  mock.timers.tick(5000);
  t.same(transport.observers(), ['brain/health_monitor'], 'without an election it always observes');
  await transport.stop();
});

t.test('a node that disappears from the graph while it publishes has left; one that was silent before has vanished', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  const { transport, library, statuses, left, clock } = setUp(t);
  const node = (name: string, namespace: string) => ({ name, namespace });
  const present = [node('health_monitor', '/arm'), node('health_monitor', '/base'), node('leg', '/'), node('talker', '/')];
  library.graph.nodes = present;
  await transport.start();
  const receive = async (...names: string[]): Promise<void> => {
    for (const node_name of names) {
      const message = encode(
        HEALTH_STATUS,
        healthStatusMessage({ ...STATUS, node_name, timestamp: `2026-03-04T05:06:${clock.seconds % 60}.000Z` }),
      );
      library.node('threshold_monitor').subscriptions[0]?.deliver(message);
    }
    await setImmediate();
  };
  const pass = (seconds: number): void => {
    for (let i = 0; i < seconds; i += 1) {
      clock.seconds += 1;
      mock.timers.tick(1000);
    }
  };
  pass(1);
  await receive('arm/health_monitor', 'base/health_monitor', 'leg', 'robot of another name');
  t.equal(statuses.length, 4);
  library.graph.nodes = present.slice(1);
  pass(1);
  t.same(left, ['arm/health_monitor null true']);
  pass(9);
  library.graph.nodes = [];
  pass(5);
  t.same(left.length, 1, 'their leases expired');
  library.graph.nodes = present;
  pass(1);
  await receive('arm/health_monitor');
  library.graph.nodes = present.slice(1);
  pass(1);
  t.same(left.slice(1), ['arm/health_monitor null true'], 'each time');
  await transport.stop();
});
