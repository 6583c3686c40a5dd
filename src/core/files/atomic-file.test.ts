import { readdirSync, readFileSync } from 'node:fs';
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
  await t.rejects(readIfThere(folder), { code: 'EISDIR' });
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
