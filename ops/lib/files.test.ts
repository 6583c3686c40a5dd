import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { DAY_MS } from '../../src/core/time/time.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { recordSyncs } from '../../testkit/machine/disk-syncs.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';

const syncs = await recordSyncs();
const { appendLines, diskProblem, datedFiles, expiredDays, linesOf, pruneDatedFiles, removeTornLine, utcDay } = await import('./files.ts');

t.test('a torn last line is cut off, and whole lines are kept', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ maxLength: 40 })), fc.nat(), fc.boolean(), async (texts, at, zeros) => {
      const whole = texts.map((text) => `${text.replaceAll('\n', ' ')}\n`).join('');
      const bytes = Buffer.from(whole);
      const torn = bytes.subarray(0, at % (bytes.length + 1));
      // A power cut can leave zeros in place of data.
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

t.test('a torn line that is longer than one read is found', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, `whole\n${'x'.repeat(200_000)}`);
  t.equal(await removeTornLine(file), 200_000);
  t.equal(readFileSync(file, 'utf8'), 'whole\n');
  t.equal(await removeTornLine(file), 0);
});

t.test('a file can be read by its group and by no other user', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  const before = process.umask(0o022);
  await appendLines(file, 'x\n', { durable: true });
  process.umask(before);
  t.equal(statSync(file).mode & 0o777, 0o640);
});

t.test('durable lines are synced to the disk, together with the name of a new file', async (t) => {
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

t.test('a full disk leaves no torn line, and what was written is kept', { skip: whyNotMountable() ?? false }, async (t) => {
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

async function read(file: string): Promise<{ lines: string[]; torn: number[] }> {
  const lines: string[] = [];
  const torn: number[] = [];
  for await (const batch of linesOf(file, { torn: (characters) => torn.push(characters) })) lines.push(...batch);
  return { lines, torn };
}

const line = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => text.replaceAll('\n', ' ')),
  fc.constantFrom('ü'.repeat(40_000), 'x'.repeat(65_535), ''),
);

t.test('whole lines are read wherever blocks end, and a torn end is reported', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 8 }), line, async (whole, torn) => {
      writeFileSync(file, whole.map((text) => `${text}\n`).join('') + torn);
      t.same(await read(file), { lines: whole, torn: torn === '' ? [] : [torn.length] });
      return true;
    }),
    { numRuns: runs(30, 500), seed: SEED },
  );
});

t.test('a long part without a line end does not exhaust memory, and affects no other line', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, Buffer.concat([Buffer.from('one\n'), Buffer.alloc(20_000_000), Buffer.from('\ntwo\nthree\n')]));
  t.same(await read(file), { lines: ['one', 'two', 'three'], torn: [20_000_000] });
});

const NOW = Date.parse('2026-03-04T05:06:07Z');
const day = (ago: number): string => utcDay(NOW - ago * DAY_MS);
const PATTERN = /^m_(\d{4}-\d{2}-\d{2})(?:\.\d+)?\.csv$/;

t.test('expired files are removed, and the others are kept', async (t) => {
  const folder = join(temporaryFolder(t), 'm');
  mkdirSync(folder);
  const write = (name: string): void => writeFileSync(join(folder, name), 'x');
  for (let ago = 0; ago < 12; ago += 1) write(`m_${day(ago)}.csv`);
  write(`m_${day(11)}.2.csv`);
  write('m_notes.csv');
  write('other.txt');
  const removed = await pruneDatedFiles(folder, PATTERN, 10, NOW);
  t.same(removed.sort(), [`m_${day(11)}.2.csv`, `m_${day(11)}.csv`].sort());
  t.equal(readdirSync(folder).length, 13);
  t.same(await datedFiles(join(folder, 'none'), PATTERN), [], 'no folder: no files');
});

t.test('a clock that is far ahead, or a machine that was off for a year, removes nothing', async (t) => {
  const days = Array.from({ length: 10 }, (_, ago) => day(ago));
  t.same(expiredDays(days, 10, NOW + 300 * 365 * DAY_MS), []);
  t.same(expiredDays(['2326-03-04', ...days], 10, NOW + 300 * 365 * DAY_MS), [day(9)], 'a day that is there counts as one');
  t.same(expiredDays([day(400), day(399), day(0)], 10, NOW), [], 'few days of data stay, however old');
});

t.test('for any clock, at most the days beyond keepDays are removed, oldest first, and never a recent one', async (t) => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: -5000, max: 20_000 }), { maxLength: 60 }),
      fc.integer({ min: 8, max: 40 }),
      fc.integer({ min: -9000, max: 90_000 }),
      (agos, keep, offset) => {
        const days = agos.map(day);
        const over = expiredDays(days, keep, NOW + offset * DAY_MS);
        const left = days.filter((one) => !over.includes(one));
        return (
          left.length >= Math.min(days.length, keep) &&
          over.every((one) => left.every((other) => one < other)) &&
          over.every((one) => Date.parse(one) < NOW + (offset - keep + 1) * DAY_MS)
        );
      },
    ),
    { numRuns: runs(100, 2000), seed: SEED },
  );
  t.pass();
});

t.test('a failed write is explained with a remedy', async (t) => {
  const problem = (error: object): string | null => diskProblem(Object.assign(new Error('what Node reports'), error), '/data');
  for (const [error, text] of [
    [{ code: 'EROFS', path: '/data/ops' }, '/data is mounted read-only; see dmesg'],
    [{ code: 'ENOTDIR', path: '/data/ops/x.lock' }, 'a file is in the way of a folder in /data; move it away'],
    [{ code: 'EACCES', path: '/data/ops' }, 'permission denied: /data/ops; '],
    [{ code: 'EIO' }, 'the disk of /data cannot be written'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 778 }, 'the disk of /data cannot be written'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 13 }, 'the disk of /data is full'],
    [{ code: 'ELOOP', path: '/data/ops' }, 'what Node reports; look at /data'],
  ] as const)
    t.match(problem(error), text);
  for (const error of [{}, { code: 'ECONNREFUSED', syscall: 'connect' }, { code: 'ERR_SQLITE_ERROR', errcode: 1 }])
    t.equal(problem(error), null, JSON.stringify(error));
});
