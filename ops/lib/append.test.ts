import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { recordSyncs } from '../../testkit/machine/disk-syncs.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';

const syncs = await recordSyncs();
const { appendLines, cutTornLine } = await import('./append.ts');

t.test('whatever was left of the last line is cut off, whole lines stay', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ maxLength: 40 })), fc.nat(), fc.boolean(), async (texts, at, zeros) => {
      const whole = texts.map((text) => `${text.replaceAll('\n', ' ')}\n`).join('');
      const bytes = Buffer.from(whole);
      const torn = bytes.subarray(0, at % (bytes.length + 1));
      // A power cut can leave a stretch of zeros where data was to be.
      writeFileSync(file, zeros ? Buffer.concat([torn, Buffer.alloc(100_000)]) : torn);
      const kept = torn.subarray(0, torn.lastIndexOf('\n') + 1);
      const { cut, size } = await appendLines(file, 'new\n', { head: 'head\n' });
      const now = readFileSync(file);
      const wanted = Buffer.concat([kept.length === 0 ? Buffer.from('head\n') : kept, Buffer.from('new\n')]);
      return now.equals(wanted) && size === now.length && cut === (zeros ? 100_000 : 0) + torn.length - kept.length;
    }),
    { numRuns: runs(60, 1000), seed: SEED },
  );
  t.pass();
});

t.test('a torn line longer than what is read at once is found', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, `whole\n${'x'.repeat(200_000)}`);
  t.equal(await cutTornLine(file), 200_000);
  t.equal(readFileSync(file, 'utf8'), 'whole\n');
  t.equal(await cutTornLine(file), 0);
});

t.test('the group may read, nobody else', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  const before = process.umask(0o022);
  await appendLines(file, 'x\n', { durable: true });
  process.umask(before);
  t.equal(statSync(file).mode & 0o777, 0o640);
});

t.test('durable lines are on the disk, and so is the name of a new file', async (t) => {
  const folder = temporaryFolder(t);
  const append = async (durable: boolean): Promise<string[]> => {
    syncs();
    await appendLines(join(folder, 'file'), 'x\n', { durable });
    return syncs();
  };
  t.same(await append(true), ['sync file', `sync ${basename(folder)}`]);
  t.same(await append(true), ['sync file']);
  t.same(await append(false), []);
});

t.test('a full disk leaves nothing torn, and what was written stays', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const file = join(disk.folder, 'file');
  await appendLines(file, 'first\n');
  disk.fill();
  await t.rejects(appendLines(file, `${'x'.repeat(9000)}\n`), { code: 'ENOSPC' });
  t.equal(readFileSync(file, 'utf8'), 'first\n');
  disk.free();
  await appendLines(file, 'second\n');
  t.equal(readFileSync(file, 'utf8'), 'first\nsecond\n');
});
