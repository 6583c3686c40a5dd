import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { whyNotMountable } from '../../../testkit/machine/small-disk.ts';
import { makeFolder, nearestExisting, prepareDataFolder } from './data-folder.ts';

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
  const ofUnit = `the unit may not write to ${disk}: systemctl edit the unit, and add under [Service] the line ReadWritePaths=${disk}`;
  const plain = `the file system of ${disk} is read-only; mount it for writing, or set another storage.path`;
  const both = (text: string) => [
    { text, isMissing: false },
    { text: `${join(disk, 'data')} cannot be created: ${text}`, isMissing: true },
  ];
  t.same(inReadOnly({ STATE_DIRECTORY: '/var/lib/edge-health' }), both(ofUnit));
  t.same(inReadOnly({ STATE_DIRECTORY: undefined }), both(plain));
});
