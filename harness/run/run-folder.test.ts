import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { lockFolder, observerOf } from './run-folder.ts';

t.test('a folder is created, locked by one process at a time, and free afterwards', async (t) => {
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

t.test('a folder that cannot be written to: the error of the system, and what to do', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  t.throws(() => lockFolder(file), { exitCode: 69, message: /file cannot be written to: EEXIST: .*; choose another with --out$/ });
  // A file system in which no file can be created.
  t.throws(() => lockFolder('/proc/self'), { exitCode: 69, message: /^\/proc\/self cannot be written to: E[A-Z]+: .*; .*--out$/ });
});
