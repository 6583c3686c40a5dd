import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { basename, join, matchesGlob } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { readArchive } from '../../ops/backup/read-archive.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { BackupSite } from '../../testkit/ops/backup-site.ts';
import { ROOT, RunningService } from '../../testkit/service/service.ts';
import { STORAGE, statusDocument } from '../../testkit/service/status-document.ts';

const NAME = /^edge-health_\d{8}T\d{6}Z\.tar\.zst$/;

/** A stand-in for the service with only what a test needs. */
async function standIn(t: Test, listener: RequestListener): Promise<string> {
  const path = join(temporaryFolder(t), 'rest.sock');
  const server = createServer(listener).listen(path);
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `unix:${path}`;
}

/** Installs programs of the test, which are found first on the PATH. */
function programs(site: BackupSite, scripts: Readonly<Record<string, string>>): void {
  const folder = join(site.folder, 'bin');
  mkdirSync(folder, { recursive: true });
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  site.environment = { ...process.env, PATH: `${folder}:${process.env['PATH']}` };
}

t.test('a running service is backed up', async (t) => {
  const site = new BackupSite(t);
  const filled = site.fill(600);
  const from = new Date().toISOString();
  const service = await RunningService.start(site.folder, { dataPath: site.dataFolder, config: { publish_frequency: 50 } });
  t.teardown(() => service.end());
  site.url = service.unixUrl;
  await service.until<{ count: number }>(`/health/history?from=${from}&limit=500`, ({ count }) => count > 30, 120);
  const { outcome, text, document } = await site.backup();
  t.equal(outcome.status, 'OK', text);
  const { backup } = document;
  t.equal(backup?.database?.source, 'service');
  t.ok((backup?.database?.samples ?? 0) > filled + 30, `${backup?.database?.samples} samples, ${filled} of them from before`);
  t.match(backup?.file, NAME);
  t.same(site.names, [backup?.file], 'nothing else is left');
  t.equal(((await service.json('/status')) as { storage: { state: string } }).storage.state, 'ok');
  t.match(text, /read back and compared; 1 backup kept; \d+ samples of 1 node/);
});

t.test('a backup without a database is an error, but contains the rest', async (t) => {
  await t.test('no database exists yet', async (t) => {
    const site = new BackupSite(t);
    site.write('metrics/m.csv', 'a\n');
    const { outcome, text, document } = await site.backup();
    t.equal(outcome.status, 'CRITICAL');
    t.match(
      text,
      /^CRITICAL {2}backup: WITHOUT a database: .*edge-health\.db cannot be read \(ENOENT\).*; start the service \(systemctl start /,
    );
    t.equal((await readArchive(site.newest)).manifest.database_missing, document.backup?.database_missing);
    const folder = temporaryFolder(t);
    await site.restore({ extract: folder });
    t.equal(readFileSync(join(folder, 'metrics/m.csv'), 'utf8'), 'a\n', 'what was collected is in it');
  });
  await t.test('the store is degraded', async (t) => {
    const site = new BackupSite(t);
    site.fill(60);
    const storage = {
      ...STORAGE,
      path: join(site.dataFolder, 'edge-health.db'),
      state: 'degraded' as const,
      error: 'disk I/O error',
      size_bytes: 1,
    };
    site.url = await standIn(t, (_, response) => response.end(JSON.stringify(statusDocument({ storage }))));
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'CRITICAL');
    t.match(
      text,
      /WITHOUT a database: the service cannot use its database: disk I\/O error; edge-health ops health_check shows what to do/,
    );
  });
  await t.test('older backups with a database are not removed in favour of it', async (t) => {
    const target = temporaryFolder(t);
    const site = new BackupSite(t, { keep: 1, copy_to: [target] });
    site.fill(60);
    await site.backup();
    const [good] = site.names;
    rmSync(join(site.dataFolder, 'edge-health.db'));
    const { document } = await site.backup();
    t.same([document.pruned, document.copies[0]?.pruned], [[], []]);
    t.equal(site.names.length, 2);
    site.fill(60);
    const again = await site.backup();
    t.equal(again.outcome.status, 'OK', again.text);
    t.equal(again.document.pruned.length, 2, 'only for one that has it');
    t.notOk(site.names.includes(good as string));
  });
  await t.test('the service uses another data folder', async (t) => {
    const site = new BackupSite(t);
    site.fill(60);
    const storage = { ...STORAGE, path: '/somewhere/else/edge-health.db', size_bytes: 1 };
    site.url = await standIn(t, (_, response) => response.end(JSON.stringify(statusDocument({ storage }))));
    t.match((await site.backup()).text, /WITHOUT a database: the service at .* has its database in \/somewhere\/else/);
  });
  await t.test('the service requires a token', async (t) => {
    const site = new BackupSite(t);
    site.fill(60);
    const problem = { code: 'unauthorized', detail: 'send the token' };
    site.url = await standIn(t, (_, response) => response.writeHead(401).end(JSON.stringify(problem)));
    t.match((await site.backup()).text, /WITHOUT a database: .*refused .*send the token.*rest\.token_file/);
  });
  await t.test('the database is damaged', async (t) => {
    const site = new BackupSite(t);
    site.fill(600);
    const bytes = readFileSync(join(site.dataFolder, 'edge-health.db'));
    bytes.fill(0x55, 4096, 12_288);
    site.write('edge-health.db', bytes);
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'CRITICAL');
    t.match(text, /WITHOUT a database: .*; restore the last good backup: edge-health ops restore_backup/);
  });
});

t.test('the backup reports that the service has not enough disk space for a snapshot', async (t) => {
  const site = new BackupSite(t);
  site.fill(60);
  const storage = { ...STORAGE, path: join(site.dataFolder, 'edge-health.db'), size_bytes: 1 };
  const problem = { code: 'insufficient_storage', detail: '1 MB free, 9 MB needed' };
  site.url = await standIn(t, (request, response) => {
    if (request.url === '/status') response.end(JSON.stringify(statusDocument({ storage })));
    else response.writeHead(507).end(JSON.stringify(problem));
  });
  const { outcome, text } = await site.backup();
  t.equal(outcome.status, 'CRITICAL');
  t.match(text, /not made: the service has not enough disk space for a snapshot of its database: .*1 MB free, 9 MB needed/);
  t.same(site.names, []);
});

t.test('an interrupted snapshot is requested again', async (t) => {
  const site = new BackupSite(t);
  site.fill(600);
  const database = readFileSync(join(site.dataFolder, 'edge-health.db'));
  const storage = { ...STORAGE, path: join(site.dataFolder, 'edge-health.db'), size_bytes: database.length };
  let asked = 0;
  site.url = await standIn(t, (request, response) => {
    if (request.url === '/status') {
      response.end(JSON.stringify(statusDocument({ storage })));
      return;
    }
    asked += 1;
    if (asked === 1) response.writeHead(503, { 'Retry-After': '1' }).end(JSON.stringify({ code: 'snapshot_in_progress', detail: 'busy' }));
    else if (asked === 2) {
      response.writeHead(200, { 'Content-Length': database.length }).write(database.subarray(0, 5000));
      setTimeout(() => response.destroy(), 50);
    } else response.writeHead(200, { 'Content-Length': database.length }).end(database);
  });
  const { fetchDatabase } = await import('../../ops/backup/database.ts');
  const { DiskSpace } = await import('../../ops/backup/disk-space.ts');
  const target = join(site.folder, 'copy.db');
  const context = site.context();
  const fetched = await fetchDatabase({ ...context, target, space: new DiskSpace(site.folder, 0), pauseMs: 10 });
  t.same(fetched, { source: 'service' });
  t.equal(asked, 3);
  t.ok(readFileSync(target).equals(database), 'whole in the end');
  const held = new DatabaseSync(join(site.dataFolder, 'edge-health.db'));
  held.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  const busy = await fetchDatabase({
    ...context,
    rest: new BackupSite(t).context().rest,
    target,
    space: new DiskSpace(site.folder, 0),
    pauseMs: 1,
  });
  held.close();
  t.match(busy, { source: null, reason: /another process has the database .* open, but no service responds/ });
});

t.test('secrets are left out and listed', async (t) => {
  const site = new BackupSite(t);
  site.fill(60);
  const etc = join(site.folder, 'etc');
  mkdirSync(join(etc, 'shutdown.d'));
  writeFileSync(join(etc, 'shutdown.d', '10-park'), '#!/bin/sh\n');
  chmodSync(join(etc, 'shutdown.d', '10-park'), 0o755);
  writeFileSync(join(etc, 'sensor_node_config.yaml'), 'node_name: sensor\n');
  writeFileSync(join(etc, 'broken.yaml'), 'token: [TOP-SECRET\n');
  writeFileSync(join(etc, 'notes.txt'), 'not of the configuration\n');
  for (const name of ['token.yaml', 'shutdown.d/password', 's3.yaml', 'smtp']) writeFileSync(join(etc, name), 'TOP-SECRET\n');
  site.configure(
    { s3_credentials_file: join(etc, 's3.yaml') },
    {
      rest: { token_file: join(etc, 'token.yaml') },
      ops: {
        notify: {
          email: { password_file: join(etc, 'shutdown.d/password') },
          webhook: { url: 'https://hooks.example/TOP-SECRET', token_file: join(etc, 'smtp') },
        },
      },
    },
  );
  const { outcome, text, document } = await site.backup();
  t.equal(outcome.status, 'OK', text);
  t.same(
    document.backup?.left_out
      .filter(({ reason }) => reason.startsWith('a secret'))
      .map(({ what }) => what)
      .sort(),
    [
      join(etc, 's3.yaml'),
      join(etc, 'shutdown.d/password'),
      join(etc, 'smtp'),
      join(etc, 'token.yaml'),
      'ops.notify.webhook.url in config/edge_health_config.yaml',
    ],
  );
  t.match(text, /^OK +secrets left out: .*ops\.notify\.webhook\.url in config\/edge_health_config\.yaml/m);
  t.ok(document.backup?.left_out.some(({ reason, what }) => what === join(etc, 'broken.yaml') && /not valid YAML/.test(reason)));
  const folder = join(site.folder, 'out');
  t.equal((await site.restore({ extract: folder })).outcome.status, 'OK');
  t.match(readFileSync(join(folder, 'config/edge_health_config.yaml'), 'utf8'), /url: REDACTED/);
  t.equal(spawnSync('grep', ['-r', 'TOP-SECRET', folder]).status, 1, 'in no file of it');
  t.same(readdirSync(join(folder, 'config')).sort(), ['edge_health_config.yaml', 'sensor_node_config.yaml', 'shutdown.d']);
  t.same(readdirSync(join(folder, 'config/shutdown.d')), ['10-park']);
  t.equal(statSync(join(folder, 'config/shutdown.d/10-park')).mode & 0o777, 0o755, 'what is a program stays one');
});

t.test('the journal is included', async (t) => {
  const site = new BackupSite(t, { journal_hours: 48 });
  site.fill(60);
  const journal = async (): Promise<{ text: string | null; reason: string | undefined }> => {
    const { document } = await site.backup();
    const folder = temporaryFolder(t);
    await site.restore({ extract: folder });
    const file = join(folder, 'journal/edge-health.log');
    const reason = document.backup?.left_out.find(({ what }) => what === 'the journal')?.reason;
    return { text: existsSync(file) ? readFileSync(file, 'utf8') : null, reason };
  };
  programs(site, { journalctl: 'echo "$*"; echo last' });
  const asked = (await journal()).text ?? '';
  t.match(asked, /--output=short-iso .*--since -48h --lines \d+\nlast/);
  const patterns = [...asked.matchAll(/--unit (\S+)/g)].map(([, pattern = '']) => pattern);
  const services = readdirSync(join(ROOT, 'systemd')).filter((name) => name.endsWith('.service'));
  for (const service of services)
    t.ok(
      patterns.some((pattern) => matchesGlob(basename(service, '.service'), pattern)),
      service,
    );
  for (const pattern of patterns)
    t.ok(
      services.some((service) => matchesGlob(basename(service, '.service'), pattern)),
      `${pattern} is shipped`,
    );
  programs(site, { journalctl: 'head -c 9000000 /dev/zero | tr "\\0" "x" | fold -w 1000; echo; echo newest' });
  const long = (await journal()).text ?? '';
  t.ok(long.length <= 8e6 && long.endsWith('newest\n'), `the newest ${long.length} bytes`);
  programs(site, { journalctl: 'echo "No permission" >&2; exit 1' });
  t.match((await journal()).reason, /journalctl failed \(1\): No permission/);
  programs(site, { journalctl: 'echo "Hint: you see nothing of others" >&2' });
  t.match((await journal()).reason, /Hint: .*systemd-journal/);
  site.environment = { PATH: join(site.folder, 'nowhere') };
  t.match((await journal()).reason, /journalctl is not installed/);
});

t.test('rows that are being written are included as whole lines', async (t) => {
  const site = new BackupSite(t);
  site.fill(60);
  const file = site.write('metrics/metrics_2026-03-04.csv', '');
  let rows = 0;
  const writer = setInterval(() => {
    writeFileSync(file, Array.from({ length: 20 }, () => `${rows++},${'x'.repeat(200)}\n`).join(''), { flag: 'a' });
  }, 2);
  t.teardown(() => clearInterval(writer));
  // On a busy machine few rows are written during a backup.
  for (let run = 0; run < 3 || rows < 200; run += 1) {
    const { outcome, text } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    t.ok(await readArchive(site.newest));
  }
});

t.test('older backups are removed only after a new one was verified', async (t) => {
  const site = new BackupSite(t, { keep: 3 });
  site.fill(60);
  for (let day = 1; day <= 5; day += 1) site.write(`backups/edge-health_2026030${day}T000000Z.tar.zst`, 'older');
  const ownNotes = site.write('backups/notes.txt', 'mine');
  site.write('backups/edge-health_20260101T000000Z.tar.zst.partial', 'left');
  site.write('backups/edge-health_20260101T000000Z.db.partial', 'left');
  site.write('backups/edge-health_20260101T000000Z.db.partial-wal', 'left');
  const { document, text } = await site.backup();
  t.same(document.pruned, [
    'edge-health_20260303T000000Z.tar.zst',
    'edge-health_20260302T000000Z.tar.zst',
    'edge-health_20260301T000000Z.tar.zst',
  ]);
  t.same(
    site.names,
    ['edge-health_20260304T000000Z.tar.zst', 'edge-health_20260305T000000Z.tar.zst', document.backup?.file, 'notes.txt'],
    text,
  );
  t.ok(existsSync(ownNotes));
  const dry = await site.backup({ 'dry-run': true });
  t.match(dry.text, /would make .*\.tar\.zst.*\n.*would remove edge-health_20260304T000000Z/);
  t.equal(site.names.length, 4, 'it did not');
});

t.test('a clock in the past, later corrected, costs no good backup', async (t) => {
  const site = new BackupSite(t, { keep: 3 });
  site.fill(60);
  const times = ['2026-03-01', '2026-03-02', '2026-03-03', '1970-01-01', '2026-03-04', '2099-01-01', '2026-03-05'];
  for (const time of times) {
    site.nowMs = () => Date.parse(`${time}T00:00:05Z`);
    t.equal((await site.backup()).outcome.status, 'OK');
  }
  t.same(
    site.names.map((name) => name.slice(12, 20)),
    ['20260303', '20260304', '20260305'],
  );
});
