import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import {
  announceService,
  findService,
  readReloadOutcome,
  runningFolder,
  startTime,
  withdrawService,
  writeReloadOutcome,
} from './running-service.ts';

const CONFIG = '/etc/edge-health/sensor_node_config.yaml';
const URL_IN_USE = 'http://127.0.0.1:5001';

function unitIn(t: Test): { readonly run: string; readonly folder: string } {
  const run = temporaryFolder(t);
  const folder = join(run, 'edge-health-sensor_node');
  mkdirSync(folder);
  return { run, folder };
}

t.test('a service is found by its configuration, in the folder of a unit', async (t) => {
  const { folder, run } = unitIn(t);
  const before = process.umask(0o027);
  await announceService(folder, { config: CONFIG, url: URL_IN_USE });
  process.umask(before);
  t.equal(statSync(join(folder, 'service.json')).mode & 0o777, 0o644, 'for every user');
  t.match(findService(CONFIG, {}, run), { pid: process.pid, url: URL_IN_USE, folder });
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
});

t.test('without systemd a service is found in /dev/shm', { skip: existsSync('/dev/shm') ? false : 'no /dev/shm' }, async (t) => {
  const config = join(temporaryFolder(t), 'edge_health_config.yaml');
  const folder = runningFolder(config, {});
  await announceService(folder, { config, url: URL_IN_USE });
  t.match(findService(config, {}, '/nowhere'), { folder, url: URL_IN_USE });
  chmodSync(folder, 0o777);
  t.equal(findService(config, {}, '/nowhere'), null, 'not where others can write');
  chmodSync(folder, 0o700);
  await withdrawService(folder);
  t.notOk(existsSync(folder));
});

t.test('files of an ended process or of another user are ignored', async (t) => {
  const { folder, run } = unitIn(t);
  const file = join(folder, 'service.json');
  const service = { pid: process.pid, started: startTime(process.pid), config: CONFIG, url: URL_IN_USE };
  const found = (document: object | string): unknown => {
    writeFileSync(file, typeof document === 'string' ? document : JSON.stringify(document));
    chmodSync(file, 0o644);
    return findService(CONFIG, {}, run);
  };
  t.ok(found(service));
  t.equal(found({ ...service, started: 1 }), null);
  t.equal(found({ ...service, pid: 2 ** 30 }), null);
  t.equal(found({ ...service, url: 'file:///etc/passwd' }), null);
  for (const text of ['', '{', 'null', '[]', '{"config": 1}']) t.equal(found(text), null, text);
  t.ok(found(service));
  renameSync(file, join(folder, 'other.json'));
  symlinkSync('other.json', file);
  t.equal(findService(CONFIG, {}, run), null, 'a link is not followed');
  rmSync(file);
  execFileSync('mkfifo', [file]);
  t.equal(findService(CONFIG, {}, run), null, 'a pipe is not waited for');
});
