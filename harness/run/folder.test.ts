import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { holdFolder, watcherOf } from './folder.ts';

t.test('a folder is made, held by one at a time, and free afterwards', async (t) => {
  const folder = join(temporaryFolder(t), 'reports/new');
  const held = holdFolder(folder);
  t.equal(watcherOf(folder), process.pid);
  t.throws(() => holdFolder(folder), { exitCode: 75, message: new RegExp(`process ${process.pid}\\) watches into it`) });
  held.release();
  t.equal(watcherOf(folder), null);
  holdFolder(folder).release();
  t.notOk(existsSync(join(folder, 'watch.pid')));
});

t.test('where nothing can be written the system says why, and the advice what to do', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  t.throws(() => holdFolder(file), { exitCode: 69, message: /file cannot be written to: EEXIST: .*; choose another with --out$/ });
  // A file system in which nobody can make a file.
  t.throws(() => holdFolder('/proc/self'), { exitCode: 69, message: /^\/proc\/self cannot be written to: E[A-Z]+: .*; .*--out$/ });
});
