import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { type Blocks, DiskSource, diskPercent, type Statfs } from './disk.ts';
import { Probe } from './probe.ts';

function ask(source: DiskSource): Promise<{ problem: string | null; value: number }> {
  return new Promise((resolve) => source.read((error, value) => resolve({ problem: error?.message ?? null, value })));
}

/** Answers for the paths given, in a later turn as the real one does; every path asked is noted. */
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

t.test('used of used and available', async (t) => {
  t.equal(diskPercent({ blocks: 1000, bfree: 1000, bavail: 1000 }), 0);
  t.equal(diskPercent({ blocks: 1000, bfree: 250, bavail: 250 }), 75);
  t.equal(diskPercent({ blocks: 1000, bfree: 0, bavail: 0 }), 100);
});

t.test('the reserve for root is neither used nor available', async (t) => {
  t.equal(diskPercent({ blocks: 1000, bfree: 550, bavail: 450 }), 50);
  t.equal(diskPercent({ blocks: 1000, bfree: 50, bavail: 0 }), 100, 'users can write nothing');
});

t.test('numbers that cannot be true are refused', async (t) => {
  const impossible: Blocks[] = [
    { blocks: 0, bfree: 0, bavail: 0 },
    { blocks: 1000, bfree: 1001, bavail: 900 },
    { blocks: 1000, bfree: 100, bavail: -1 },
    { blocks: 1000, bfree: 1000, bavail: 0 },
  ];
  for (const blocks of impossible) t.throws(() => diskPercent(blocks), { name: 'ImplausibleReading' }, JSON.stringify(blocks));
});

t.test('the same as df shows, which rounds up to a whole percent', async (t) => {
  for (const path of ['/', temporaryFolder(t)]) {
    // What others write in between can move the number by a hair across a whole percent: then it is asked again.
    let [shown, value] = [Number.NaN, Number.NaN];
    for (let attempt = 0; attempt < 5 && Math.ceil(value) !== shown; attempt += 1) {
      const df = execFileSync('df', ['--output=pcent', path], { encoding: 'utf8' });
      shown = Number(/(\d+)%/.exec(df)?.[1]);
      value = (await ask(new DiskSource([path]))).value;
    }
    t.equal(Math.ceil(value), shown, `${path}: ${value} %`);
  }
});

t.test('the fullest path counts, wherever it stands', async (t) => {
  const known = { '/': percentUsed(40), '/data': percentUsed(90), '/boot': percentUsed(10) };
  for (const paths of [
    ['/', '/data', '/boot'],
    ['/data', '/boot', '/'],
    ['/boot', '/', '/data'],
  ]) {
    const asked: string[] = [];
    t.same(await ask(new DiskSource(paths, statfsOf(known, asked))), { problem: null, value: 90 });
    t.same(asked, paths, 'each is asked once');
  }
  t.same(await ask(new DiskSource(['/boot'], statfsOf(known))), { problem: null, value: 10 });
});

t.test('an empty file system is 0 %, which is a value', async (t) => {
  t.same(await ask(new DiskSource(['/new'], statfsOf({ '/new': percentUsed(0) }))), { problem: null, value: 0 });
});

t.test('one path that cannot be read makes the metric unavailable, and is named', async (t) => {
  const source = new DiskSource(['/', '/gone', '/data'], statfsOf({ '/': percentUsed(40), '/data': percentUsed(90) }));
  const { problem } = await ask(source);
  t.match(problem, /^\/gone: ENOENT/);
});

t.test('a path with impossible numbers is named too', async (t) => {
  const source = new DiskSource(['/', '/odd'], statfsOf({ '/': percentUsed(40), '/odd': { blocks: 0, bfree: 0, bavail: 0 } }));
  t.match((await ask(source)).problem, /^\/odd: 0 blocks/);
});

t.test('a real path that does not exist is named with its error', async (t) => {
  const path = `${temporaryFolder(t)}/not-there`;
  const { problem } = await ask(new DiskSource(['/', path]));
  t.ok(problem?.startsWith(`${path}: ENOENT`), problem ?? 'no problem');
});

t.test('a mount that hangs makes the metric unavailable, is not asked again meanwhile, and comes back', async (t) => {
  let nowSeconds = 100;
  const held: (() => void)[] = [];
  const hanging: Statfs = (path, callback) => {
    if (path === '/nfs') held.push(() => callback(null, percentUsed(70)));
    else callback(null, percentUsed(40));
  };
  const source = new DiskSource(['/', '/nfs', '/data'], hanging, (_path, callback) => callback(false));
  const probe = new Probe(source, () => nowSeconds);
  let settled = 0;
  t.equal(
    probe.start(() => {
      settled += 1;
    }),
    true,
  );
  nowSeconds += 1;
  t.equal(probe.reading(nowSeconds), null);
  t.match(probe.state(nowSeconds).problem, /no answer for 1\.0 s/);
  t.equal(
    probe.start(() => t.fail('nothing was started')),
    false,
  );
  t.equal(held.length, 1, 'one thread is held, not one a slot');
  held[0]?.();
  t.equal(settled, 1);
  t.equal(probe.reading(nowSeconds), 70);
});

t.test('a path that the unit hides is unavailable, not the empty file system laid over it', async (t) => {
  const folder = temporaryFolder(t);
  const hidden = join(folder, 'home');
  mkdirSync(hidden, { mode: 0 });
  const { problem } = await ask(new DiskSource([folder, hidden]));
  chmodSync(hidden, 0o700); // Else only root could remove it.
  t.match(problem, `${hidden} is hidden from the service (ProtectHome=`);
  let looks = 0;
  const source = new DiskSource([folder], statfsOf({ [folder]: percentUsed(40) }), (_path, callback) => {
    looks += 1;
    callback(false);
  });
  t.equal((await ask(source)).value, 40);
  t.equal((await ask(source)).value, 40);
  t.equal(looks, 1, 'looked at once');
});
