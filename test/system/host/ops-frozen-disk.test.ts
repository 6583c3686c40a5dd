import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checkAt, NOWHERE, siteAt } from '../../../testkit/ops/health-site.ts';

function run(program: string, ...parameters: readonly string[]): void {
  const { status, stderr } = spawnSync(program, parameters, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program}: ${stderr}`);
}

t.test('health_check reports a data folder that hangs, and recovers', async (t) => {
  const site = siteAt(t, NOWHERE);
  mkdirSync(site.dataFolder);
  const image = join(site.folder, 'disk');
  run('truncate', '-s', '16M', image);
  run('mkfs.ext4', '-q', image);
  run('mount', '-o', 'loop', image, site.dataFolder);
  t.teardown(() => {
    spawnSync('fsfreeze', ['-u', site.dataFolder]);
    run('umount', site.dataFolder);
  });
  t.match((await checkAt(site)).of('history'), { status: 'OK' });
  run('fsfreeze', '-f', site.dataFolder);
  const frozen = await checkAt(site);
  t.match(frozen.of('history'), { status: 'WARNING', message: /could not be saved/ });
  t.match(frozen.of(`disk ${site.dataFolder}`), { status: 'OK' }, 'it can still be read');
  run('fsfreeze', '-u', site.dataFolder);
  t.match((await checkAt(site)).of('history'), { status: 'OK' });
});
