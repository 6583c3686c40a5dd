import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { type Blocks, DiskSource, diskPercent, type IsHidden, inodesPercent, type Statfs } from './disk.ts';

const visible: IsHidden = (_path, callback) => callback(false);
const now = (): number => performance.now() / 1000;

function ask(source: DiskSource): Promise<{ problem: string | null; value: number }> {
  return new Promise((resolve) => source.read((error, value) => resolve({ problem: error?.message ?? null, value })));
}

/** Responds for the given paths, in a later turn as the real source does; every requested path is recorded. */
function statfsOf(known: Readonly<Record<string, Blocks | Error>>, asked: string[] = []): Statfs {
  return (path, callback) => {
    asked.push(path);
    const answer = known[path] ?? new Error('ENOENT: no such file or directory');
    setImmediate(() => {
      if (answer instanceof Error) callback(answer, { blocks: 0, bfree: 0, bavail: 0 });
      else callback(null, answer);
    });
  };
}

const percentUsed = (percent: number): Blocks => ({ blocks: 1000, bfree: 1000 - percent * 10, bavail: 1000 - percent * 10 });

t.test('usage is the used part of used and available space', async (t) => {
  t.equal(diskPercent({ blocks: 1000, bfree: 1000, bavail: 1000 }), 0);
  t.equal(diskPercent({ blocks: 1000, bfree: 250, bavail: 250 }), 75);
  t.equal(diskPercent({ blocks: 1000, bfree: 0, bavail: 0 }), 100);
});

t.test('the reserve for root is neither used nor available', async (t) => {
  t.equal(diskPercent({ blocks: 1000, bfree: 550, bavail: 450 }), 50);
  t.equal(diskPercent({ blocks: 1000, bfree: 50, bavail: 0 }), 100, 'users can write nothing');
});

t.test('impossible numbers are refused', async (t) => {
  const impossible: Blocks[] = [
    { blocks: 0, bfree: 0, bavail: 0 },
    { blocks: 1000, bfree: 1001, bavail: 900 },
    { blocks: 1000, bfree: 100, bavail: -1 },
    { blocks: 1000, bfree: 1000, bavail: 0 },
  ];
  for (const blocks of impossible) t.throws(() => diskPercent(blocks), { name: 'ImplausibleReading' }, JSON.stringify(blocks));
});

t.test('inodes are counted where there is a fixed number of them', async (t) => {
  const blocks = { blocks: 1000, bfree: 500, bavail: 500 };
  t.equal(inodesPercent({ ...blocks, files: 1000, ffree: 30 }), 97);
  t.equal(inodesPercent({ ...blocks, files: 64, ffree: 0 }), 100);
  t.equal(inodesPercent({ ...blocks, files: 0, ffree: 0 }), null, 'btrfs, vfat');
  t.equal(inodesPercent({ ...blocks, files: 10, ffree: 11 }), null, 'impossible');
});

t.test('the result matches df, which rounds up to a whole percent', async (t) => {
  for (const path of ['/', temporaryFolder(t)]) {
    // Other programs that write in between can move the number slightly across a whole percent; it is then read again.
    let [shown, value] = [Number.NaN, Number.NaN];
    for (let attempt = 0; attempt < 5 && Math.ceil(value) !== shown; attempt += 1) {
      const df = execFileSync('df', ['--output=pcent', path], { encoding: 'utf8' });
      shown = Number(/(\d+)%/.exec(df)?.[1]);
      value = (await ask(new DiskSource([path], now))).value;
    }
    // Rounded to hundredths, an almost empty file system is 0 %, where df shows 1 %.
    t.ok(value >= shown - 1.005 && value <= shown + 0.005, `${path}: ${value} %, df shows ${shown} %`);
  }
});

t.test('after the first reading, / on ext4 is read in place, other file systems and paths in a thread', async (t) => {
  const EXT4 = 0xef53;
  const NFS = 0x6969;
  const readInPlace = async (path: string, type: number): Promise<string[]> => {
    const asked: string[] = [];
    const answers = { [path]: { ...percentUsed(40), type } };
    const inPlace = (at: string): Blocks => {
      asked.push(at);
      return { ...percentUsed(50), type };
    };
    const source = new DiskSource([path], now, { statfs: statfsOf(answers), isHidden: visible, statfsSync: inPlace });
    await ask(source);
    t.equal((await ask(source)).value, asked.length > 0 ? 50 : 40);
    return asked;
  };
  t.same(await readInPlace('/', EXT4), ['/']);
  t.same(await readInPlace('/', NFS), []);
  t.same(await readInPlace('/data', EXT4), []);

  const gone = new DiskSource(['/'], now, {
    statfs: statfsOf({ '/': { ...percentUsed(40), type: EXT4 } }),
    isHidden: visible,
    statfsSync: () => {
      throw new Error('EIO: i/o error');
    },
  });
  await ask(gone);
  t.same(await ask(gone), { problem: '/: EIO: i/o error', value: 0 });
});

t.test('the fullest path counts, regardless of the order', async (t) => {
  const known = { '/': percentUsed(40), '/data': percentUsed(90), '/boot': percentUsed(10) };
  for (const paths of [
    ['/', '/data', '/boot'],
    ['/data', '/boot', '/'],
    ['/boot', '/', '/data'],
  ]) {
    const asked: string[] = [];
    t.same(await ask(new DiskSource(paths, now, { statfs: statfsOf(known, asked) })), { problem: null, value: 90 });
    t.same(asked.sort(), paths.toSorted(), 'each is asked once');
  }
  t.same(await ask(new DiskSource(['/boot'], now, { statfs: statfsOf(known) })), { problem: null, value: 10 });
});

t.test('an empty file system is 0 %, which is a value', async (t) => {
  t.same(await ask(new DiskSource(['/new'], now, { statfs: statfsOf({ '/new': percentUsed(0) }) })), { problem: null, value: 0 });
});

t.test('a path that cannot be read is named with its reason, and the fullest of the others counts', async (t) => {
  const missing = `${temporaryFolder(t)}/not-there`;
  const known = { '/': percentUsed(40), '/odd': { blocks: 0, bfree: 0, bavail: 0 }, '/data': percentUsed(90) };
  const source = new DiskSource(['/', missing, '/odd', '/data'], now, { statfs: statfsOf(known) });
  t.same(await ask(source), { problem: null, value: 90 });
  t.match(source.readings(), [
    { path: '/', percent: 40, problem: null },
    { path: '/odd', percent: null, problem: /^0 blocks/ },
    { path: '/data', percent: 90, problem: null },
    { path: missing, percent: null, problem: /^ENOENT/ },
  ]);
  const real = new DiskSource(['/', missing], now);
  t.equal((await ask(real)).problem, null);
  t.match(real.readings()[1], { path: missing, percent: null, problem: /^ENOENT/ });
});

t.test('if no path can be read the metric is unavailable, and each path is named', async (t) => {
  const source = new DiskSource(['/gone', '/odd'], now, { statfs: statfsOf({ '/odd': { blocks: 0, bfree: 0, bavail: 0 } }) });
  t.match((await ask(source)).problem, /^\/odd: 0 blocks.*; \/gone: ENOENT/);
});

t.test('a hanging mount affects only its own reading, is not read again meanwhile, and recovers', async (t) => {
  let nowSeconds = 100;
  const held: (() => void)[] = [];
  const hanging: Statfs = (path, callback) => {
    if (path === '/nfs') held.push(() => callback(null, percentUsed(70)));
    else callback(null, percentUsed(40));
  };
  const source = new DiskSource(['/', '/nfs', '/data'], () => nowSeconds, { statfs: hanging, isHidden: visible });
  t.same(await ask(source), { problem: null, value: 40 }, 'the others are not kept waiting');
  nowSeconds += 1;
  t.same(await ask(source), { problem: null, value: 40 });
  t.match(source.readings()[1], { path: '/nfs', percent: null, problem: 'no response for 1.0 s' });
  t.equal(held.length, 1, 'one thread is held, not one per sample');
  held[0]?.();
  t.match(source.readings()[1], { percent: 70, problem: null });
  const again = ask(source);
  held[1]?.();
  t.same(await again, { problem: null, value: 70 });
});

t.test('with any number of hanging mounts the pool has free threads, and / is measured', async (t) => {
  const asked: string[] = [];
  const hanging: Statfs = (path, callback) => {
    asked.push(path);
    if (path === '/') callback(null, percentUsed(40));
  };
  const mounts = ['/nfs1', '/nfs2', '/nfs3', '/nfs4', '/nfs5'];
  const source = new DiskSource([...mounts, '/'], now, { statfs: hanging, isHidden: visible });
  t.same(await ask(source), { problem: null, value: 40 });
  t.same(asked, ['/', '/nfs1', '/nfs2', '/nfs3', '/nfs4']);
  t.equal(source.readings().at(-1)?.problem, 'not read: other paths do not respond');
});

t.test('a path that the unit hides is unavailable, instead of showing the empty file system mounted over it', async (t) => {
  const folder = temporaryFolder(t);
  const hidden = join(folder, 'home');
  mkdirSync(hidden, { mode: 0 });
  const homes = new DiskSource([folder, hidden], now);
  const { problem } = await ask(homes);
  chmodSync(hidden, 0o700); // Otherwise only root could remove it.
  t.equal(problem, null);
  t.match(homes.readings()[1], { path: hidden, percent: null, problem: /^hidden from the service; allow it with ProtectHome=/ });
  let looks = 0;
  const source = new DiskSource([folder], now, {
    statfs: statfsOf({ [folder]: percentUsed(40) }),
    isHidden: (_path, callback) => {
      looks += 1;
      callback(false);
    },
  });
  t.equal((await ask(source)).value, 40);
  t.equal((await ask(source)).value, 40);
  t.equal(looks, 1, 'looked at once');
});
