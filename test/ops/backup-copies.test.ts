import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { hostFolder } from '../../ops/backup/copies.ts';
import { readArchive } from '../../ops/backup/read-archive.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { copiesAsExpected, siteCopyingTo } from '../../testkit/ops/backup-copies.ts';
import { until } from '../../testkit/wait.ts';

// Copies by rsync and to S3 are tested in test/system/ops/backup-copies.test.ts.

const HOST = hostFolder();

t.test('backups are copied to a folder', async (t) => {
  const target = temporaryFolder(t);
  const site = siteCopyingTo(t, [target]);
  const folder = join(target, HOST);
  mkdirSync(folder);
  writeFileSync(join(folder, 'edge-health_20260101T000000Z.tar.zst.partial'), 'left by an interrupted run');
  writeFileSync(join(folder, 'notes.txt'), 'of another program');
  const backups = (): string[] =>
    readdirSync(folder)
      .filter((name) => name !== 'notes.txt')
      .sort();
  await copiesAsExpected(t, site, backups, (name) => writeFileSync(join(folder, name), 'cut'));
  for (const name of backups()) t.ok(await readArchive(join(folder, name)));
  t.ok(existsSync(join(folder, 'notes.txt')), 'files of others stay');
});

t.test('each target fails independently of the others', async (t) => {
  const good = temporaryFolder(t);
  const targets = ['/nowhere/at/all', 'relative/folder', 'rsync://127.0.0.1:1/backups', 's3://', good];
  const site = siteCopyingTo(t, targets, { s3_endpoint: 'http://127.0.0.1:1' });
  const { outcome, text, document } = await site.backup();
  t.equal(outcome.status, 'WARNING');
  t.same(
    document.copies.map(({ status }) => status),
    ['WARNING', 'WARNING', 'WARNING', 'WARNING', 'OK'],
  );
  t.match(text, /^OK {8}backup: /);
  t.match(text, /WARNING {3}copy to \/nowhere\/at\/all: folder .* does not exist; create it, or mount its disk.*tries again/);
  t.match(text, /copy to relative\/folder: not a target; use an absolute folder/);
  t.match(text, /copy to rsync:.*: rsync (failed|is not installed)/);
  t.match(text, /copy to s3:\/\/: the bucket is missing/);
  t.same(readdirSync(join(good, HOST)), site.names);
  await t.test('a program that is not installed is reported', async (t) => {
    site.configure({ copy_to: ['rsync://127.0.0.1/x', 's3://bucket'] });
    const folder = join(site.folder, 'bin');
    mkdirSync(folder);
    site.environment = { PATH: folder };
    const { text: without } = await site.backup();
    t.match(without, /rsync is not installed: apt install rsync/);
    t.match(without, /rclone is not installed: apt install rclone/);
  });
});

t.test('a full disk is reported', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const site = siteCopyingTo(t, [disk.folder]);
  disk.fill();
  t.match((await site.backup()).text, /WARNING .*(are free in|is full)/);
  disk.free();
  const { document } = await site.backup();
  t.equal(document.copies[0]?.copied.length, 2);
});

t.test('copying is stopped by the timeout', async (t) => {
  const site = siteCopyingTo(t, ['s3://robots/x', temporaryFolder(t)]);
  const bin = join(site.folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'rclone'), `#!/bin/sh\necho $$ > '${bin}/pid'\nexec sleep 600\n`);
  chmodSync(join(bin, 'rclone'), 0o755);
  site.environment = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  const ending = new AbortController();
  site.signal = ending.signal;
  const running = site.backup();
  const pid = await until(
    'the copying began',
    () => existsSync(join(bin, 'pid')) && /^\d+\n/.exec(readFileSync(join(bin, 'pid'), 'utf8'))?.[0].trim(),
  );
  ending.abort(new Error('the timeout has passed'));
  const { outcome, text } = await running;
  t.equal(outcome.status, 'WARNING');
  t.match(text, /OK .*backup: [\s\S]*copy to s3:\/\/robots\/x: stopped before it was complete .*tries again/);
  t.equal(site.names.length, 1, 'the backup itself is there');
  await until('the program is gone', () => !existsSync(`/proc/${pid}`));
});
