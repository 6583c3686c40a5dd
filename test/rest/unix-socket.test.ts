import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { SNAPSHOT_HEADER } from '../../src/core/snapshot.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { measured, type StatusDocument, startIn } from '../../testkit/service/rest.ts';

const TOKEN = 'secret-of-this-robot';

// Local programs use this socket, because while the service is stopped any user can listen on its TCP port.

t.test('the Unix socket offers to programs of this machine what TCP does', async (t) => {
  const folder = temporaryFolder(t);
  const service = await startIn(t, folder);
  await measured(service);
  const path = join(folder, 'run/rest.sock');
  const rest = new RestClient({ base: `unix:${path}`, token: null });
  t.equal(statSync(path).mode & 0o777, 0o666, 'every user may connect, as over TCP');
  t.equal((await rest.json<HealthStatus>('/health')).node_name, 'health_monitor');
  const { ports } = await rest.json<StatusDocument>('/status');
  t.match(
    ports.find(({ address }) => address === path),
    { protocol: 'unix', purpose: 'REST API for programs of this machine' },
  );
  await t.rejects(rest.stream('/snapshot'), { status: 403, code: 'snapshot_header_missing' });
  const snapshot = await rest.stream('/snapshot', { headers: { [SNAPSHOT_HEADER]: '1' } });
  let bytes = 0;
  for await (const piece of snapshot) bytes += (piece as Buffer).length;
  t.equal(bytes, Number(snapshot.headers['content-length']));
  const stream = await rest.stream('/events');
  t.match(
    String(
      await stream[Symbol.asyncIterator]()
        .next()
        .then(({ value }) => value),
    ),
    /^(:|id:|event:|retry:|data:)/m,
  );
  stream.destroy();
  t.equal(await service.end(), 0);
  t.throws(() => statSync(path), { code: 'ENOENT' });
});

t.test('the token is required on the Unix socket too', async (t) => {
  const folder = temporaryFolder(t);
  const token = join(folder, 'token');
  writeFileSync(token, `${TOKEN}\n`);
  await startIn(t, folder, { config: { rest: { token_file: token } } });
  const base = `unix:${join(folder, 'run/rest.sock')}`;
  for (const wrong of [null, 'other'])
    await t.rejects(new RestClient({ base, token: wrong }).json('/status'), { name: 'ServiceRefused', status: 401 });
  t.ok(await new RestClient({ base, token: TOKEN }).json('/status'));
});

t.test('the socket that a killed service left is replaced', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startIn(t, folder);
  await first.end('SIGKILL');
  await startIn(t, folder);
  const rest = new RestClient({ base: `unix:${join(folder, 'run/rest.sock')}`, token: null });
  t.ok(await rest.json('/status'));
});
