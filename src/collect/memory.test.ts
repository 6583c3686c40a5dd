import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, materialiseFixture, writeTree } from '../../testkit/machine/machines.ts';
import { toHundredths } from '../core/metrics.ts';
import { MemorySource, parseMemoryPercent, parseReclaimableArc } from './memory.ts';

function ask(source: MemorySource): Promise<{ problem: string | null; value: number }> {
  return new Promise((resolve) => source.read((error, value) => resolve({ problem: error?.message ?? null, value })));
}

/** The first lines of meminfo as the kernel writes them. */
function meminfo(total: number, available: number): string {
  const line = (key: string, kibibytes: number): string => `${`${key}:`.padEnd(16)}${String(kibibytes).padStart(8)} kB\n`;
  return line('MemTotal', total) + line('MemFree', 1) + line('MemAvailable', available) + line('Buffers', 7);
}

t.test('memory that is not available is in use', async (t) => {
  t.equal(parseMemoryPercent(meminfo(1000, 1000)), 0);
  t.equal(parseMemoryPercent(meminfo(1000, 750)), 25);
  t.equal(parseMemoryPercent(meminfo(1000, 0)), 100);
  t.equal(parseMemoryPercent(meminfo(2 ** 40, 2 ** 39)), 50, 'a pebibyte');
});

t.test('impossible values are refused', async (t) => {
  const garbage = [
    '',
    'garbage',
    meminfo(1000, 1001),
    meminfo(0, 0),
    meminfo(-5, 1),
    meminfo(1000, -1),
    'MemTotal:  1000 kB\n',
    'MemTotal:  1000 kB\nMemFree:  10 kB\n',
    'MemAvailable:  1000 kB\n',
    'MemTotal:  many kB\nMemAvailable:  10 kB\n',
    'MemTotal:  1000 kB\nMemAvailable:  \n',
    'MemTotal:  1000 MB\nMemAvailable:  10 kB\n',
  ];
  for (const text of garbage) t.throws(() => parseMemoryPercent(text), { name: 'ImplausibleReading' }, JSON.stringify(text));
});

t.test('a missing, empty or garbled meminfo is an error, and a valid one is read afterwards', async (t) => {
  const procRoot = temporaryFolder(t);
  const path = join(procRoot, 'meminfo');
  const source = new MemorySource(procRoot);
  t.match(await ask(source), { problem: /ENOENT/ });
  writeFileSync(path, meminfo(400, 100));
  t.same(await ask(source), { problem: null, value: 75 });
  writeFileSync(path, '');
  t.match(await ask(source), { problem: /MemTotal/ });
  writeFileSync(path, 'MemTotal: 400 kB\n');
  t.match(await ask(source), { problem: /MemAvailable/ });
  rmSync(path);
  t.match(await ask(source), { problem: /ENOENT/ });
  writeFileSync(path, meminfo(400, 300));
  t.same(await ask(source), { problem: null, value: 25 });
});

/** arcstats as OpenZFS writes it. */
function arcstats(size: number, minimum: number): string {
  return `13 1 0x01 147 39984 7123456789 987654321\nname                            type data\nhits                            4    123\nc                               4    ${size}\nc_min                           4    ${minimum}\nc_max                           4    ${size}\nsize                            4    ${size}\n`;
}

t.test('of the ZFS cache, the part above its minimum is available', async (t) => {
  t.equal(parseReclaimableArc(arcstats(25769803776, 1073741824)), 24 * 2 ** 20 - 2 ** 20);
  t.equal(parseReclaimableArc(arcstats(1000, 2000)), 0, 'smaller than its minimum');
  for (const text of ['', 'garbage', 'size 4 1000\n']) t.equal(parseReclaimableArc(text), 0, JSON.stringify(text));
  const procRoot = temporaryFolder(t);
  const source = new MemorySource(procRoot);
  writeTree(procRoot, { meminfo: meminfo(32505856, 1258291), 'spl/kstat/zfs/arcstats': arcstats(25769803776, 1073741824) });
  t.equal(toHundredths((await ask(source)).value), 21.94, 'from the first reading on');
  t.match(source.state(), {
    total_bytes: 32505856 * 1024,
    available_bytes: (1258291 + 24117248) * 1024,
    zfs_reclaimable_bytes: 24117248 * 1024,
  });
  writeTree(procRoot, { 'spl/kstat/zfs/arcstats': arcstats(1073741824, 1073741824) });
  t.equal(toHundredths((await ask(source)).value), 96.13, 'followed');
  writeTree(procRoot, { 'spl/kstat/zfs/arcstats': arcstats(2 ** 50, 0) });
  t.equal((await ask(source)).value, 0, 'not more than all of it');
  rmSync(join(procRoot, 'spl'), { recursive: true });
  t.equal(toHundredths((await ask(source)).value), 96.13, 'the module was unloaded');
  t.equal(source.state()?.zfs_reclaimable_bytes, null);
  writeTree(procRoot, { 'spl/kstat/zfs/arcstats': arcstats(25769803776, 1073741824) });
  let value = 0;
  for (let reading = 0; reading < 60; reading += 1) value = (await ask(source)).value;
  t.equal(toHundredths(value), 21.94, 'and loaded again');
});

t.test('the ZFS cache of the host is not memory of a container, whose meminfo is on a file system of its own', async (t) => {
  const procRoot = temporaryFolder(t);
  symlinkSync('/proc/meminfo', join(procRoot, 'meminfo'));
  writeTree(procRoot, { 'spl/kstat/zfs/arcstats': arcstats(2 ** 50, 0) });
  const source = new MemorySource(procRoot);
  t.teardown(() => source.close());
  t.match(await ask(source), { problem: null });
  t.equal(source.state()?.zfs_reclaimable_bytes, null);
});

t.test('reserved huge pages are neither available nor hidden', async (t) => {
  const procRoot = temporaryFolder(t);
  const pages = 'HugePages_Total:    7168\nHugePages_Free:     7000\nHugePages_Rsvd:        0\nHugepagesize:       2048 kB\n';
  const source = new MemorySource(procRoot);
  t.equal(source.state(), null, 'before the first reading');
  writeFileSync(join(procRoot, 'meminfo'), meminfo(16777216, 786432) + pages);
  t.equal(toHundredths((await ask(source)).value), 95.31);
  t.match(source.state(), { huge_pages_bytes: 14 * 2 ** 30, huge_pages_free_bytes: 7000 * 2 ** 21, zfs_reclaimable_bytes: null });
  writeFileSync(join(procRoot, 'meminfo'), `${meminfo(16777216, 786432)}${pages}Hugetlb:        15728640 kB\n`);
  await ask(source);
  t.match(source.state(), { huge_pages_bytes: 15 * 2 ** 30 }, 'of all sizes');
  writeFileSync(join(procRoot, 'meminfo'), meminfo(1000, 500));
  await ask(source);
  t.match(source.state(), { huge_pages_bytes: 0, huge_pages_free_bytes: 0 }, 'a kernel without huge pages');
});

t.test('reads the real /proc/meminfo repeatedly', async (t) => {
  const source = new MemorySource('/proc');
  t.teardown(() => source.close());
  const differences: number[] = [];
  for (let i = 0; i < 5; i += 1) {
    const { problem, value } = await ask(source);
    t.equal(problem, null);
    differences.push(Math.abs(value - parseMemoryPercent(readFileSync('/proc/meminfo', 'utf8'))));
  }
  t.ok(Math.min(...differences) < 1, `the differences to another reading are ${differences}`);
});

t.test('an exception in the callback is not mistaken for a failed reading', async (t) => {
  const source = new MemorySource('/proc');
  t.teardown(() => source.close());
  await ask(source); // From here on /proc is read synchronously.
  let answers = 0;
  const take = (): void => {
    answers += 1;
    throw new Error('cannot take it');
  };
  t.throws(() => source.read(take), { message: 'cannot take it' });
  t.equal(answers, 1);
});

for (const name of fixtureNames()) {
  t.test(`${name}: memory in use`, async (t) => {
    const { procRoot, expect } = materialiseFixture(t, name);
    const { problem, value } = await ask(new MemorySource(procRoot));
    t.equal(problem, null);
    t.equal(toHundredths(value), expect.memoryPercent);
  });
}
