import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { dataPathProblem } from './data-path.ts';

const folder = temporaryFolder(t);

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
