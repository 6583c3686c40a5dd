import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../../testkit/folder.ts';
import { fakePaths, fakePrepared, write } from '../testing/trees.ts';
import { abandon, beginFolder, publishFolder, removeOutdated, removeUnfinished } from './folders.ts';

const KEY = 'jazzy-2.2.0-1a2b3c4d';

/** The id of a process that has ended. */
function deadProcess(): number {
  return spawnSync(process.execPath, ['-e', '']).pid;
}

t.test('a complete folder gets its final name', async (t) => {
  const root = join(temporaryFolder(t), 'data/ros');
  const made = beginFolder(root);
  write(made, { 'prepared.json': 'one' });
  t.same(readdirSync(root), [basename(made)], 'nothing that could be taken for prepared');
  publishFolder(made, root, KEY);
  t.same(readdirSync(root), [KEY]);
  t.equal(readFileSync(join(root, KEY, 'prepared.json'), 'utf8'), 'one');
});

t.test('an existing folder is replaced as a whole', async (t) => {
  const root = temporaryFolder(t);
  write(root, { [`${KEY}/prepared.json`]: 'old', [`${KEY}/of-the-old-one`]: '' });
  const made = beginFolder(root);
  write(made, { 'prepared.json': 'new' });
  publishFolder(made, root, KEY);
  t.same(readdirSync(root), [KEY]);
  t.same(readdirSync(join(root, KEY)), ['prepared.json']);
  t.equal(readFileSync(join(root, KEY, 'prepared.json'), 'utf8'), 'new');
});

t.test('folders of killed runs are removed, those of running ones kept', async (t) => {
  const root = temporaryFolder(t);
  const mine = beginFolder(root);
  const dead = deadProcess();
  write(root, { [`.preparing-${dead}-abc/half`]: '', [`.replaced-${dead}-abc/${KEY}/old`]: '', [`.preparing-1-def/half`]: '' });
  mkdirSync(join(root, `.preparing-1-old`));
  const long = Date.now() / 1000 - 7 * 3600;
  utimesSync(join(root, `.preparing-1-old`), long, long);
  write(root, { 'log/x': '', [`${KEY}/prepared.json`]: '' });
  t.equal(removeUnfinished(root), 3);
  t.same(readdirSync(root).sort(), ['.preparing-1-def', basename(mine), KEY, 'log'].sort());
  t.equal(removeUnfinished(join(root, 'nonexistent')), 0);
});

t.test('a terminated run removes its own folder', async (t) => {
  const root = temporaryFolder(t);
  const mine = beginFolder(root);
  write(mine, { half: '' });
  write(root, { '.preparing-1-def/half': '' });
  abandon(root);
  t.same(readdirSync(root), ['.preparing-1-def']);
});

t.test('outdated: another rclnodejs or other interfaces; not another distribution', async (t) => {
  const paths = fakePaths(t);
  for (const key of [KEY, 'humble-2.2.0-1a2b3c4d', 'jazzy-2.1.0-1a2b3c4d', 'humble-2.2.0-00000000']) fakePrepared(paths, key);
  write(paths.preparedRoot, { 'somebody-elses-folder/file': '', 'setup.log': '' });
  t.same(removeOutdated(paths.preparedRoot, KEY).sort(), ['humble-2.2.0-00000000', 'jazzy-2.1.0-1a2b3c4d']);
  t.same(readdirSync(paths.preparedRoot).sort(), ['humble-2.2.0-1a2b3c4d', KEY, 'setup.log', 'somebody-elses-folder']);
  t.ok(existsSync(join(paths.preparedRoot, KEY, 'prepared.json')));
});
