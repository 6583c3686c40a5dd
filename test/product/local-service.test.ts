import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import { temporaryFolder } from '../../testkit/folder.ts';
import { measured } from '../../testkit/service/rest.ts';
import { ROOT, RunningService } from '../../testkit/service/service.ts';
import { fillDataFolder } from '../../testkit/weeks/week-store.ts';

// Commands reach the service of this machine over its Unix socket. Any user can listen on its TCP port while it is stopped, or before it
// starts; such a program must receive neither a request nor the token, and must not be taken for the service.

const TOKEN = 'secret-of-this-robot';

/** A program of another user: whatever connects to it is recorded. */
async function stranger(t: Test): Promise<{ readonly port: number; readonly received: string[] }> {
  const received: string[] = [];
  const server = createServer((socket) => {
    received.push('connection');
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      received.push(String(bytes));
      socket.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"status":"OK"}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, received };
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function command(config: string, ...argv: string[]): Promise<Ended> {
  const env = { ...process.env, NODE_OPTIONS: '', RUNTIME_DIRECTORY: '' };
  const child = spawn(join(ROOT, 'bin/edge-health'), [...argv, '--config', config], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, stdout, stderr };
}

t.test('while the service is stopped, a program on its port gets no request and is not taken for it', async (t) => {
  const folder = temporaryFolder(t);
  const { port, received } = await stranger(t);
  const token = join(folder, 'token');
  writeFileSync(token, TOKEN);
  const config = join(folder, 'config.yaml');
  const data = join(folder, 'data');
  writeFileSync(
    config,
    stringify({ rest: { host: '127.0.0.1', port, token_file: token }, storage: { path: data }, ros: { transport: 'off' } }),
  );
  const { samples } = fillDataFolder(data, Date.now() - 60_000);

  t.match(await command(config, 'status'), {
    code: 3,
    stdout: '',
    stderr: /^edge-health: no service found that runs with .*; is it running\? /,
  });
  t.match(JSON.parse((await command(config, 'status', '--json')).stdout), { reachable: false, error: /no service found/ });
  t.match(await command(config, 'nodes'), { code: 69, stderr: /no service found/ });
  t.match(await command(config, 'ops', 'health_check', '--dry-run'), { code: 2, stdout: /service: no response \(no service found/ });
  t.match(await command(config, 'ops', 'collect_metrics'), { code: 1, stdout: /no service found/ });
  t.match(await command(config, 'ops', 'collect_alerts'), { stdout: /no service found/ });
  const backup = await command(config, 'ops', 'backup_logs', '--json');
  t.match(JSON.parse(backup.stdout), { status: 'OK', backup: { database: { source: 'file', samples } } }, 'the file of the database');
  t.same(received, []);
});

t.test('a running service is reached although another program has its port', async (t) => {
  const folder = temporaryFolder(t);
  const { port, received } = await stranger(t);
  const token = join(folder, 'token');
  writeFileSync(token, TOKEN);
  const service = await RunningService.start(folder, { config: { rest: { port, token_file: token } } });
  t.teardown(() => service.end());
  const status = await command(service.configFile, 'status', '--json');
  t.match(JSON.parse(status.stdout), {
    reachable: true,
    url: /^unix:.*\/rest\.sock$/,
    status: { nodes: [{ local: true }], rest: { problem: /in use/ } },
  });
  t.match(await command(service.configFile, 'nodes'), { code: 0, stdout: /health_monitor/ });
  const backup = await command(service.configFile, 'ops', 'backup_logs', '--json');
  t.match(JSON.parse(backup.stdout), { status: 'OK', backup: { database: { source: 'service' } } });
  t.same(received, []);
});

t.test('a backup takes no database from an address', async (t) => {
  const folder = temporaryFolder(t);
  const service = await RunningService.start(folder);
  t.teardown(() => service.end());
  await measured(service);
  const { code, stderr } = await command(service.configFile, 'ops', 'backup_logs', '--url', service.url);
  t.equal(code, 3);
  t.match(stderr, /^edge-health ops: backup_logs copies the database of this machine; omit --url\n$/);
});
