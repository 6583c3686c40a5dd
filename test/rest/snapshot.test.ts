import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as later } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Alert } from '../../src/core/alert.ts';
import { openDatabase } from '../../src/store/database.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Network, networkUnavailable } from '../../testkit/network/network.ts';
import {
  ask,
  Contract,
  measured,
  openDescriptors,
  PretendedMachine,
  problemOf,
  RawConnection,
  recorded,
  residentMegabytes,
  type StatusDocument,
  startIn,
  stillWell,
} from '../../testkit/rest.ts';
import { ROOT, type RunningService } from '../../testkit/service.ts';

/** A data folder whose database takes a moment to copy: so many megabytes. */
function largeDatabase(folder: string, megabytes: number): void {
  mkdirSync(join(folder, 'data'), { recursive: true });
  const { db } = openDatabase(join(folder, 'data/edge-health.db'), Date.now());
  db.exec(`CREATE TABLE ballast (bytes BLOB);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${megabytes * 10}) INSERT INTO ballast SELECT zeroblob(100000) FROM n`);
  db.close();
}

function newFolder(t: Test): string {
  const folder = temporaryFolder(t);
  return folder;
}

const leftovers = (folder: string): string[] => readdirSync(join(folder, 'data')).filter((name) => name.startsWith('snapshot'));

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2000; tries += 1) {
    if (condition()) return;
    await later(5);
  }
  throw new Error(`it never came true that ${what}`);
}

/** As a client that reads fast: the whole answer as bytes. */
async function download(service: RunningService): Promise<{ response: Response; bytes: Buffer }> {
  const response = await service.get('/snapshot');
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

/** Asks for a snapshot and reads its beginning only. */
async function begin(service: RunningService): Promise<{ gone: () => void }> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, path: '/snapshot', agent: false }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${response.statusCode}`));
      response.once('data', () => {
        response.pause();
        resolve({ gone: () => outgoing.destroy() });
      });
      response.on('error', () => undefined);
    });
    outgoing.once('error', reject);
    outgoing.end();
  });
}

t.test('a copy holds everything recorded up to the call', async (t) => {
  const folder = newFolder(t);
  const machine = new PretendedMachine(folder);
  const config = { publish_frequency: 20, alerts: { raise_after_seconds: 0 } };
  const service = await startIn(t, folder, { config, arguments: machine.arguments });
  machine.setMemoryPercent(97);
  await recorded(service, 30);
  const { data: alerts } = await service.until<{ data: Alert[]; count: number }>('/alerts?changes=true', ({ count }) => count > 1);
  const { count: before } = await service.json<{ count: number }>('/health/history');
  const { bytes, response } = await download(service);
  t.equal(response.status, 200);
  t.equal(response.headers.get('content-type'), 'application/vnd.sqlite3');
  t.equal(response.headers.get('content-length'), String(bytes.length));
  t.equal(response.headers.get('cache-control'), 'no-store');
  const name = /^attachment; filename="edge-health-(\d{8}T\d{6})Z\.db"$/.exec(response.headers.get('content-disposition') ?? '')?.[1];
  const time = name?.replace(/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)/, '$1-$2-$3T$4:$5:$6Z') ?? '';
  t.ok(Math.abs(Date.parse(time) - Date.now()) < 20_000, `${name} is the time of the call`);

  const copied = newFolder(t);
  mkdirSync(join(copied, 'data'));
  const path = join(copied, 'data/edge-health.db');
  writeFileSync(path, bytes);
  const db = new DatabaseSync(path, { readOnly: true });
  t.same(db.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
  t.same(db.prepare('PRAGMA application_id').get(), { application_id: 0x45646748 });
  t.same(db.prepare('PRAGMA journal_mode').get(), { journal_mode: 'delete' });
  db.close();
  t.same(readdirSync(join(copied, 'data')), ['edge-health.db']);

  const other = await startIn(t, copied, { config: { publish_frequency: 0.001 } });
  const now = Date.now();
  const range = `from=${new Date(now - 3_600_000).toISOString()}&to=${new Date(now).toISOString()}`;
  const history = await other.json<{ count: number }>(`/health/history?node=health_monitor&${range}`);
  t.ok(history.count >= before, `${history.count} samples, ${before} before the call`);
  const inCopy = await other.json<{ data: Alert[] }>('/alerts?changes=true');
  t.same(inCopy.data.slice(-alerts.length), alerts);
  await stillWell(t, service);
});

t.test('a slow reader holds up nobody, is the only one, and leaves nothing behind', async (t) => {
  const folder = newFolder(t);
  largeDatabase(folder, 40);
  const service = await startIn(t, folder, { config: { publish_frequency: 20 } });
  await recorded(service, 5);
  const contract = await Contract.of(service);
  const descriptors = openDescriptors(service);
  const slow = await begin(service);
  t.same(leftovers(folder), [], 'the file has no name while it is read');
  const { publish } = await service.json<StatusDocument>('/status');
  await service.until<StatusDocument>('/status', (now) => now.publish.samples > publish.samples + 5);
  t.equal((await ask(service, 'GET', '/health/aggregate')).status, 200);
  const refused = await ask(service, 'GET', '/snapshot');
  t.equal(refused.status, 503);
  t.equal(refused.headers['retry-after'], '10');
  t.equal(problemOf(refused).code, 'snapshot_in_progress');
  t.same(contract.violations('/snapshot', refused), []);
  slow.gone();
  await until('its file is closed', () => openDescriptors(service) <= descriptors);
  const { bytes } = await download(service);
  t.ok(bytes.length > 40e6);
  const again = await download(service);
  t.equal(again.response.status, 200, 'who has it all may ask again at once');

  const connection = await RawConnection.open(service);
  connection.send('GET /snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await until('it is being made', () => leftovers(folder).length > 0);
  connection.socket.destroy();
  await until('nothing is left of it', () => leftovers(folder).length === 0);
  await until('its file is closed', () => openDescriptors(service) <= descriptors + 1);
  await stillWell(t, service);
});

t.test('memory does not grow with the size of the database', async (t) => {
  const folder = newFolder(t);
  largeDatabase(folder, 60);
  const service = await startIn(t, folder, {});
  await measured(service);
  await download(service);
  const before = residentMegabytes(service);
  for (let n = 0; n < 4; n += 1) t.ok((await download(service)).bytes.length > 60e6);
  const after = residentMegabytes(service);
  t.ok(after - before < 8, `${before.toFixed(1)} MB, then ${after.toFixed(1)} MB`);
});

t.test('the service is killed, or ends, while one is made or read', async (t) => {
  const folder = newFolder(t);
  largeDatabase(folder, 40);
  const killed = await startIn(t, folder, {});
  await measured(killed);
  const lost = killed.get('/snapshot').then(
    () => null,
    () => null,
  );
  await until('it is being made', () => leftovers(folder).length > 0);
  await killed.end('SIGKILL');
  await lost;
  t.ok(leftovers(folder).length > 0, 'something is left');
  const next = await startIn(t, folder, {});
  await measured(next);
  t.same(leftovers(folder), [], 'until the next start');
  const slow = await begin(next);
  t.equal(await next.end(), 0, 'a reader does not keep it from ending');
  slow.gone();
  const last = await startIn(t, folder, {});
  await measured(last);
  const cut = last.get('/snapshot').then(
    (response) => response.arrayBuffer().catch(() => null),
    () => null,
  );
  await until('it is being made', () => leftovers(folder).length > 0);
  t.equal(await last.end(), 0);
  await cut;
  t.same(leftovers(folder), []);
});

t.test('HEAD makes none', async (t) => {
  const folder = newFolder(t);
  largeDatabase(folder, 1);
  const service = await startIn(t, folder, {});
  await measured(service);
  const changed = (): number => statSync(join(folder, 'data')).mtimeMs;
  const before = changed();
  const head = await ask(service, 'HEAD', '/snapshot');
  t.equal(head.status, 200);
  t.equal(head.headers['content-type'], 'application/vnd.sqlite3');
  t.equal(head.headers['content-length'], undefined);
  t.equal(changed(), before, 'no file came and went');
  await download(service);
  t.not(changed(), before, 'as it does for GET');
});

t.test('it is for programs of this machine', async (t) => {
  const service = await startIn(t, newFolder(t), { config: { rest: { allowed_origins: ['*'] } } });
  await measured(service);
  const contract = await Contract.of(service);
  t.equal((await ask(service, 'GET', '/snapshot')).status, 200);
  const foreign = [
    { 'X-Forwarded-For': '192.0.2.1' },
    { Forwarded: 'for=192.0.2.1' },
    { Origin: 'http://evil.example' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
  ];
  for (const headers of foreign) {
    for (const method of ['GET', 'HEAD']) t.equal((await ask(service, method, '/snapshot', headers)).status, 403, JSON.stringify(headers));
    const answer = await ask(service, 'GET', '/snapshot', headers);
    t.match(problemOf(answer), { code: 'not_local', detail: /rest\.token_file/ });
    t.same(contract.violations('/snapshot', answer), []);
  }
  t.equal((await ask(service, 'GET', '/snapshot', { 'Sec-Fetch-Site': 'none' })).status, 200, 'typed into a browser there');
});

t.test('or for whoever has the token, from anywhere', { skip: networkUnavailable() }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [near, far] = [network.host(), network.host()];
  segment.attach(near);
  segment.attach(far);
  const token = 'a-token-of-some-length';
  for (const hasToken of [false, true]) {
    const folder = newFolder(t);
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
    await until('it listens', () => log.includes('dashboard:'));
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
      t.equal(status(near), '401', 'then the token is asked of everybody');
    } else {
      t.equal(status(far), '403');
      t.equal(status(near), '200', 'through an address of its own');
      t.equal(status(near, {}, '127.0.0.1'), '200');
      t.equal(status(near, {}, '[::1]'), '200');
    }
    const ended = new Promise((resolve) => service.once('exit', resolve));
    service.kill();
    await ended;
  }
});
