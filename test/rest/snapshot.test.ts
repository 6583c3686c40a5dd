import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { measured, openDescriptors, problemOf, RawConnection, recorded, sendRequest, startIn } from '../../testkit/service/rest.ts';
import type { RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

// test/system/host/snapshot-remote.test.ts tests requests from another machine.

/** More than the kernel buffers for a client that does not read. */
const MEGABYTES = 24;
/** As programs of this machine send it. */
const HEADER = { 'Edge-Health-Snapshot': '1' };

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'data'));
const { db } = openDatabase(join(folder, 'data/edge-health.db'), Date.now());
db.exec(`CREATE TABLE ballast (bytes BLOB);
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MEGABYTES * 10}) INSERT INTO ballast SELECT zeroblob(100000) FROM n`);
db.close();
const machine = new MachineTree(t, 'vm-no-sensors');
const config = { publish_frequency: 20, rest: { allowed_origins: ['*'] }, alerts: { raise_after_seconds: 0 } };
const options = { config, arguments: machine.arguments };
let service = await startIn(t, folder, options);
const contract = await Contract.of(service);

const leftovers = (): string[] => readdirSync(join(folder, 'data')).filter((name) => name.startsWith('snapshot'));

/** As a client that reads fast: the whole response as bytes. */
async function download(service: RunningService): Promise<{ response: Response; bytes: Buffer }> {
  const response = await service.get('/snapshot', { headers: HEADER });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

/** Requests a snapshot and reads only its beginning. */
async function begin(service: RunningService): Promise<{ gone: () => void }> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, path: '/snapshot', headers: HEADER, agent: false }, (response) => {
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
  machine.setMemoryPercent(97);
  await recorded(service, 30);
  const { data: alerts } = await service.until<{ data: Alert[]; count: number }>('/alerts?changes=true', ({ count }) => count > 0);
  const { count: before } = await service.json<{ count: number }>('/health/history');
  const earlier = (await measured(service)).timestamp;
  const { bytes, response } = await download(service);
  const later = (await measured(service)).timestamp;
  t.equal(response.status, 200);
  t.ok(bytes.length > MEGABYTES * 1e6);
  t.equal(response.headers.get('content-type'), 'application/vnd.sqlite3');
  t.equal(response.headers.get('content-length'), String(bytes.length));
  t.equal(response.headers.get('cache-control'), 'no-store');
  const name = /^attachment; filename="edge-health-(\d{8}T\d{6})Z\.db"$/.exec(response.headers.get('content-disposition') ?? '')?.[1];
  const time = name?.replace(/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)/, '$1-$2-$3T$4:$5:$6') ?? '';
  t.ok(earlier.slice(0, 19) <= time && time <= later, `${name} is the time of the call`);

  const copied = temporaryFolder(t);
  mkdirSync(join(copied, 'data'));
  const path = join(copied, 'data/edge-health.db');
  writeFileSync(path, bytes);
  const copy = new DatabaseSync(path, { readOnly: true });
  t.same(copy.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
  t.same(copy.prepare('PRAGMA application_id').get(), { application_id: 0x45646748 });
  t.same(copy.prepare('PRAGMA journal_mode').get(), { journal_mode: 'delete' });
  copy.close();
  t.same(readdirSync(join(copied, 'data')), ['edge-health.db']);

  const other = await startIn(t, copied, { config: { publish_frequency: 0.001 } });
  const history = await other.json<{ count: number }>(`/health/history?node=health_monitor&hours=1&to=${later}`);
  t.ok(history.count >= before, `${history.count} samples, ${before} before the call`);
  const inCopy = await other.json<{ data: Alert[] }>('/alerts?changes=true');
  t.same(inCopy.data.slice(-alerts.length), alerts);
});

t.test('a slow reader delays no other request, is the only one, and leaves nothing behind', async (t) => {
  const descriptors = openDescriptors(service);
  const slow = await begin(service);
  t.same(leftovers(), [], 'the file has no name while it is read');
  const { timestamp } = await measured(service);
  await service.until<{ timestamp: string }>('/health', (status) => status.timestamp > timestamp);
  t.equal((await sendRequest(service, 'GET', '/health/aggregate')).status, 200);
  const refused = await sendRequest(service, 'GET', '/snapshot', HEADER);
  t.equal(refused.status, 503);
  t.equal(refused.headers['retry-after'], '10');
  t.equal(problemOf(refused).code, 'snapshot_in_progress');
  t.same(contract.violations('/snapshot', refused), []);
  const head = await sendRequest(service, 'HEAD', '/snapshot', HEADER);
  t.equal(head.status, 200, 'HEAD makes none: it is not refused');
  t.equal(head.headers['content-type'], 'application/vnd.sqlite3');
  t.equal(head.headers['content-length'], undefined);
  slow.gone();
  await until('its file is closed', () => openDescriptors(service) <= descriptors);
  t.ok((await download(service)).bytes.length > MEGABYTES * 1e6);
  t.equal((await download(service)).response.status, 200, 'a client that has it all may ask again at once');

  const connection = await RawConnection.open(service);
  connection.send('GET /snapshot HTTP/1.1\r\nHost: localhost\r\nEdge-Health-Snapshot: 1\r\n\r\n');
  await until('it is being made, or was', async () => leftovers().length > 0 || connection.received !== '');
  connection.socket.destroy();
  await until('the next client gets one', async () => (await download(service)).response.status === 200);
  await until('nothing is left of it', () => leftovers().length === 0);
  await until('its file is closed', () => openDescriptors(service) <= descriptors + 1);
});

t.test('without a token snapshots are only for programs of this machine', async (t) => {
  t.equal((await download(service)).response.status, 200);
  const otherOrigins = [
    { 'X-Forwarded-For': '192.0.2.1' },
    { Forwarded: 'for=192.0.2.1' },
    { Origin: 'http://evil.example' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
  ];
  for (const headers of otherOrigins) {
    const sent = { ...HEADER, ...headers };
    for (const method of ['GET', 'HEAD'])
      t.equal((await sendRequest(service, method, '/snapshot', sent)).status, 403, JSON.stringify(headers));
    const answer = await sendRequest(service, 'GET', '/snapshot', sent);
    t.match(problemOf(answer), { code: 'not_local', detail: /rest\.token_file/ });
    t.same(contract.violations('/snapshot', answer), []);
  }
});

t.test('a page in a browser on this machine cannot cause a snapshot: it lacks the header that needs a CORS permission', async (t) => {
  // As an image, a form or a link sends it, without a script.
  for (const headers of [{}, { 'Sec-Fetch-Site': 'none' }, { 'Sec-Fetch-Site': 'same-origin' }, { 'Edge-Health-Snapshot': '0' }]) {
    for (const method of ['GET', 'HEAD'])
      t.equal((await sendRequest(service, method, '/snapshot', headers)).status, 403, JSON.stringify(headers));
    const answer = await sendRequest(service, 'GET', '/snapshot', headers);
    t.match(problemOf(answer), { code: 'snapshot_header_missing', detail: /Edge-Health-Snapshot: 1/ });
    t.same(contract.violations('/snapshot', answer), []);
  }
  const preflight = await sendRequest(service, 'OPTIONS', '/snapshot', {
    Origin: 'http://evil.example',
    'Access-Control-Request-Method': 'GET',
    'Access-Control-Request-Headers': 'edge-health-snapshot',
  });
  t.notMatch(preflight.headers['access-control-allow-headers'], /snapshot/i, 'also not of an allowed origin');
  t.same(leftovers(), []);
});

t.test('neither making nor reading a snapshot keeps the service from ending', async (t) => {
  const slow = await begin(service);
  t.notMatch(service.log, /request failed|Error\b|^\s+at /m, 'the log shows no failure');
  t.equal(await service.end(), 0, 'while one is read');
  slow.gone();
  service = await startIn(t, folder, options);
  await measured(service);
  const cut = service.get('/snapshot', { headers: HEADER }).then(
    (response) => response.arrayBuffer().catch(() => null),
    () => null,
  );
  t.equal(await service.end(), 0, 'while one is made');
  await cut;
  t.same(leftovers(), []);
});
