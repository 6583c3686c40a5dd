import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { until } from '../../../testkit/wait.ts';

// A host of the link, and a user of the machine, open as many event streams as they can; the others still get theirs.

const MAX = 16;
/** For this host beyond the maximum. */
const RESERVED = 8;
const ROOT_USER = 0;
const [MALLORY, ANN] = [4_100_001, 4_100_002];

const network = new Network();
t.teardown(() => network.dispose());
const segment = network.segment();
const [here, attacker, other] = [network.host(), network.host(), network.host()];
for (const host of [here, attacker, other]) {
  host.exec('sysctl', '-qw', 'net.ipv6.conf.default.accept_dad=0');
  segment.attach(host);
}
const linkLocal = (host: Host): string => /inet6 (fe80:[0-9a-f:]+)/.exec(host.ip('-6', 'address', 'show', 'dev', 'eth0'))?.[1] ?? '';
const folder = temporaryFolder(t);
const service = await HostService.start(here, folder, {
  config: { rest: { max_event_streams: MAX }, ros: { transport: 'off' } },
  environment: { RUNTIME_DIRECTORY: folder },
});
t.teardown(() => service.end('SIGKILL'));

/** Opens streams as a user (arguments: user, host, count), and prints the status of each as a line. */
const program = join(folder, 'streams.cjs');
writeFileSync(
  program,
  `const [uid, host, count] = process.argv.slice(2);
  if (uid !== '0') { process.setgroups([]); process.setgid(Number(uid)); process.setuid(Number(uid)); }
  for (let n = 0; n < Number(count); n += 1)
    require('node:http').get({ host, port: 5000, path: '/events', agent: false }, (response) => {
      console.log(response.statusCode);
      response.resume();
    }).on('error', ({ code }) => console.log(code));`,
);

/** The statuses of streams, which stay open until the test ends. */
async function streams(t: Test, from: Host, uid: number, address: string, count: number): Promise<string[]> {
  const child: ChildProcess = from.spawn(process.execPath, [program, ...[uid, address, count].map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const statuses = (): string[] => output.split('\n').slice(0, -1);
  await until('every stream is answered', () => statuses().length === count);
  return statuses();
}

const opened = (statuses: readonly string[]): number => statuses.filter((status) => status === '200').length;
const untilFree = (): Promise<unknown> =>
  service.untilGet<{ rest: { event_streams: number } }>('/status', ({ rest }) => rest.event_streams === 0);

t.test('a host with a link-local address has a share of its own', async (t) => {
  const address = `${linkLocal(here)}%eth0`;
  t.match(address, /^fe80:/);
  t.equal(opened(await streams(t, attacker, ROOT_USER, address, 3 * MAX)), MAX / 2);
  t.equal(opened(await streams(t, other, ROOT_USER, address, 1)), 1, 'another host of the link');
});

for (const address of ['127.0.0.1', '::1', segment.address(1)])
  t.test(`a user of the machine has a share of its own on ${address}`, async (t) => {
    await untilFree();
    t.equal(opened(await streams(t, here, MALLORY, address, 3 * MAX)), MAX / 2 + RESERVED);
    await streams(t, attacker, ROOT_USER, segment.address(1), MAX);
    await streams(t, other, ROOT_USER, segment.address(1), MAX);
    t.equal(opened(await streams(t, here, ROOT_USER, address, 2)), 2, 'root');
    t.equal(opened(await streams(t, here, ANN, address, 2)), 2, 'another user');
    t.equal(opened(await streams(t, here, MALLORY, '127.0.0.1', 2)), 0, 'no more for the first one, from whichever address');
  });
