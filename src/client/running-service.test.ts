import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import {
  announceService,
  findService,
  localService,
  REST_SOCKET,
  readReloadOutcome,
  runningFolder,
  startTime,
  withdrawService,
  writeReloadOutcome,
} from './running-service.ts';

const CONFIG = '/etc/edge-health/sensor_node_config.yaml';

function unitIn(t: Test): { readonly run: string; readonly folder: string } {
  const run = temporaryFolder(t);
  const folder = join(run, 'edge-health-sensor_node');
  mkdirSync(folder);
  return { run, folder };
}

t.test('a service is found by its configuration, in the folder of a unit', async (t) => {
  const { folder, run } = unitIn(t);
  const before = process.umask(0o027);
  await announceService(folder, CONFIG);
  process.umask(before);
  t.equal(statSync(join(folder, 'service.json')).mode & 0o777, 0o644, 'for every user');
  t.match(findService(CONFIG, {}, run), { pid: process.pid, folder });
  t.equal(findService('/etc/edge-health/other.yaml', {}, run), null);
  t.match(findService(CONFIG, { RUNTIME_DIRECTORY: folder }, '/nowhere'), { folder });
  t.equal(runningFolder(CONFIG, { RUNTIME_DIRECTORY: '/run/a:/run/b' }), '/run/a');

  t.equal(readReloadOutcome(folder, process.pid), null);
  const outcome = { reloads: 1, problem: null, restart_needed: ['x'] };
  await writeReloadOutcome(folder, outcome);
  t.match(readReloadOutcome(folder, process.pid), outcome);
  t.equal(readReloadOutcome(folder, 1), null, 'of an earlier process');
  await withdrawService(folder);
  t.same(readdirSync(folder), []);
  writeFileSync(join(folder, 'service.json'), JSON.stringify({ pid: 1 }));
  await withdrawService(folder);
  t.same(readdirSync(folder), ['service.json'], 'that of another process stays');
});

t.test('without systemd a service is found in /dev/shm', { skip: existsSync('/dev/shm') ? false : 'no /dev/shm' }, async (t) => {
  const config = join(temporaryFolder(t), 'edge_health_config.yaml');
  const folder = runningFolder(config, {}) as string;
  await announceService(folder, config);
  t.match(findService(config, {}, '/nowhere'), { folder });
  chmodSync(folder, 0o777);
  t.equal(findService(config, {}, '/nowhere'), null, 'not where others can write');
  chmodSync(folder, 0o700);
  await withdrawService(folder);
  t.notOk(existsSync(folder));
});

t.test('files of an ended process or of another user are ignored', async (t) => {
  const { folder, run } = unitIn(t);
  const file = join(folder, 'service.json');
  const service = { pid: process.pid, started: startTime(process.pid), config: CONFIG };
  const found = (document: object | string): unknown => {
    writeFileSync(file, typeof document === 'string' ? document : JSON.stringify(document));
    chmodSync(file, 0o644);
    return findService(CONFIG, {}, run);
  };
  t.ok(found(service));
  t.equal(found({ ...service, started: 1 }), null);
  t.equal(found({ ...service, pid: 2 ** 30 }), null);
  for (const text of ['', '{', 'null', '[]', '{"config": 1}']) t.equal(found(text), null, text);
  t.ok(found(service));
  renameSync(file, join(folder, 'other.json'));
  symlinkSync('other.json', file);
  t.equal(findService(CONFIG, {}, run), null, 'a link is not followed');
  rmSync(file);
  execFileSync('mkfifo', [file]);
  t.equal(findService(CONFIG, {}, run), null, 'a pipe is not waited for');
});

t.test('the service is reached over a socket that only its user could have created', async (t) => {
  const { folder, run } = unitIn(t);
  const path = join(folder, REST_SOCKET);
  const base = (): string => localService(CONFIG, {}, run)();
  t.throws(base, { name: 'ServiceUnreachable', message: `no service found that runs with ${CONFIG}` });
  await announceService(folder, CONFIG);
  t.throws(base, { name: 'ServiceUnreachable', message: /has no socket .*rest\.sock; see its log/ });
  const listenAt = async (at: string): Promise<void> => {
    const server = createServer();
    t.teardown(() => server.close());
    await new Promise<void>((resolve) => server.listen(at, resolve));
  };
  await listenAt(path);
  t.equal(base(), `unix:${path}`);

  const refused = { name: 'ServiceUnreachable', message: /rest\.sock is not a socket of the service's user/ };
  renameSync(path, join(folder, 'elsewhere'));
  symlinkSync('elsewhere', path);
  t.throws(base, refused, 'a link');
  rmSync(path);
  writeFileSync(path, '');
  t.throws(base, refused, 'a file');
  rmSync(path);
  await listenAt(path);
  for (const mode of [0o775, 0o757]) {
    chmodSync(folder, mode);
    t.throws(base, { message: /no service found/ }, `others may write to the folder: ${mode.toString(8)}`);
  }
  chmodSync(folder, 0o755);
  t.equal(base(), `unix:${path}`);
  const link = join(run, 'edge-health');
  renameSync(folder, join(run, 'moved'));
  symlinkSync('moved', link);
  t.throws(base, { message: /no service found/ }, 'the folder is a link');
});

t.test('a socket or a folder of another user is ignored', { skip: process.getuid?.() !== 0 && 'not root' }, async (t) => {
  const { folder, run } = unitIn(t);
  const path = join(folder, REST_SOCKET);
  const base = (): string => localService(CONFIG, {}, run)();
  await announceService(folder, CONFIG);
  const server = createServer();
  t.teardown(() => server.close());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  chownSync(path, 65_534, 65_534);
  t.throws(base, { message: /is not a socket of the service's user/ });
  chownSync(path, 0, 0);
  t.equal(base(), `unix:${path}`);
  // systemd gives its folders to the users of the units. Elsewhere, another user may have created the folder.
  chownSync(folder, 65_534, 65_534);
  chownSync(path, 65_534, 65_534);
  t.equal(base(), `unix:${path}`, 'in a folder of root');
  chownSync(run, 65_534, 65_534);
  t.throws(base, { message: /no service found/ }, 'in a folder of another user');
});
