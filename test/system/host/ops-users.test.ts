import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { BackupSite } from '../../../testkit/ops/backup-site.ts';
import { configure, type HealthDocument, NOWHERE, provideRecorded, siteAt } from '../../../testkit/ops/health-site.ts';
import { copyCheckout } from '../../../testkit/service/checkout.ts';

// Jobs run by root on the data folder of another user, and by a user without permission to read it.

const NOBODY = 65_534;

/** A copy of the programs, since other users may not be able to enter the folder of the checkout. */
const copy = temporaryFolder(t);
chmodSync(copy, 0o755);
const NODE = join(copy, 'node');
copyFileSync(process.execPath, NODE);
const MAIN = join(copyCheckout(copy), 'dist/main.cjs');

/** Runs `edge-health ops` with a configuration, as root or as another user. */
function ops(config: string, parameters: readonly string[], { uid = 0, programs = '' } = {}) {
  const argv = ['--disable-warning=ExperimentalWarning', MAIN, 'ops', ...parameters, '--config', config];
  return spawnSync(NODE, argv, {
    encoding: 'utf8',
    uid,
    gid: uid,
    cwd: '/',
    env: { ...process.env, PATH: `${programs}:${process.env['PATH']}`, NODE_OPTIONS: '' },
  });
}

function installation(t: Test) {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const data = join(folder, 'data');
  mkdirSync(data);
  const config = join(folder, 'config.yaml');
  // No service listens on this port.
  writeFileSync(config, JSON.stringify({ storage: { path: data }, rest: { host: '127.0.0.1', port: 1 }, ops: { timezone: 'UTC' } }));
  return { data, config };
}

t.test('root takes on the user of the data folder', async (t) => {
  const { config, data } = installation(t);
  chownSync(data, NOBODY, NOBODY);
  t.equal(ops(config, ['collect_metrics']).status, 1);
  const files = readdirSync(data, { recursive: true, encoding: 'utf8' });
  t.ok(
    files.some((name) => /^metrics\/metrics_.*\.csv$/.test(name)),
    'it did its work',
  );
  for (const name of files) t.equal(statSync(join(data, name)).uid, NOBODY, name);

  t.match(ops(config, ['health_check']).stdout, /service/);
  for (const name of readdirSync(join(data, 'ops'), { recursive: true, encoding: 'utf8' })) {
    t.equal(statSync(join(data, 'ops', name)).uid, NOBODY, `ops/${name}`);
  }
});

t.test('for a user without permission to read the data folder the remedy is sudo', async (t) => {
  const { config, data } = installation(t);
  chmodSync(data, 0o700);
  t.match(ops(config, ['list'], { uid: NOBODY }), {
    status: 3,
    stdout: `UNKNOWN   permission denied: ${data}; run: sudo edge-health ops list, or as a member of its group (edge-health on an appliance)\n`,
  });
  for (const name of ['health_check', 'backup_logs'])
    t.match(ops(config, [name], { uid: NOBODY }), {
      status: 3,
      stdout: '',
      stderr: `edge-health ops: permission denied: ${data}/ops; run: sudo edge-health ops ${name}\n`,
    });
});

t.test('health_check runs as root and as another user', async (t) => {
  const site = siteAt(t, NOWHERE);
  chmodSync(site.folder, 0o755);
  provideRecorded(site, 'systemctl', 'systemctl-running.txt');
  mkdirSync(site.dataFolder, { mode: 0o700 });
  chownSync(site.dataFolder, NOBODY, NOBODY);
  const config = configure(site);
  t.equal(ops(config, ['health_check'], site).status, 2);
  const logs = join(site.dataFolder, 'logs');
  const made = [logs, join(site.dataFolder, 'ops'), join(site.dataFolder, 'ops/health_check.json')];
  made.push(...readdirSync(logs).map((name) => join(logs, name)));
  t.equal(made.length, 4);
  for (const path of made) t.equal(statSync(path).uid, NOBODY, `what root writes belongs to the owner of the folder: ${path}`);

  chownSync(site.dataFolder, 0, 0);
  const { status, stdout, stderr } = ops(config, ['health_check', '--json', '--dry-run'], { ...site, uid: NOBODY });
  t.equal(status, 2, stderr);
  const { checks } = JSON.parse(stdout) as HealthDocument;
  t.match(
    checks.find(({ name }) => name === 'backup'),
    { status: 'UNKNOWN', remedy: /as root/ },
    'a user who may not read it gets the remedy',
  );
});

t.test('after restore_backup by root everything belongs to the owner of the data folder', async (t) => {
  const site = new BackupSite(t);
  site.fill(60);
  site.write('metrics/a.csv', 'a\n');
  site.write('logs/l.log', 'l\n');
  await site.backup();
  for (const name of ['metrics', 'logs']) rmSync(join(site.dataFolder, name), { recursive: true });
  for (const folder of [site.folder, join(site.folder, 'etc')]) chmodSync(folder, 0o755);
  for (const path of ['.', ...readdirSync(site.dataFolder, { recursive: true, encoding: 'utf8' })])
    chownSync(join(site.dataFolder, path), NOBODY, NOBODY);
  const { status, stdout, stderr } = ops(site.configFile, ['restore_backup', '--yes', '--url', 'http://127.0.0.1:1']);
  t.equal(status, 0, stdout + stderr);
  for (const path of ['edge-health.db', 'metrics', 'metrics/a.csv', 'logs/l.log', 'lock']) {
    const { gid, uid } = statSync(join(site.dataFolder, path));
    t.same([uid, gid], [NOBODY, NOBODY], path);
  }
  const file = join(site.dataFolder, 'metrics/a.csv');
  t.same([statSync(file).mode & 0o777, statSync(dirname(file)).mode & 0o777], [0o640, 0o750]);
});
