import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
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
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { hostFolder } from '../../../ops/backup/copies.ts';
import { readArchive } from '../../../ops/backup/read-archive.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { copiesAsExpected, siteCopyingTo } from '../../../testkit/ops/backup-copies.ts';
import { until } from '../../../testkit/wait.ts';

// test/ops/backup-copies.test.ts tests copies to a folder.

const HOST = hostFolder();
const KEY = 'S3RVER';
const SECRET = 'S3RVER';

/** An rsync daemon with the module `backups`, on a port that was free a moment ago; null where another process took it meanwhile. */
async function startDaemon(t: Test, config: string): Promise<string | null> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  const daemon = spawn('rsync', ['--daemon', '--no-detach', `--port=${port}`, '--address=127.0.0.1', `--config=${config}`], {
    stdio: 'ignore',
  });
  t.teardown(() => daemon.kill());
  const url = `rsync://127.0.0.1:${port}/backups`;
  await until('the daemon answers or has ended', () => daemon.exitCode !== null || spawnSync('rsync', [url]).status === 0);
  return daemon.exitCode === null ? url : null;
}

t.test('a disk that is not mounted is reported', async (t) => {
  const target = mkdtempSync('/mnt/edge-health-test-');
  t.teardown(() => rmdirSync(target));
  const site = siteCopyingTo(t, [target]);
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

t.test('backups are copied by rsync', async (t) => {
  const folder = temporaryFolder(t);
  const module = join(folder, 'module');
  mkdirSync(module);
  const there = (): string[] => (existsSync(join(module, 'robots', HOST)) ? readdirSync(join(module, 'robots', HOST)).sort() : []);
  const damage = (name: string): void => writeFileSync(join(module, 'robots', HOST, name), 'cut');

  await t.test('to a module of a daemon', async (t) => {
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
    const url = await until('a daemon has a port', () => startDaemon(t, join(folder, 'rsyncd.conf')));
    const site = siteCopyingTo(t, [`${url}/robots/`]);
    await copiesAsExpected(t, site, there, damage);
    for (const name of there()) {
      t.ok(await readArchive(join(module, 'robots', HOST, name)));
      t.equal(statSync(join(module, 'robots', HOST, name)).mode & 0o777, 0o640);
    }
  });

  await t.test('to user@host:path, through a remote shell', async (t) => {
    rmSync(join(module, 'robots'), { recursive: true });
    // Takes the place of ssh: runs the command that rsync would run on the other machine, on this one.
    const shell = join(folder, 'shell');
    writeFileSync(shell, `#!/bin/sh\necho "$@" >> ${folder}/calls\nwhile [ "$1" != rsync ]; do shift; done\nexec "$@"\n`);
    chmodSync(shell, 0o755);
    const site = siteCopyingTo(t, [`backup@robot-host:${module}/robots`]);
    site.environment = { ...process.env, RSYNC_RSH: shell };
    await copiesAsExpected(t, site, there, damage);
    t.match(readFileSync(join(folder, 'calls'), 'utf8'), /-l backup robot-host rsync --server/);
  });

  await t.test('the cause is reported, not the errors that follow from it', async (t) => {
    const shell = join(folder, 'refusing');
    writeFileSync(shell, '#!/bin/sh\nprintf "Host key verification failed.\\r\\n" >&2\nexit 255\n');
    chmodSync(shell, 0o755);
    const site = siteCopyingTo(t, ['backup@robot-host:robots']);
    site.environment = { ...process.env, RSYNC_RSH: shell };
    t.match((await site.backup()).text, 'robots: rsync failed (255): Host key verification failed. (copied');
  });

  await t.test('a machine without ssh is reported', async (t) => {
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    symlinkSync('/usr/bin/rsync', join(bin, 'rsync'));
    const site = siteCopyingTo(t, ['backup@robot-host:robots']);
    site.environment = { PATH: bin };
    t.match((await site.backup()).text, 'robots: ssh is not installed: apt install openssh-client (copied');
  });
});

t.test('backups are copied to S3', async (t) => {
  const S3rver = createRequire(import.meta.url)('s3rver') as new (
    options: object,
  ) => {
    run(): Promise<AddressInfo>;
    close(): Promise<void>;
  };
  const folder = temporaryFolder(t);
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
  const site = siteCopyingTo(t, ['s3://robots/lab/one'], settings);
  site.environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('AWS_')));
  const stored = join(folder, 'store/robots/lab/one', HOST);
  const there = (): string[] =>
    (existsSync(stored) ? readdirSync(stored) : [])
      .filter((name) => name.endsWith('_object'))
      .map((name) => name.replace('._S3rver_object', ''))
      .sort();
  await copiesAsExpected(t, site, there, (name) => writeFileSync(join(stored, `${name}._S3rver_object`), 'cut'));
  for (const name of there()) t.ok(await readArchive(join(stored, `${name}._S3rver_object`)), 'what arrived is whole');

  await t.test('a wrong key is reported without showing the secret', async (t) => {
    write('NOBODY', 'wrong-but-secret-all-the-same');
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'WARNING');
    t.match(text, /copy to s3:\/\/robots\/lab\/one: rclone failed .*(InvalidAccessKeyId|Forbidden|403)/);
    t.notMatch(text, /wrong-but-secret/);
  });
  await t.test('a missing credentials file is reported', async (t) => {
    rmSync(credentials);
    t.match((await site.backup()).text, /copy to .*credentials \(ops\.backup\.s3_credentials_file\) cannot be read: ENOENT/);
  });
  await t.test('credentials come from the environment, and are never on a command line', async (t) => {
    site.configure({ keep: 3, copy_to: ['s3://robots/lab/one'], ...settings, s3_credentials_file: null });
    const seen: string[] = [];
    const bin = join(site.folder, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'rclone'), `#!/bin/sh\necho "$*" >> ${bin}/calls\nexec /usr/bin/rclone "$@"\n`);
    chmodSync(join(bin, 'rclone'), 0o755);
    site.environment = {
      ...site.environment,
      PATH: `${bin}:${process.env['PATH']}`,
      AWS_ACCESS_KEY_ID: KEY,
      AWS_SECRET_ACCESS_KEY: SECRET,
    };
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    seen.push(...readFileSync(join(bin, 'calls'), 'utf8').trim().split('\n'));
    t.ok(seen.length >= 2);
    for (const line of seen) t.notMatch(line, new RegExp(SECRET));
  });
});
