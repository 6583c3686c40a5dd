import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { folderName, lockFolder, newestRun, observerOf, readRequest, settledFile, settleRequest, writeRequest } from './run-folder.ts';

const REQUEST = {
  out: '/var/lib/edge-health/reports/x',
  duration: '168h',
  duration_seconds: 604_800,
  transport: 'auto',
  unit: 'edge-health.service',
  requested: '',
};

t.test('a folder is created, locked by one process at a time, and released afterwards', async (t) => {
  const folder = join(temporaryFolder(t), 'reports/new');
  const locked = lockFolder(folder);
  t.equal(observerOf(folder), process.pid);
  t.throws(() => lockFolder(folder), {
    exitCode: 75,
    message: new RegExp(`in use by another edge-health harness \\(process ${process.pid}\\)`),
  });
  locked.release();
  t.equal(observerOf(folder), null);
  lockFolder(folder).release();
  t.notOk(existsSync(join(folder, 'observer.pid')));
});

t.test('reports a folder that cannot be written to with the error of the system and the remedy', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  t.throws(() => lockFolder(file), { exitCode: 69, message: /file cannot be written to: EEXIST: .*; choose another with --out$/ });
  // A file system in which no file can be created.
  t.throws(() => lockFolder('/proc/self'), { exitCode: 69, message: /^\/proc\/self cannot be written to: E[A-Z]+: .*; .*--out$/ });
});

t.test('a request exists until it is settled', async (t) => {
  const file = join(temporaryFolder(t), 'harness/current.json');
  t.equal(readRequest(file), null);
  writeRequest(file, REQUEST);
  t.same(readRequest(file), REQUEST);
  t.equal(statSync(file).mode & 0o007, 0);
  settleRequest(file);
  t.equal(readRequest(file), null);
  t.same(readRequest(settledFile(file)), REQUEST);
  settleRequest(file);
  t.same(readRequest(settledFile(file)), REQUEST, 'once more changes nothing');
});

t.test('refuses a file that is not a request', async (t) => {
  const file = join(temporaryFolder(t), 'current.json');
  for (const content of ['', '{}', 'null', '[]']) {
    writeFileSync(file, content);
    t.throws(() => readRequest(file), { message: /is not a request of `edge-health harness start`; remove it/ });
  }
});

t.test('names the folders of runs and finds the newest run', async (t) => {
  t.equal(folderName(Date.parse('2026-03-04T05:06:07.089Z')), 'harness-20260304T050607Z');
  const reports = temporaryFolder(t);
  t.equal(newestRun(join(reports, 'missing')), null);
  for (const name of ['harness-20260304T050607Z', 'harness-20260305T050607Z', 'harness-20260306T050607Z', 'other']) {
    mkdirSync(join(reports, name));
    if (!name.includes('0306')) writeFileSync(join(reports, name, 'record.ndjson'), '');
  }
  t.equal(newestRun(reports), join(reports, 'harness-20260305T050607Z'), 'the newest that has a record');
});
