import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { hostFolder } from '../../../ops/backup/copies.ts';
import { readArchive } from '../../../ops/backup/read-archive.ts';
import { BackupSite } from '../../../testkit/ops/backup-site.ts';
import { SmallDisk, whyNotMountable } from '../../../testkit/small-disk.ts';
import { freePort } from '../../ops/support/restore-unit.ts';

const HOST = hostFolder();
const KEY = 'S3RVER';
const SECRET = 'S3RVER';

function missing(program: string): string | false {
  return spawnSync(program, ['--version']).status === 0 ? false : `apt install ${program}`;
}

/** What every kind of target has to do; `there` lists the names it has, `damage` cuts one of them short. */
async function behaves(t: Test, site: BackupSite, there: () => string[], damage: (name: string) => void): Promise<void> {
  const days = ['2026-03-01', '2026-03-02', '2026-03-03', '2026-03-04', '2026-03-05'];
  const at = (day: number): void => {
    site.nowMs = () => Date.parse(`${days[day]}T00:00:00Z`);
  };
  at(0);
  const first = await site.backup();
  t.equal(first.outcome.status, 'OK', first.text);
  t.same(first.document.copies[0]?.copied, [first.document.backup?.file]);
  t.same(there(), site.names);
  at(1);
  const second = await site.backup();
  t.same(second.document.copies[0]?.copied, [second.document.backup?.file], 'only what is missing');
  damage(site.names[0] as string);
  at(2);
  const third = await site.backup();
  t.same(third.document.copies[0]?.copied.length, 2, 'one that is not whole is copied again');
  at(3);
  const fourth = await site.backup();
  t.same(fourth.document.copies[0]?.pruned, [first.document.backup?.file], 'as many are kept there');
  t.same(there(), site.names);
  // A new disk in this machine: what is left elsewhere is not given up for it at once.
  rmSync(site.backups, { recursive: true });
  at(4);
  const fifth = await site.backup();
  t.equal(fifth.outcome.status, 'OK', fifth.text);
  t.equal(there().length, 3);
  t.same(there().slice(0, 2), [third.document.backup?.file, fourth.document.backup?.file]);
}

function filled(t: Test, copyTo: readonly string[], more: Readonly<Record<string, unknown>> = {}): BackupSite {
  const site = new BackupSite(t, { keep: 3, copy_to: copyTo, ...more });
  site.fill(60);
  return site;
}

t.test('a folder', async (t) => {
  const target = mkdtempSync('/tmp/edge-health-copies-');
  t.teardown(() => rmSync(target, { recursive: true, force: true }));
  const site = filled(t, [target]);
  const folder = join(target, HOST);
  mkdirSync(folder);
  writeFileSync(join(folder, 'edge-health_20260101T000000Z.tar.zst.partial'), 'left by an interrupted run');
  writeFileSync(join(folder, 'notes.txt'), 'of somebody else');
  const backups = (): string[] =>
    readdirSync(folder)
      .filter((name) => name !== 'notes.txt')
      .sort();
  await behaves(t, site, backups, (name) => writeFileSync(join(folder, name), 'cut'));
  for (const name of backups()) t.ok(await readArchive(join(folder, name)));
  t.ok(existsSync(join(folder, 'notes.txt')), 'what is not ours stays');
});

t.test('targets fail each on its own', async (t) => {
  const good = mkdtempSync('/tmp/edge-health-copies-');
  t.teardown(() => rmSync(good, { recursive: true, force: true }));
  const port = await freePort();
  const targets = ['/nowhere/at/all', 'relative/folder', `rsync://127.0.0.1:${port}/backups`, 's3://', good];
  const site = filled(t, targets, { s3_endpoint: `http://127.0.0.1:${port}` });
  const { outcome, text, document } = await site.backup();
  t.equal(outcome.status, 'WARNING');
  t.same(
    document.copies.map(({ status }) => status),
    ['WARNING', 'WARNING', 'WARNING', 'WARNING', 'OK'],
  );
  t.match(text, /^OK {8}backup: /);
  t.match(text, /WARNING {3}copy to \/nowhere\/at\/all: there is no folder .*make it, or mount its disk.*tried again/);
  t.match(text, /copy to relative\/folder: it is no target: write a folder/);
  t.match(text, /copy to rsync:.*: rsync (failed|is not installed)/);
  t.match(text, /copy to s3:\/\/: the bucket is missing/);
  t.same(readdirSync(join(good, HOST)), site.names);
  await t.test('a program that is not installed', async (t) => {
    site.configure({ copy_to: ['rsync://127.0.0.1/x', 's3://bucket'] });
    const folder = join(site.folder, 'bin');
    mkdirSync(folder);
    site.environment = { PATH: folder };
    const { text: without } = await site.backup();
    t.match(without, /rsync is not installed: apt install rsync/);
    t.match(without, /rclone is not installed: apt install rclone/);
  });
});

t.test('a disk that is not mounted', { skip: whyNotMountable() ?? false }, async (t) => {
  const target = mkdtempSync('/mnt/edge-health-test-');
  t.teardown(() => rmdirSync(target));
  const site = filled(t, [target]);
  t.match((await site.backup()).text, new RegExp(`WARNING .*no disk is mounted at ${target}; mount it`));
  t.same(readdirSync(target), [], 'the disk below is not filled');
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', target]);
  try {
    const { outcome, text, document } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    t.equal(document.copies[0]?.copied.length, 2, 'with what it missed');
  } finally {
    spawnSync('umount', ['--lazy', target]);
  }
});

t.test('a full disk', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const site = filled(t, [disk.folder]);
  disk.fill();
  t.match((await site.backup()).text, /WARNING .*(are free in|is full)/);
  disk.free();
  const { document } = await site.backup();
  t.equal(document.copies[0]?.copied.length, 2);
});

t.test('rsync', { skip: missing('rsync') }, async (t) => {
  const folder = mkdtempSync('/tmp/edge-health-rsync-');
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const module = join(folder, 'module');
  mkdirSync(module);
  const there = (): string[] => (existsSync(join(module, 'robots', HOST)) ? readdirSync(join(module, 'robots', HOST)).sort() : []);
  const damage = (name: string): void => writeFileSync(join(module, 'robots', HOST, name), 'cut');

  await t.test("a daemon's module", async (t) => {
    const port = await freePort();
    const lines = [
      'use chroot = no',
      `pid file = ${folder}/pid`,
      `uid = ${process.getuid?.()}`,
      `gid = ${process.getgid?.()}`,
      '[backups]',
      `path = ${module}`,
      'read only = no',
      '',
    ];
    writeFileSync(join(folder, 'rsyncd.conf'), lines.join('\n'));
    const daemon = spawn('rsync', ['--daemon', '--no-detach', `--port=${port}`, '--address=127.0.0.1', `--config=${folder}/rsyncd.conf`], {
      stdio: 'ignore',
    });
    t.teardown(() => daemon.kill());
    const url = `rsync://127.0.0.1:${port}/backups`;
    for (let tries = 0; tries < 100 && spawnSync('rsync', [url]).status !== 0; tries += 1) await later(50);
    const site = filled(t, [`${url}/robots/`]);
    await behaves(t, site, there, damage);
    for (const name of there()) {
      t.ok(await readArchive(join(module, 'robots', HOST, name)));
      t.equal(statSync(join(module, 'robots', HOST, name)).mode & 0o777, 0o640);
    }
  });

  await t.test('user@host:path, through a remote shell', async (t) => {
    rmSync(join(module, 'robots'), { recursive: true });
    // Stands for ssh: runs the command that rsync wants to have run on the other machine, on this one.
    const shell = join(folder, 'shell');
    writeFileSync(shell, `#!/bin/sh\necho "$@" >> ${folder}/said\nwhile [ "$1" != rsync ]; do shift; done\nexec "$@"\n`);
    chmodSync(shell, 0o755);
    const site = filled(t, [`backup@robot-host:${module}/robots`]);
    site.environment = { ...process.env, RSYNC_RSH: shell };
    await behaves(t, site, there, damage);
    t.match(readFileSync(join(folder, 'said'), 'utf8'), /-l backup robot-host rsync --server/);
  });
});

t.test('S3', { skip: missing('rclone') }, async (t) => {
  const S3rver = createRequire(import.meta.url)('s3rver') as new (
    options: object,
  ) => {
    run(): Promise<AddressInfo>;
    close(): Promise<void>;
  };
  const folder = mkdtempSync('/tmp/edge-health-s3-');
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory: join(folder, 'store'),
    configureBuckets: [{ name: 'robots', configs: [] }],
  });
  const { port } = await server.run();
  t.teardown(() => server.close());
  const credentials = join(folder, 'credentials');
  const write = (key: string, secret: string): void => {
    writeFileSync(credentials, `[default]\naws_access_key_id = ${key}\naws_secret_access_key = ${secret}\n`);
  };
  write(KEY, SECRET);
  const settings = { s3_endpoint: `http://127.0.0.1:${port}`, s3_region: 'us-east-1', s3_credentials_file: credentials };
  const site = filled(t, ['s3://robots/lab/one'], settings);
  site.environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('AWS_')));
  const stored = join(folder, 'store/robots/lab/one', HOST);
  const there = (): string[] =>
    (existsSync(stored) ? readdirSync(stored) : [])
      .filter((name) => name.endsWith('_object'))
      .map((name) => name.replace('._S3rver_object', ''))
      .sort();
  await behaves(t, site, there, (name) => writeFileSync(join(stored, `${name}._S3rver_object`), 'cut'));
  for (const name of there()) t.ok(await readArchive(join(stored, `${name}._S3rver_object`)), 'what arrived is whole');

  await t.test('a wrong key; the secret is told nobody', async (t) => {
    write('NOBODY', 'wrong-but-secret-all-the-same');
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'WARNING');
    t.match(text, /copy to s3:\/\/robots\/lab\/one: rclone failed .*(InvalidAccessKeyId|Forbidden|403)/);
    t.notMatch(text, /wrong-but-secret/);
  });
  await t.test('a file of credentials that is not there', async (t) => {
    rmSync(credentials);
    t.match((await site.backup()).text, /copy to .*credentials \(ops\.backup\.s3_credentials_file\) cannot be read: ENOENT/);
  });
  await t.test('credentials of the environment, and never on a command line', async (t) => {
    site.configure({ keep: 3, copy_to: ['s3://robots/lab/one'], ...settings, s3_credentials_file: null });
    const seen: string[] = [];
    const bin = join(site.folder, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'rclone'), `#!/bin/sh\necho "$*" >> ${bin}/said\nexec /usr/bin/rclone "$@"\n`);
    chmodSync(join(bin, 'rclone'), 0o755);
    site.environment = {
      ...site.environment,
      PATH: `${bin}:${process.env['PATH']}`,
      AWS_ACCESS_KEY_ID: KEY,
      AWS_SECRET_ACCESS_KEY: SECRET,
    };
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    seen.push(...readFileSync(join(bin, 'said'), 'utf8').trim().split('\n'));
    t.ok(seen.length >= 2);
    for (const line of seen) t.notMatch(line, new RegExp(SECRET));
  });
});

t.test('ended at the deadline while copying', async (t) => {
  const site = filled(t, ['s3://robots/x', '/tmp']);
  const bin = join(site.folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'rclone'), `#!/bin/sh\necho $$ > ${bin}/pid\nexec sleep 60\n`);
  chmodSync(join(bin, 'rclone'), 0o755);
  site.environment = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  const ending = new AbortController();
  site.signal = ending.signal;
  const running = site.backup();
  while (!existsSync(join(bin, 'pid')) || readFileSync(join(bin, 'pid'), 'utf8') === '') await later(20);
  ending.abort(new Error('the deadline has passed'));
  const { outcome, text } = await running;
  t.equal(outcome.status, 'WARNING');
  t.match(text, /OK .*backup: [\s\S]*copy to s3:\/\/robots\/x: ended before it was done; it is tried again/);
  t.equal(site.names.length, 1, 'the backup itself is there');
  const pid = Number(readFileSync(join(bin, 'pid'), 'utf8'));
  for (let tries = 0; tries < 100 && existsSync(`/proc/${pid}`); tries += 1) await later(20);
  t.notOk(existsSync(`/proc/${pid}`), 'and the program is gone');
});
