import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { Header } from 'tar/header';
import { Pax } from 'tar/pax';
import { MANIFEST } from '../../ops/backup/manifest.ts';
import { Damaged, readArchive } from '../../ops/backup/read-archive.ts';
import { runs } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { BackupSite } from '../../testkit/ops/backup-site.ts';

const MINUTE = 60;
const BLOCK_BYTES = 512;
/** Bits flipped over the length of an archive. */
const FLIPS = runs(60, 1000);

/** A small data folder with some data of every kind, and its backup. */
async function made(t: Test): Promise<BackupSite> {
  const site = new BackupSite(t);
  site.fill(10 * MINUTE);
  site.write('metrics/metrics_2026-03-04.csv', 'time,node\n1,a\n');
  site.write('metrics/empty.csv', '');
  site.write('alerts/alerts_2026-03-04.ndjson', '{"a":1}\n');
  site.write('alerts/cursor.json', '{}');
  chmodSync(site.write('logs/health_check.log', 'x'.repeat(5000)), 0o644);
  site.write('ops/jobs.json', '{"jobs":[]}');
  const { outcome, text } = await site.backup();
  t.equal(outcome.status, 'OK', text);
  return site;
}

interface Member {
  readonly header: Buffer;
  readonly name: string;
  readonly content: Buffer;
}

function paddingBytes(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

function membersOf(tar: Buffer): Member[] {
  const members: Member[] = [];
  for (let at = 0; ; ) {
    const header = tar.subarray(at, at + BLOCK_BYTES);
    const { nullBlock, path = '', size = 0 } = new Header(header);
    if (nullBlock) return members;
    const from = at + BLOCK_BYTES;
    members.push({ header, name: path, content: tar.subarray(from, from + size) });
    at = from + size + paddingBytes(size);
  }
}

function tarOf(members: readonly Pick<Member, 'header' | 'content'>[]): Buffer {
  const parts = members.flatMap(({ content, header }) => [header, content, Buffer.alloc(paddingBytes(content.length))]);
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function member(name: string, content: Buffer | string, mode = 0o640): Member {
  const bytes = Buffer.from(content);
  const header = Buffer.alloc(BLOCK_BYTES);
  new Header({ path: name, size: bytes.length, mode, uid: 0, gid: 0, mtime: new Date(0), type: 'File' }).encode(header);
  return { name, content: bytes, header };
}

/** The header with one field changed, and its checksum corrected. */
function forged(header: Buffer, ...changes: readonly (readonly [at: number, bytes: string])[]): Buffer {
  const copy = Buffer.from(header);
  for (const [at, bytes] of changes) copy.write(bytes, at, 'latin1');
  copy.write('        ', 148);
  const sum = copy.reduce((a, b) => a + b, 0);
  copy.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return copy;
}

const site = await made(t);

t.test('the tar program of the system lists and unpacks an archive', async (t) => {
  // Not every tar can decompress: test/system/ops/backup-archive.test.ts tests that.
  const tar = join(site.folder, 'plain.tar');
  writeFileSync(tar, zstdDecompressSync(readFileSync(site.newest)));
  const listed = execFileSync('tar', ['-tf', tar], { encoding: 'utf8' }).trim().split('\n');
  t.same(listed.toSorted(), [
    'alerts/alerts_2026-03-04.ndjson',
    'alerts/cursor.json',
    'config/edge_health_config.yaml',
    'database/edge-health.db',
    'logs/health_check.log',
    MANIFEST,
    'metrics/empty.csv',
    'metrics/metrics_2026-03-04.csv',
    'ops/jobs.json',
  ]);
  const out = join(site.folder, 'by-tar');
  mkdirSync(out);
  execFileSync('tar', ['-xf', tar, '-C', out]);
  t.equal(readFileSync(join(out, 'metrics/metrics_2026-03-04.csv'), 'utf8'), 'time,node\n1,a\n');
  const { files } = JSON.parse(readFileSync(join(out, MANIFEST), 'utf8')) as { files: { path: string; sha256: string; size: number }[] };
  t.equal(files.length, 8);
  for (const { path, sha256, size } of files) {
    const bytes = readFileSync(join(out, path));
    t.equal(createHash('sha256').update(bytes).digest('hex'), sha256, path);
    t.equal(bytes.length, size);
  }
  const file = statSync(site.newest);
  t.equal(file.mode & 0o777, 0o640);
  t.equal(statSync(site.backups).mode & 0o777, 0o750);
});

t.test('sizes and names at their limits are supported', async (t) => {
  for (const size of [0, 511, 512, 8 ** 11 - 1, 8 ** 11, 2 ** 45]) {
    const block = Buffer.alloc(BLOCK_BYTES);
    new Header({ path: 'database/edge-health.db', size, mode: 0o640, mtime: new Date(1_700_000_000_000), type: 'File' }).encode(block);
    t.match(new Header(block), { path: 'database/edge-health.db', size, mode: 0o640, type: 'File', cksumValid: true }, `${size} bytes`);
  }
  const other = new BackupSite(t);
  other.fill(60);
  const longest = `metrics/${'n'.repeat(91)}`;
  for (const name of [longest, `${longest}n`, 'metrics/two words', 'metrics/-option']) other.write(name, 'x');
  const { document } = await other.backup();
  t.same(
    document.backup?.left_out.filter(({ reason }) => /unsupported characters/.test(reason)).map(({ what }) => what),
    ['metrics/-option', `${longest}n`, 'metrics/two words'].map((name) => join(other.dataFolder, name)),
  );
  t.ok((await readArchive(other.newest)).manifest.files.some(({ path }) => path === longest));
});

t.test('a flipped bit anywhere is detected or has no effect', async (t) => {
  const whole = readFileSync(site.newest);
  const before = await readArchive(site.newest);
  const damaged = join(site.folder, 'damaged.tar.zst');
  let refused = 0;
  const step = Math.max(1, Math.floor(whole.length / FLIPS));
  const places = [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    ...Array.from({ length: FLIPS }, (_, i) => i * step),
    ...[1, 2, 3, 4, 5].map((n) => whole.length - n),
  ];
  for (const [index, place] of places.entries()) {
    const bytes = Buffer.from(whole);
    bytes[place] = (bytes[place] as number) ^ (1 << (index % 8));
    writeFileSync(damaged, bytes);
    try {
      // Some bits have no meaning: a header may allow a decoder more memory than it needs.
      t.same((await readArchive(damaged)).manifest, before.manifest, `what is accepted is whole (byte ${place})`);
    } catch (error) {
      refused += 1;
      if (!(error instanceof Damaged)) t.fail(`byte ${place}: ${(error as Error).stack}`);
    }
  }
  t.ok(refused >= places.length * 0.9, `${refused} of ${places.length} refused`);
});

t.test('a truncated or extended archive is refused', async (t) => {
  const whole = readFileSync(site.newest);
  const damaged = join(site.folder, 'damaged.tar.zst');
  const lengths = [0, 1, 4, 20, 1000, whole.length >> 1, whole.length - 5, whole.length - 4, whole.length - 1];
  for (const length of lengths) {
    writeFileSync(damaged, whole.subarray(0, length));
    await t.rejects(readArchive(damaged), Damaged, `${length} bytes of ${whole.length}`);
  }
  for (const more of [Buffer.from('x'), Buffer.alloc(4096), whole]) {
    writeFileSync(damaged, Buffer.concat([whole, more]));
    await t.rejects(readArchive(damaged), Damaged, `${more.length} bytes more`);
  }
});

t.test('an archive with members that do not belong there is refused', async (t) => {
  const members = membersOf(zstdDecompressSync(readFileSync(site.newest)));
  t.equal(members.length, 9);
  const bad = join(site.folder, 'bad.tar.zst');
  const check = async (changed: readonly Pick<Member, 'header' | 'content'>[], why: RegExp): Promise<void> => {
    writeFileSync(bad, zstdCompressSync(tarOf(changed)));
    const folder = temporaryFolder(t);
    await t.rejects(readArchive(bad), { name: 'Damaged', message: why }, `${why}`);
    const { outcome } = await site.restore({ extract: folder }, [bad]);
    t.equal(outcome.status, 'CRITICAL');
    t.same(readdirSync(folder), [], 'nothing is left of it');
  };
  writeFileSync(bad, zstdCompressSync(tarOf(members)));
  t.ok(await readArchive(bad), 'the same put together again is good');
  const [first, ...rest] = members as [Member, ...Member[]];
  const traversals = [
    '../evil',
    '/etc/evil',
    'metrics/../../evil',
    'metrics/..',
    'metrics/a/b',
    'config/x/y',
    'other/x',
    'metrics/.hidden',
    'evil',
    'metrics/a\nb',
  ];
  for (const name of traversals) await check([member(name, 'x'), ...members], /which backups do not have/);
  const { content } = first;
  // A hard link, a symbolic link, devices, a folder and a FIFO; links with and without a target.
  for (const type of ['1', '2']) {
    await check([{ header: forged(first.header, [156, type], [157, '/etc/passwd']), content }, ...rest], /not a regular file/);
    await check([{ header: forged(first.header, [156, type]), content }, ...rest], /linkpath required/);
  }
  for (const type of ['3', '4', '5', '6'])
    await check([{ header: forged(first.header, [156, type]), content }, ...rest], /not a regular file/);
  await check([{ header: forged(first.header, [345, 'prefix']), content }, ...rest], /which backups do not have/);
  // Invalid numbers in base 256.
  for (const at of [100, 108, 116, 124, 136])
    await check([{ header: forged(first.header, [at, '\xc0']), content }, ...rest], /invalid|damaged/);
  // Extensions of the format, which could give a member another name or size than its header has.
  const extension = new Pax({ path: 'metrics/other.csv' }).encode();
  await check([{ header: extension, content: Buffer.alloc(0) }, ...members], /which|not there|more or less/);
  await check([{ header: new Pax({ comment: 'x' }).encode(), content: Buffer.alloc(0) }, ...members], /more or less than its files/);
  for (const more of [Buffer.alloc(BLOCK_BYTES), Buffer.alloc(1_000_000), Buffer.from('x')]) {
    writeFileSync(bad, zstdCompressSync(Buffer.concat([tarOf(members), more])));
    await t.rejects(readArchive(bad), { name: 'Damaged', message: /follows its end|more or less/ }, `${more.length} bytes more of tar`);
  }
  writeFileSync(bad, zstdCompressSync(tarOf(members).subarray(0, -BLOCK_BYTES)));
  await t.rejects(readArchive(bad), { name: 'Damaged', message: /more or less/ }, 'without its end');
  await check([first, ...members], /twice/);
  await check(rest, /is not there/);
  await check([member('metrics/more.csv', 'x'), ...members], /is not there|not in its manifest/);
  await check([...members, member('metrics/more.csv', 'x')], /not its last file/);
  await check(members.slice(0, -1), /no manifest/);
  const swapped = members.map((one) => (one.name === 'logs/health_check.log' ? member(one.name, 'y'.repeat(5000), 0o644) : one));
  await check(swapped, /sha256/);
});

t.test('an archive that would take much time or memory is refused, and says why', async (t) => {
  const bad = join(site.folder, 'bomb.tar.zst');
  const refused = async (content: Buffer, why: RegExp): Promise<void> => {
    writeFileSync(bad, content);
    await t.rejects(readArchive(bad), { name: 'Damaged', message: why });
  };
  const header = (name: string, size: number): Buffer => {
    const block = Buffer.alloc(BLOCK_BYTES);
    new Header({ path: name, size, mode: 0o640, mtime: new Date(0), type: 'File' }).encode(block);
    return block;
  };
  // The announced size is enough; the content need not be read.
  await refused(zstdCompressSync(header('database/edge-health.db', 20e9)), /expands to at least 20000 MB, at most 256 MB are allowed/);
  const many = Array.from({ length: 10_002 }, (_, n) => member(`metrics/${n}`, ''));
  await refused(zstdCompressSync(tarOf(many)), /more than 10000 files/);
  await refused(zstdCompressSync(header(MANIFEST, 5e6)), /its manifest is too large/);
  for (const text of ['['.repeat(3e6), '[ \n['.repeat(1e6), `[${'{},'.repeat(1e6)}`])
    await refused(zstdCompressSync(tarOf([member(MANIFEST, text)])), /lists or objects that no backup has/);
  await refused(zstdCompressSync(gzipSync(tarOf([member('metrics/a', 'x')]))), /compressed twice/);
  // Zeros are no member: they are counted as they come.
  await refused(zstdCompressSync(Buffer.concat([header('metrics/a', 0), Buffer.alloc(3e8)])), /expands to|follows its end/);
});

t.test('a folder with more files than a backup may have is backed up without the rest, which is reported', async (t) => {
  const other = new BackupSite(t);
  other.fill(60);
  for (let n = 0; n < 10_000; n += 1) other.write(`logs/${n}.log`, '');
  const { document } = await other.backup();
  t.match(document.backup?.left_out, [{ what: /^\d+ more files$/, reason: /at most 10000/ }]);
  t.ok((await readArchive(other.newest)).manifest.files.length <= 10_000);
});
