import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readArchive } from '../../ops/backup/read-archive.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { type BackupDocument, BackupSite, textOf } from '../../testkit/ops/backup-site.ts';
import { until } from '../../testkit/wait.ts';

const NAME = /^edge-health_\d{8}T\d{6}Z\.tar\.zst$/;

t.test('a full disk does not damage existing backups', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const site = new BackupSite(t, {}, join(disk.folder, 'data'));
  site.fill(60);
  site.write('metrics/m.csv', randomBytes(300_000));
  t.equal((await site.backup()).outcome.status, 'OK');
  const [good] = site.names;
  await t.test('the disk is full from the start', async (t) => {
    disk.fill();
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'CRITICAL');
    t.match(text, /not made: .* are free in .*; remove what is not needed there, or lower/);
    t.same(site.names, [good]);
    disk.free();
  });
  await t.test('the reserve is kept', async (t) => {
    site.configure({ reserve_megabytes: 100 });
    const { bavail, bsize } = statfsSync(disk.folder);
    const recordings = join(disk.folder, 'recordings');
    writeFileSync(recordings, Buffer.alloc(bavail * bsize - 500_000)); // Enough for the backup, but not for a tenth of the disk as well.
    t.match((await site.backup()).text, /CRITICAL .*stay free, ops\.backup\.reserve_megabytes/);
    t.match((await site.backup({ 'dry-run': true })).text, /would make .*\nCRITICAL .*not enough disk space: /);
    t.same(site.names, [good]);
    rmSync(recordings);
    site.configure({});
  });
  await t.test('the disk fills up while the backup is written', async (t) => {
    // More than expected from the last backup, and more than there is space for.
    for (let i = 0; i < 3; i += 1) site.write(`logs/l${i}.log`, randomBytes(270_000));
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'CRITICAL', text);
    t.match(text, /not made: the disk of .* is full|are free in/);
    t.same(site.names, [good], 'nothing is left behind');
    t.ok(await readArchive(join(site.backups, good as string)), 'the one before is whole');
  });
  await t.test('backups beyond the number to keep may be removed first', async (t) => {
    for (let i = 0; i < 3; i += 1) site.write(`logs/l${i}.log`, '');
    for (const day of [1, 2]) site.write(`backups/edge-health_2026030${day}T000000Z.tar.zst`, Buffer.alloc(450_000));
    site.configure({ keep: 1 });
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    t.equal(site.names.length, 1);
  });
});

t.test('a backup that is ended early leaves no incomplete archive under its final name', async (t) => {
  const site = new BackupSite(t, { journal_hours: 1 });
  site.fill(60);
  for (let i = 0; i < 4; i += 1) site.write(`metrics/m${i}.csv`, randomBytes(1_000_000));
  // The database is copied before the journal is read.
  const started = join(site.folder, 'started');
  const programs = join(site.folder, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'journalctl'), `#!/bin/sh\n: >'${started}'\nexec sleep 600\n`, { mode: 0o755 });
  const hanging = { ...process.env, PATH: `${programs}:${process.env['PATH']}` };
  const partials = (): string[] => (existsSync(site.backups) ? site.names.filter((name) => name.includes('partial')) : []);

  await t.test('ended by its timeout', async (t) => {
    const ending = new AbortController();
    site.signal = ending.signal;
    site.environment = hanging;
    const running = site.backup();
    await until('it reads the journal', () => existsSync(started));
    t.ok(partials().length > 0, 'something is half done');
    ending.abort(new Error('the timeout of 1 s has passed'));
    const { outcome, text } = await running;
    t.equal(outcome.status, 'CRITICAL');
    t.match(text, /stopped before it was complete, nothing was left behind \(the timeout of 1 s has passed\)/);
    t.same(site.names, []);
    site.signal = new AbortController().signal;
    rmSync(started);
  });
  await t.test('ended by kill -9', async (t) => {
    const kill = async (when: string, isTime: () => boolean): Promise<void> => {
      const child = site.start('backup_logs');
      const exited = once(child, 'exit');
      await until(when, () => isTime() || child.exitCode !== null);
      child.kill('SIGKILL');
      await exited;
      for (const name of site.names.filter((one) => NAME.test(one)))
        t.ok(await readArchive(join(site.backups, name)), 'what has its name is whole');
    };
    await kill('it reads the journal', () => existsSync(started));
    t.ok(partials().length > 0, 'something is half done');
    site.configure({});
    site.environment = process.env;
    // How far it has come when it is killed depends on the machine.
    for (const bytes of [0, 2_000_000]) {
      const isWriting = (name: string): boolean =>
        name.endsWith('.tar.zst.partial') && (statSync(join(site.backups, name), { throwIfNoEntry: false })?.size ?? 0) >= bytes;
      await kill(`${bytes} bytes of the archive are written`, () => partials().some(isWriting));
    }
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    t.same(
      site.names.filter((name) => !NAME.test(name)),
      [],
      'the next run cleans up',
    );
  });
});

t.test('of two backups at the same time at least one is made, and each reported one exists', async (t) => {
  const site = new BackupSite(t);
  site.fill(60);
  for (let i = 0; i < 4; i += 1) site.write(`metrics/m${i}.csv`, Buffer.alloc(1_000_000, i));
  const children = [site.start('backup_logs', '--json'), site.start('backup_logs', '--json')];
  const ended = await Promise.all(
    children.map(async (child) => ({ text: textOf(child.stdout), code: (await once(child, 'exit'))[0] as number })),
  );
  const texts = await Promise.all(ended.map(({ text }) => text));
  const made = texts.filter((text) => (JSON.parse(text) as BackupDocument).backup);
  t.ok(made.length >= 1, texts.join('\n'));
  t.equal(site.names.length, made.length, 'each that reports one has made one');
  for (const name of site.names) t.ok(await readArchive(join(site.backups, name)));
});
