import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { DEFAULT_CONFIG } from '../config/schema.ts';
import { dataPath, dataPathProblem } from './data-path.ts';

const folder = temporaryFolder(t);

t.test('the data folder is the same for the units and for a person in any working directory', async (t) => {
  const checkout = { folder: '/home/me/edge-health', dataFolder: '/home/me/edge-health/data' };
  const pack = { folder: '/var/lib/edge-health', dataFolder: '/var/lib/edge-health' };
  const unit = { STATE_DIRECTORY: '/var/lib/edge-health' };
  const of = (path: string | null, file: string, environment: NodeJS.ProcessEnv, installed: typeof pack): string =>
    dataPath({ ...DEFAULT_CONFIG, storage: { ...DEFAULT_CONFIG.storage, path } }, file, environment, installed);
  for (const [path, file, installed, expected] of [
    [null, '/etc/edge-health/x.yaml', pack, '/var/lib/edge-health'],
    ['data/x', '/etc/edge-health/x.yaml', pack, '/var/lib/edge-health/data/x'],
    ['/srv/x', '/etc/edge-health/x.yaml', pack, '/srv/x'],
    ['data/x', '/srv/x.yaml', pack, '/var/lib/edge-health/data/x'],
  ] as const) {
    t.equal(of(path, file, unit, installed), expected, `${path} of ${file} for a unit`);
    t.equal(of(path, file, {}, installed), expected, `${path} of ${file} for a person`);
  }
  t.equal(of('data/x', '/etc/edge-health/x.yaml', {}, checkout), '/var/lib/edge-health/data/x');
  t.equal(of('data/x', '/home/me/x.yaml', {}, checkout), '/home/me/edge-health/data/x');
  t.equal(of(null, '/home/me/x.yaml', {}, checkout), '/home/me/edge-health/data');
  t.equal(of('data/x', '/home/me/x.yaml', { STATE_DIRECTORY: '/run/me:/b' }, checkout), '/run/me/data/x');
});

t.test('a folder that can be made is no problem', async (t) => {
  t.equal(dataPathProblem(join(folder, 'not/yet'), {}), null);
});

t.test('a disk that the unit may only read: the line that is missing', { skip: whyNotMountable() ?? false }, async (t) => {
  const program = `import(${JSON.stringify(import.meta.resolve('./data-path.ts'))}).then(({ dataPathProblem }) =>
      console.log(dataPathProblem(process.argv[1], process.env)))`;
  const inReadOnly = (environment: NodeJS.ProcessEnv): string => {
    const mounted = `mount -t tmpfs -o ro none "$0" && exec "$1" --disable-warning=ExperimentalWarning -e "$2" "$0/data"`;
    const { stderr, stdout } = spawnSync('unshare', ['--mount', 'sh', '-c', mounted, folder, process.execPath, program], {
      encoding: 'utf8',
      env: { ...process.env, ...environment },
    });
    return stdout + stderr;
  };
  t.match(
    inReadOnly({ STATE_DIRECTORY: '/var/lib/edge-health' }),
    `may not write to ${folder}: systemctl edit the unit, and add under [Service] the line ReadWritePaths=${folder}`,
  );
  t.match(inReadOnly({}), /^null$/m, 'outside of a unit the store says what is wrong');
});
