import { appendFileSync, mkdirSync, readdirSync, statfsSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { checkAt, logOf, NOWHERE, siteAt } from '../../testkit/ops/health-site.ts';

t.test('a full disk is reported, and a torn last line is removed', { skip: whyNotMountable() ?? false }, async (t) => {
  const small = new SmallDisk(t);
  const site = siteAt(t, NOWHERE, temporaryFolder(t), small.folder);
  const disk = `disk ${site.dataFolder}`;
  const check = { check: { min_free_megabytes: 10 } };
  t.match((await checkAt(site, check)).of(disk), { status: 'OK', message: '2 MB of 2 MB free' });
  const log = join(site.dataFolder, 'logs', readdirSync(join(site.dataFolder, 'logs'))[0] as string);
  const block = statfsSync(small.folder).bsize;
  appendFileSync(log, `${'-'.repeat(block - (statSync(log).size % block) - 20)}\n`); // The rest of its block is shorter than a line.
  const whole = logOf(site);
  small.fill();
  const full = await checkAt(site, check);
  t.match(full.of(disk), { status: 'CRITICAL', message: /^0 MB of 2 MB free/ });
  t.match(full.of('history'), { status: 'WARNING', remedy: /is full/ });
  t.match(logOf(site), /^(?:.*\n)*$/, 'not half a line');
  t.equal(logOf(site), whole);

  small.free();
  appendFileSync(log, '2026-03-04T05:06:07.089Z CRIT');
  t.match((await checkAt(site, check)).of('history'), { status: 'OK' });
  t.match(logOf(site).slice(whole.length), /^(?:\d{4}-\S+Z .*\n)+$/);
  t.notMatch(logOf(site), /CRIT$|CRIT\d/m, 'what was torn is gone');
});

t.test('old logs are removed whatever the clock shows', async (t) => {
  const site = siteAt(t, NOWHERE);
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
