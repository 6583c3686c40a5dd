import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { whyNotMountable } from '../../../testkit/machine/small-disk.ts';
import { dataFolderProblem, makeFolder, nearestExisting, prepareDataFolder, sandboxProblem } from './data-folder.ts';

const folder = temporaryFolder(t);

t.test('finds the nearest folder that exists', async (t) => {
  t.equal(nearestExisting(folder), folder);
  t.equal(nearestExisting(join(folder, 'a/b/c')), folder);
  t.notOk(existsSync(join(folder, 'a')));
});

t.test('creates a folder and its missing parents', async (t) => {
  const deep = join(folder, 'deep/er/est');
  makeFolder(deep, 0o700);
  t.equal(statSync(deep).mode & 0o777, 0o700);
  makeFolder(deep);
  t.equal(statSync(deep).mode & 0o777, 0o700, 'one that is there stays as it is');
  mkdirSync(join(folder, 'real'));
  symlinkSync(join(folder, 'real'), join(folder, 'link'));
  makeFolder(join(folder, 'link/below'));
  t.ok(statSync(join(folder, 'real/below')).isDirectory());
});

t.test('the problem of a folder that cannot be created has its level, its cause and the remedy', async (t) => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling'));
  for (const [path, reason] of [
    ['/proc/nope', "ENOENT: no such file or directory, mkdir '/proc/nope'; set storage.path to a folder on a disk"],
    [file, `${file} is not a folder; move it away, or set another storage.path`],
    [join(file, 'a/b'), `${file} is not a folder; move it away, or set another storage.path`],
    [join(folder, 'dangling'), `${join(folder, 'dangling')} is not a folder; move it away, or set another storage.path`],
  ] as const)
    t.same(prepareDataFolder(path, {}), { text: `${path} cannot be created: ${reason}`, isMissing: true });
  t.equal(prepareDataFolder(join(folder, 'data'), {}), null);
  t.ok(existsSync(join(folder, 'data')));
});

t.test('a read-only disk is reported', { skip: whyNotMountable() ?? false }, async (t) => {
  const program = `import(${JSON.stringify(import.meta.resolve('./data-folder.ts'))}).then(({ prepareDataFolder }) =>
      console.log(JSON.stringify([prepareDataFolder(process.argv[1], process.env), prepareDataFolder(process.argv[1] + '/data', process.env)])))`;
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  const inReadOnly = (environment: NodeJS.ProcessEnv): unknown => {
    const mounted = `mount -t tmpfs -o ro none "$0" && exec "$1" --disable-warning=ExperimentalWarning -e "$2" "$0"`;
    const { stderr, stdout } = spawnSync('unshare', ['--mount', 'sh', '-c', mounted, disk, process.execPath, program], {
      encoding: 'utf8',
      env: { ...process.env, ...environment },
    });
    t.equal(stderr, '');
    return JSON.parse(stdout);
  };
  const data = join(disk, 'data');
  t.same(inReadOnly({ STATE_DIRECTORY: '/var/lib/edge-health' }), [
    { text: sandboxProblem(disk), isMissing: false },
    { text: `${data} cannot be created: ${sandboxProblem(data)}`, isMissing: true },
  ]);
  const plain = `the file system of ${disk} is read-only; mount it for writing, or set another storage.path`;
  t.same(inReadOnly({ STATE_DIRECTORY: undefined }), [
    { text: plain, isMissing: false },
    { text: `${data} cannot be created: ${plain}`, isMissing: true },
  ]);
});

t.test('the sandbox of a unit is changed with a drop-in', async (t) => {
  const there = join(folder, 'there');
  mkdirSync(there);
  t.equal(
    sandboxProblem(there),
    `the sandbox of the units does not allow writing to ${there}; run sudo systemctl edit edge-health edge-health-ops, ` +
      `add ReadWritePaths=-${there} under [Service] of each, then sudo systemctl restart edge-health edge-health-ops`,
  );
  t.match(sandboxProblem(join(folder, 'not-there')), /; run sudo install -d -o edge-health \S+\/not-there, then sudo systemctl edit /);
  const home = sandboxProblem('/home/robot/data');
  t.match(home, 'because it hides home folders; use another folder, or run');
  t.match(home, 'add ProtectHome=read-only and ReadWritePaths=-/home/robot/data under [Service]');
});

t.test('whether a folder can be used is checked without creating it', async (t) => {
  t.equal(dataFolderProblem(join(folder, 'new/data')), null);
  t.notOk(existsSync(join(folder, 'new')));
  const file = join(folder, 'a-file');
  writeFileSync(file, '');
  t.match(dataFolderProblem(join(file, 'data')), /is not a folder/);
});
