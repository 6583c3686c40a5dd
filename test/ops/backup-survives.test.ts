import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import t from 'tap';
import { readArchive } from '../../ops/backup/read-archive.ts';
import { type BackupDocument, BackupSite, textOf } from '../../testkit/ops/backup-site.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/small-disk.ts';

const NAME = /^edge-health_\d{8}T\d{6}Z\.tar\.zst$/;

t.test('a full disk', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const site = new BackupSite(t, {}, join(disk.folder, 'data'));
  site.fill(60);
  site.write('metrics/m.csv', Buffer.from(Array.from({ length: 300_000 }, () => Math.random() * 256)));
  t.equal((await site.backup()).outcome.status, 'OK');
  const [good] = site.names;
  await t.test('no room from the start', async (t) => {
    disk.fill();
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'CRITICAL');
    t.match(text, /not made: .* are free in .*; remove what is not needed there, or lower/);
    t.same(site.names, [good]);
    disk.free();
  });
  await t.test('the reserve is kept', async (t) => {
    site.configure({ reserve_megabytes: 100 });
    t.match((await site.backup()).text, /CRITICAL .*stay free, ops\.backup\.reserve_megabytes/);
    t.match((await site.backup({ 'dry-run': true })).text, /would make .*\nCRITICAL .*there is no room: /);
    t.same(site.names, [good]);
    site.configure({});
  });
  await t.test('it fills up while it is written', async (t) => {
    // More than the last one let expect, and more than there is room for.
    for (let i = 0; i < 3; i += 1) site.write(`logs/l${i}.log`, Buffer.from(Array.from({ length: 270_000 }, () => Math.random() * 256)));
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'CRITICAL', text);
    t.match(text, /not made: the disk of .* is full|are free in/);
    t.same(site.names, [good], 'nothing is left behind');
    t.ok(await readArchive(join(site.backups, good as string)), 'the one before is whole');
  });
  await t.test('what is beyond the number to keep may go first', async (t) => {
    for (let i = 0; i < 3; i += 1) site.write(`logs/l${i}.log`, '');
    for (const day of [1, 2]) site.write(`backups/edge-health_2026030${day}T000000Z.tar.zst`, Buffer.alloc(450_000));
    site.configure({ keep: 1 });
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    t.equal(site.names.length, 1);
  });
});

t.test('ended early', async (t) => {
  const site = new BackupSite(t);
  site.fill(60);
  for (let i = 0; i < 20; i += 1) site.write(`metrics/m${i}.csv`, Buffer.alloc(2_000_000, i));
  await t.test('by its deadline', async (t) => {
    const ending = new AbortController();
    site.signal = ending.signal;
    setTimeout(() => ending.abort(new Error('the deadline of 1 s has passed')), 60);
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'CRITICAL');
    t.match(text, /ended before it was done, nothing was kept of it \(the deadline of 1 s has passed\)/);
    t.same(site.names, []);
    site.signal = new AbortController().signal;
  });
  await t.test('by kill -9, at any moment', async (t) => {
    let begun = 0;
    for (let run = 0; run < 8; run += 1) {
      const child = site.start('backup_logs');
      const exited = once(child, 'exit');
      // From when it has begun to write, further on each time.
      for (let waited = 0; waited < 300 && !(existsSync(site.backups) && site.names.some((name) => name.includes('partial'))); waited += 1)
        await later(10);
      await later(run * 40);
      child.kill('SIGKILL');
      await exited;
      begun += site.names.filter((name) => name.includes('partial')).length > 0 ? 1 : 0;
      for (const name of site.names.filter((one) => NAME.test(one)))
        t.ok(await readArchive(join(site.backups, name)), 'what has its name is whole');
    }
    t.ok(begun > 2, `${begun} runs left something half done`);
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    t.same(
      site.names.filter((name) => !NAME.test(name)),
      [],
      'the next run cleans up',
    );
  });
});

t.test('two at once: one is made', async (t) => {
  const site = new BackupSite(t);
  site.fill(600);
  for (let i = 0; i < 10; i += 1) site.write(`metrics/m${i}.csv`, Buffer.alloc(1_000_000, i));
  const children = [site.start('backup_logs', '--json'), site.start('backup_logs', '--json')];
  const ended = await Promise.all(
    children.map(async (child) => ({ text: textOf(child.stdout), code: (await once(child, 'exit'))[0] as number })),
  );
  const texts = await Promise.all(ended.map(({ text }) => text));
  const made = texts.filter((text) => (JSON.parse(text) as BackupDocument).backup);
  t.ok(made.length >= 1, texts.join('\n'));
  t.equal(site.names.length, made.length, 'each that says so has made one');
  for (const name of site.names) t.ok(await readArchive(join(site.backups, name)));
});
