import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { DAY_MS } from '../../src/core/time/time.ts';
import { ALERT as ALERT_TYPE, HEALTH_STATUS } from '../../src/ros/interfaces.generated.ts';
import { LoopbackParticipant } from '../../testkit/dds/loopback.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { NO_ROS } from '../../testkit/network/this-machine.ts';
import { alertOf, LOCAL, startInProcess, statusOf, TestClocks } from '../../testkit/service/remote-nodes.ts';
import { measured, type StatusDocument, startIn } from '../../testkit/service/rest.ts';
import { ROOT, RunningService } from '../../testkit/service/service.ts';

type Alerts = { readonly count: number; readonly data: readonly Alert[] };

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Not spawnSync: publishers in this process must continue meanwhile. */
async function nodes(service: Pick<RunningService, 'url'>, argv: readonly string[], before: readonly string[] = []): Promise<Ended> {
  const [program = '', ...parameters] = [...before, join(ROOT, 'bin/edge-health'), 'nodes', ...argv, '--url', service.url];
  const child = spawn(program, parameters, {
    env: { ...process.env, NODE_OPTIONS: '', SUDO_USER: 'alice' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, stdout, stderr };
}

async function serviceWithRobot(t: Test, folder = temporaryFolder(t)) {
  const domain = await reserveDomain(t);
  const service = await startIn(t, folder, {
    // This node has no alert, however busy the machine is.
    config: { alerts: { raise_after_seconds: 3600 }, ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' } },
    environment: NO_ROS,
  });
  await measured(service); // Before the first sample this node has no time and no status.
  const robot = new LoopbackParticipant(t, domain);
  const publish = robot.write('/robot1/health_status', HEALTH_STATUS);
  const alert = robot.write('/robot1/alerts', ALERT_TYPE);
  await robot.start();
  const say = (): void => publish(statusOf('robot1', Date.now(), { temperature: 1 }));
  return { domain, service, say, alert };
}

t.test('a node is listed, forgotten with its alerts on request, and listed again when it publishes', async (t) => {
  const { service, say, alert } = await serviceWithRobot(t);
  say();
  alert(alertOf('robot1', '1', Date.now()));
  await service.until<Alerts>('/alerts?node=robot1&resolved=false', ({ count }) => count === 1);
  await service.until<StatusDocument>('/status', (status) =>
    status.nodes.some((node) => node.node_name === 'robot1' && node.timestamp !== null),
  );

  const listed = await nodes(service, []);
  t.equal(listed.code, 0);
  t.match(listed.stdout, /^NODE +STATUS +LAST SEEN +OPEN ALERTS\nhealth_monitor +local +\S+ +\S+Z +0\nrobot1 +remote +\S+ +\S+Z +1\n$/);
  const json = JSON.parse((await nodes(service, ['--json'])).stdout) as StatusDocument['nodes'];
  t.match(json, [{ local: true }, { node_name: 'robot1', local: false, open_alerts: 1, last_seen: /^20.*Z$/ }]);

  const unknown = await nodes(service, ['forget', 'robot2']);
  t.match(unknown, { code: 1, stdout: '', stderr: 'edge-health nodes: no remote node is named "robot2"; remote nodes: robot1\n' });
  const own = await nodes(service, ['forget', LOCAL]);
  t.match(own, { code: 1, stderr: /^edge-health nodes: health_monitor is this node itself/ });

  t.same(await nodes(service, ['forget', 'robot1']), { code: 0, stdout: 'robot1 forgotten; open alerts resolved: 1\n', stderr: '' });
  const { data } = await service.json<Alerts>('/alerts');
  t.match(data, [{ resolved: true }], 'at once');
  t.notOk((await service.json<StatusDocument>('/status')).nodes.some(({ node_name }) => node_name === 'robot1'));
  await service.logged(/node=robot1.*reason="forgotten on request by alice".*alerts=1/);

  say();
  await service.until<StatusDocument>('/status', (status) => status.nodes.some(({ node_name }) => node_name === 'robot1'));

  t.same(await nodes(service, ['forget', '--stale']), {
    code: 0,
    stdout: 'stale nodes forgotten: 0; open alerts resolved: 0\n',
    stderr: '',
  });
});

/** Prefix of a command: root becomes a user who has only the permissions that file modes grant. */
const AS_USER = process.geteuid?.() === 0 ? ['unshare', '--user'] : [];
const cannotBecomeUser = AS_USER.length > 0 && spawnSync('unshare', ['--user', 'true']).status !== 0 && 'no user namespaces here';

t.test('the list shows the addresses of a name conflict, and the spelling of a name that can be mistaken', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  const name = 'm\u043en';
  await service.run(8, () => {
    for (const address of ['10.0.0.2', '10.0.0.3'])
      service.remoteNodes.onHealthStatus(statusOf(name, service.clocks.wallMs, { cpu_percent: Number(address.at(-1)) }), {
        participant: address,
        address,
      });
  });
  const { stdout } = await nodes(service, []);
  t.match(stdout, /^m\u043en \(m\\u\{43e\}n\) +remote .* published by several machines: 10\.0\.0\.2, 10\.0\.0\.3$/m);
});

t.test('only the file permissions of the socket decide who can use it', { skip: cannotBecomeUser }, async (t) => {
  const service = await startIn(t, temporaryFolder(t));
  const { control_socket: path } = await service.json<StatusDocument>('/status');
  t.equal(statSync(path as string).mode & 0o777, 0o660);
  t.equal((await service.get('/nodes/forget', { method: 'POST' })).status, 405, 'the API stays read-only');
  chmodSync(path as string, 0);
  const refused = await nodes(service, ['forget', 'robot1'], AS_USER);
  t.equal(refused.code, 77);
  t.match(
    refused.stderr,
    /^edge-health nodes: the user alice may not use \S+control\.sock: run this with sudo, or as a member of the group edge-health\n/,
  );
});

t.test('a stopped service, a remote service and wrong usage are reported', async (t) => {
  const gone = { url: 'http://127.0.0.1:9' };
  for (const argv of [[], ['forget', 'robot1']]) {
    const { code, stderr } = await nodes(gone, argv);
    t.equal(code, 69);
    t.match(stderr, /^edge-health nodes: no response from the service at http:\/\/127\.0\.0\.1:9: ECONNREFUSED\n$/);
  }
  t.match(await nodes({ url: 'http://192.0.2.1:5000' }, ['forget', 'robot1']), {
    code: 64,
    stderr: /log in to http:\/\/192\.0\.2\.1:5000/,
  });
  for (const argv of [['forget'], ['remove', 'robot1'], ['forget', 'a', 'b'], ['forget', 'a', '--stale'], ['--stale']])
    t.match(await nodes(gone, argv), { code: 64, stderr: /--help/ });
});

t.test('any input on the socket gets a clear response, and the service continues; a stale socket is replaced', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startIn(t, folder);
  await first.end('SIGKILL');
  const service = await startIn(t, folder);
  const { control_socket: path } = await service.json<StatusDocument>('/status');
  const sendRequest = async (sent: string): Promise<unknown> => {
    const socket = connect(path as string);
    socket.on('error', () => undefined); // What exceeds the limit may be cut off.
    socket.write(sent);
    return JSON.parse(await text(socket));
  };
  for (const sent of [
    'nonsense\n',
    'null\n',
    '{}\n',
    '{"forget": "", "requested_by": "a"}\n',
    '{"forget": 7, "requested_by": "a"}\n',
    `{"forget": "${'x'.repeat(300)}", "requested_by": "a"}\n`,
    '{"forget": "x", "requested_by": "a\\nb"}\n',
    '{"forget": "x\\u001b[2J", "requested_by": "a"}\n',
    'x'.repeat(100_000),
  ])
    t.match(await sendRequest(sent), { ok: false, message: /^a request is one line of JSON/ }, sent.slice(0, 40));
  t.match(await sendRequest('{"forget": "x", "requested_by": "a"}\n'), { ok: false, message: /^no remote node is named/ });
  const idle = connect(path as string);
  t.teardown(() => idle.destroy());
  await once(idle, 'connect');
  t.equal(await service.end(), 0, 'a connection that says nothing does not hold it');
  t.throws(() => statSync(path as string), 'nothing of it is left');
});

t.test('a data folder with a long path has no socket, which is logged', async (t) => {
  const folder = temporaryFolder(t);
  const dataPath = join(folder, 'long'.repeat(30));
  const service = await RunningService.start(folder, { dataPath });
  t.teardown(() => service.end());
  t.equal((await service.json<StatusDocument>('/status')).control_socket, null);
  t.match(service.log, /control socket not opened.*longer than 107 octets/);
  t.match(await nodes(service, ['forget', 'robot1']), { code: 69, stderr: /no control socket; see its log/ });
});

t.test('a retired node with an open alert is listed after a restart, with when it was last seen', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  await first.run(70, () => first.remoteNodes.onHealthStatus(statusOf('old', clocks.wallMs)));
  first.remoteNodes.onAlert(alertOf('old', '1', clocks.wallMs));
  await first.settled();
  await first.stop();
  clocks.pass((2 * DAY_MS) / 1000);
  const second = await startInProcess(t, folder, clocks);
  const [, old] = (await second.json<StatusDocument>('/status')).nodes;
  t.match(old, { node_name: 'old', status: 'UNKNOWN', timestamp: null, age_seconds: null, open_alerts: 1, stale: false });
  t.ok(clocks.wallMs - Date.parse(old?.last_seen as string) > DAY_MS, `${old?.last_seen}`);
  t.match(await second.remoteNodes.forgetOnRequest('old', 'bob'), { ok: true });
  t.equal((await second.json<Alerts>('/alerts?resolved=false')).count, 0);
  t.equal((await second.json<StatusDocument>('/status')).nodes.length, 1);
});
