import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { ShutdownClient, sharedProgram } from '../../../testkit/dds/shutdown-client.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(300_000);

const NOBODY = 65_534;
const TOKEN = '0123456789abcdef0123456789abcdef';
type Profile = { readonly rest: object; readonly ros: object; readonly safe_shutdown: object };

/** The status of a response; 0: no connection. */
function request(host: Host, url: string, token?: string): number {
  const headers = token === undefined ? [] : ['-H', `Authorization: Bearer ${token}`];
  const code =
    "const [url, ...h] = process.argv.slice(1); fetch(url, { headers: h[1] ? { Authorization: h[1].slice(15) } : {} })\
.then((r) => process.stdout.write(String(r.status)), () => process.stdout.write('0'))";
  const [program, args] = host.command(process.execPath, ['-e', code, url, ...headers]);
  return Number(execFileSync(program, args, { encoding: 'utf8' }));
}

t.test('the hardened profile limits access', { skip: networkUnavailable() }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [robot, friend, stranger] = [network.host(), network.host(), network.host()];
  const { address } = segment.attach(robot);
  const { address: friendAddress } = segment.attach(friend);
  segment.attach(stranger);
  const folder = temporaryFolder(t);
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  const profile = parse(readFileSync(join(ROOT, 'config/hardened.yaml'), 'utf8')) as Profile;
  const config = {
    ...profile,
    rest: { ...profile.rest, token_file: tokenFile },
    ros: { ...profile.ros, static_peers: [friendAddress] },
    safe_shutdown: { ...profile.safe_shutdown, action: 'dry-run' },
  };
  const service = await HostService.start(robot, folder, { config });

  await t.test('REST: only this machine has access, with the token', async (t) => {
    t.equal(request(stranger, `http://${address}:5000/status`, TOKEN), 0, 'nothing listens for other machines');
    t.equal(request(robot, 'http://127.0.0.1:5000/status'), 401);
    t.equal(request(robot, 'http://127.0.0.1:5000/status', TOKEN), 200);
  });

  await t.test('ROS 2: only the static peer has access', async (t) => {
    const known = await GraphNode.start(friend, { localNode: 'friend' });
    const unknown = await GraphNode.start(stranger, { localNode: 'stranger' });
    known.stream({ hz: 5, count: 0, nodeName: 'friend' });
    unknown.stream({ hz: 5, count: 0, nodeName: 'stranger' });
    await known.waitFor('health', ({ status }) => status.node_name === 'health_monitor');
    await unknown.waitFor('health', ({ status }) => status.node_name === 'friend');
    const receives = (node: string): boolean => request(robot, `http://127.0.0.1:5000/health?node=${node}`, TOKEN) === 200;
    await until('the friend is received', () => receives('friend'));
    t.notOk(receives('stranger'), 'a machine that is not listed is not received');
    t.notOk(
      unknown.all('health').some(({ status }) => status.node_name === 'health_monitor'),
      'and receives nothing',
    );
  });

  await t.test('safe shutdown: only root has access', async (t) => {
    const program = await sharedProgram(t);
    const other = await ShutdownClient.start(robot, NOBODY, program);
    t.match(await other.call(), { success: false, message: /may not request a safe shutdown; add \S+ to safe_shutdown\.allow_users/ });
    const root = await ShutdownClient.start(robot, 0, program);
    t.match(await root.call(), { success: true });
  });
  t.notMatch(service.log, /trust_network|cannot/);
});
