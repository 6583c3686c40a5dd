import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checkAt, logOf, NOWHERE, place, siteAt } from './support/health-context.ts';

const isRoot = process.getuid?.() === 0;
const hasLoopDevices = isRoot && spawnSync('losetup', ['--find']).status === 0;

t.test('a full disk, and a torn last line', { skip: !isRoot && 'needs root, to mount a small tmpfs' }, async (t) => {
  const folder = place(t);
  const site = siteAt(folder, NOWHERE);
  mkdirSync(site.dataFolder);
  t.equal(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', site.dataFolder]).status, 0);
  t.teardown(() => spawnSync('umount', [site.dataFolder]));
  const disk = `disk ${site.dataFolder}`;
  const check = { check: { min_free_megabytes: 1 } };
  t.match((await checkAt(site, check)).of(disk), { status: 'CRITICAL', message: /0\.0 GB free, 0\.0 GB are needed/ });
  const log = join(site.dataFolder, 'logs', readdirSync(join(site.dataFolder, 'logs'))[0] as string);
  appendFileSync(log, `${'-'.repeat(4096 - (statSync(log).size % 4096) - 20)}\n`); // What is left of its block is less than a line.
  const whole = logOf(site);
  const ballast = join(site.dataFolder, 'ballast');
  for (let size = 65_536; size >= 1; size = Math.floor(size / 2)) {
    try {
      for (;;) appendFileSync(ballast, Buffer.alloc(size));
    } catch {
      // No room for as much.
    }
  }
  t.match((await checkAt(site, check)).of('history'), { status: 'WARNING', remedy: /is full/ });
  t.match(logOf(site), /^(?:.*\n)*$/, 'not half a line');
  t.equal(logOf(site), whole);

  rmSync(ballast);
  appendFileSync(log, '2026-03-04T05:06:07.089Z CRIT');
  t.match((await checkAt(site, check)).of('history'), { status: 'OK' });
  t.match(logOf(site).slice(whole.length), /^(?:\d{4}-\S+Z .*\n)+$/);
  t.notMatch(logOf(site), /CRIT$|CRIT\d/m, 'what was torn is gone');
});

t.test(
  'a data folder that hangs, and heals',
  { skip: !hasLoopDevices && 'needs root and loop devices, for a disk to freeze' },
  async (t) => {
    const folder = place(t);
    const site = siteAt(folder, NOWHERE);
    mkdirSync(site.dataFolder);
    const image = join(folder, 'disk');
    writeFileSync(image, '');
    const sh = (script: string): number | null => spawnSync('sh', ['-c', script]).status;
    t.equal(sh(`truncate -s 16M ${image} && mkfs.ext4 -q ${image} && mount -o loop ${image} ${site.dataFolder}`), 0);
    t.teardown(() => sh(`fsfreeze -u ${site.dataFolder}; umount ${site.dataFolder}`));
    t.match((await checkAt(site)).of('history'), { status: 'OK' });
    t.equal(sh(`fsfreeze -f ${site.dataFolder}`), 0);
    const frozen = await checkAt(site);
    t.match(frozen.of('history'), { status: 'WARNING', message: /could not be written down/ });
    t.match(frozen.of(`disk ${site.dataFolder}`), { status: 'OK' }, 'reading goes on');
    t.equal(sh(`fsfreeze -u ${site.dataFolder}`), 0);
    const { signal } = new AbortController();
    const healed = await checkAt(site, { signal });
    t.match(healed.of('history'), { status: 'OK' });
  },
);

t.test('old history goes, whatever the clock says', async (t) => {
  const site = siteAt(place(t), NOWHERE);
  mkdirSync(join(site.dataFolder, 'logs'), { recursive: true });
  for (let day = 1; day <= 12; day += 1) {
    const file = join(site.dataFolder, 'logs', `health_check_2020-01-${String(day).padStart(2, '0')}.log`);
    writeFileSync(file, 'x\n');
    utimesSync(file, 0, 0);
  }
  writeFileSync(join(site.dataFolder, 'logs/other.log'), '');
  await checkAt(site, { more: { keep_days: 8 } });
  const left = readdirSync(join(site.dataFolder, 'logs')).sort();
  t.same(
    left.slice(0, 7),
    [6, 7, 8, 9, 10, 11, 12].map((day) => `health_check_2020-01-${String(day).padStart(2, '0')}.log`),
  );
  t.equal(left.length, 9, 'today, and what is not ours');
});
