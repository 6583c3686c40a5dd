import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Network } from '../../../testkit/network/network.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.test('/snapshot is for programs of this machine, or for clients with the token from any machine', async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [near, far] = [network.host(), network.host()];
  segment.attach(near);
  segment.attach(far);
  const token = 'a-token-of-some-length';
  for (const hasToken of [false, true]) {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'token'), token);
    const rest = { port: 5000, token_file: hasToken ? join(folder, 'token') : null };
    writeFileSync(
      join(folder, 'config.yaml'),
      JSON.stringify({ rest, ros: { transport: 'off' }, storage: { path: join(folder, 'data') } }),
    );
    const service = near.spawn(join(ROOT, 'bin/edge-health'), ['run', '--config', join(folder, 'config.yaml')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, RUNTIME_DIRECTORY: folder },
    });
    let log = '';
    service.stderr?.on('data', (text: Buffer) => {
      log += text.toString();
    });
    await until('it listens', () => log.includes('dashboard:'), { describe: () => log });
    const address = near.addresses[0] as string;
    const status = (host: typeof near, headers: object = {}, to = address): string =>
      host.exec(
        process.execPath,
        '-e',
        `(async () => { for (;;) { const r = await fetch('http://${to}:5000/snapshot', { headers: ${JSON.stringify(headers)} });
          await r.arrayBuffer(); if (r.status !== 503) return process.stdout.write(String(r.status)); } })()`,
      );
    if (hasToken) {
      t.equal(status(far, { Authorization: `Bearer ${token}` }), '200');
      t.equal(status(near), '401', 'then the token is required everywhere');
    } else {
      const header = { 'Edge-Health-Snapshot': '1' };
      t.equal(status(far, header), '403');
      t.equal(status(near, header), '200', 'through an address of its own');
      t.equal(status(near, header, '127.0.0.1'), '200');
      t.equal(status(near, header, '[::1]'), '200');
      t.equal(status(near), '403', 'a page could cause that one');
    }
    const ended = new Promise((resolve) => service.once('exit', resolve));
    service.kill();
    await ended;
  }
});
