import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { run } from '../../../testkit/network/namespaces.ts';
import { type StatusDocument, sendRequest } from '../../../testkit/service/rest.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.test('a new search domain and a new host name hold at the first request, without a restart', async (t) => {
  const folder = temporaryFolder(t);
  const resolvConf = join(folder, 'resolv.conf');
  writeFileSync(resolvConf, '# no network yet\n');
  const config = join(folder, 'config.yaml');
  writeFileSync(
    config,
    JSON.stringify({ rest: { host: '127.0.0.1', port: 0 }, ros: { transport: 'off' }, storage: { path: join(folder, 'data') } }),
  );
  const script = 'hostname robot-a && mount --bind "$0" /etc/resolv.conf && exec "$1" run --config "$2"';
  const service = spawn('unshare', ['--uts', '--mount', 'sh', '-c', script, resolvConf, join(ROOT, 'bin/edge-health'), config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, RUNTIME_DIRECTORY: folder },
  });
  const ended = new Promise((resolve) => service.once('exit', resolve));
  t.teardown(async () => {
    service.kill();
    await ended;
  });
  let log = '';
  service.stderr.on('data', (text: Buffer) => {
    log += text.toString();
  });
  const [, url = ''] = await until('it listens', () => /dashboard: (http:\S+)\//.exec(log), { describe: () => log });
  const statusFor = async (host: string): Promise<number> => (await sendRequest({ url }, 'GET', '/nowhere', { Host: host })).status;
  const status = async (): Promise<StatusDocument> => (await (await fetch(`${url}/status`)).json()) as StatusDocument;
  t.equal(await statusFor('robot-a'), 404);
  await until('the inventory is read', async () => (await status()).host?.hostname === 'robot-a');
  t.equal(await statusFor('robot-b.lab.example'), 421);
  writeFileSync(resolvConf, 'search lab.example\n');
  run('nsenter', ['--target', String(service.pid), '--uts', 'hostname', 'robot-b']);
  t.equal(await statusFor('robot-b'), 404);
  // The files are read at most once a second, and were just read for the refused name.
  await until('the domain is known', async () => (await statusFor('robot-b.lab.example')) === 404);
  t.equal(await statusFor('robot-c.local'), 421);
  t.equal((await status()).host?.hostname, 'robot-b');
});
