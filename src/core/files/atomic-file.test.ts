import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { recordSyncs } from '../../../testkit/machine/disk-syncs.ts';
import { SmallDisk, whyNotMountable } from '../../../testkit/machine/small-disk.ts';

const syncs = await recordSyncs();
const { readIfThere, writeAtomically } = await import('./atomic-file.ts');

t.test('replaces a file and leaves no temporary file', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'file');
  t.equal(await readIfThere(file), null);
  await writeAtomically(file, 'one', { durable: true });
  await writeAtomically(file, 'two');
  t.equal(await readIfThere(file), 'two');
  t.same(readdirSync(folder), ['file']);
  await t.rejects(readIfThere(folder), { message: 'a folder, not a file' });
});

t.test('the content reaches the disk before the rename and, with durable, the rename before the call returns', async (t) => {
  const folder = temporaryFolder(t);
  syncs();
  await writeAtomically(join(folder, 'file'), 'one');
  t.same(syncs(), ['sync file.new', 'rename file.new file']);
  await writeAtomically(join(folder, 'file'), 'two', { durable: true });
  t.same(syncs(), ['sync file.new', 'rename file.new file', `sync ${basename(folder)}`]);
});

t.test('a full disk leaves the old content', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const file = join(disk.folder, 'file');
  await writeAtomically(file, 'old');
  disk.fill();
  await t.rejects(writeAtomically(file, 'x'.repeat(10_000)), { code: 'ENOSPC' });
  t.equal(readFileSync(file, 'utf8'), 'old');
  t.same(readdirSync(disk.folder).sort(), ['file', 'filler']);
});

t.test('a link, FIFO or folder in place of the temporary file is neither followed nor waited for', async (t) => {
  const folder = temporaryFolder(t);
  const [path, victim] = [join(folder, 'file'), join(folder, 'victim')];
  writeFileSync(victim, 'untouched');
  const plant: Record<string, () => void> = {
    'a link': () => symlinkSync(victim, `${path}.new`),
    'a hard link': () => linkSync(victim, `${path}.new`),
    'a FIFO': () => execFileSync('mkfifo', [`${path}.new`]),
    'a folder': () => mkdirSync(`${path}.new/x`, { recursive: true }),
  };
  for (const [what, make] of Object.entries(plant)) {
    make();
    await writeAtomically(path, what);
    t.equal(readFileSync(path, 'utf8'), what);
    t.equal(readFileSync(victim, 'utf8'), 'untouched');
    t.same(readdirSync(folder).sort(), ['file', 'victim']);
  }
});

t.test('only a regular file of a limited size is read', async (t) => {
  const folder = temporaryFolder(t);
  t.equal(await readIfThere(join(folder, 'none')), null);
  const fifo = join(folder, 'fifo');
  execFileSync('mkfifo', [fifo]);
  for (const path of [fifo, folder, '/dev/zero']) await t.rejects(readIfThere(path), { message: /not a file/ }, path);
});
