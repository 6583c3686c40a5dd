import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import type { Services } from '../../ops/restore/units.ts';
import { systemdServices, unitsOf } from '../../ops/restore/units.ts';
import { runRestore } from '../../ops/restore_backup.ts';
import { inspectDatabase } from '../../src/client/inspect-database.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { BackupSite } from '../../testkit/ops/backup-site.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { BUSY, Unit } from './support/restore-unit.ts';

async function recorded(unit: Unit, sinceMs: number, samples: number): Promise<void> {
  await unit.up.until<{ count: number }>(
    `/health/history?from=${new Date(sinceMs).toISOString()}&limit=10000`,
    ({ count }) => count >= samples,
    120,
  );
}

const previousIn = (site: BackupSite): string[] => readdirSync(site.dataFolder).filter((name) => name.includes('.previous-'));

t.test('a backup made under load is restored completely', async (t) => {
  const site = new BackupSite(t);
  const startedMs = Date.now();
  const unit = await Unit.started(t, site, BUSY);
  await recorded(unit, startedMs, 60);
  const lastBefore = await unit.newest();
  const before = { history: await unit.history(lastBefore), changes: await unit.changes(lastBefore) };
  // `to` is exclusive, so that the newest sample is not included.
  t.ok(before.history.length >= 59, `${before.history.length} samples`);
  t.ok(before.changes.length >= 1, `${before.changes.length} changes of alerts`);
  site.write('metrics/a.csv', 'as it was\n');
  site.write('metrics/b.csv', 'gone later\n');
  const { document, text } = await site.backup();
  t.equal(document.status, 'OK', text);
  const lastBackedUp = await unit.newest();
  await recorded(unit, Date.now(), 60);
  const lastOverwritten = await unit.newest();
  site.write('metrics/a.csv', 'as it was\nand is now\n');
  rmSync(join(site.dataFolder, 'metrics/b.csv'));

  const shown = await runRestore(site.context(), { options: {}, positionals: [] }, unit);
  t.match(
    shown.lines.join('\n'),
    /is intact: .*\n.*database: \d+ samples.*\n.*current database \([1-9]\d* newer samples\) would be kept[\s\S]*1 file added: metrics\/b\.csv[\s\S]*kept.*metrics\/a\.csv[\s\S]*add --yes/,
  );
  t.same([unit.did, previousIn(site)], [['start'], []], 'it only showed');

  const outcome = await runRestore(site.context(), { options: { yes: true }, positionals: [] }, unit);
  t.equal(outcome.status, 'OK', outcome.lines.join('\n'));
  t.same(unit.did, ['start', 'stop', 'start']);
  t.same(await unit.history(lastBefore), before.history, 'every sample of before');
  t.same(await unit.changes(lastBefore), before.changes, 'every change of an alert');
  const after = await unit.all<HealthStatus>(`/health/history?from=${lastBackedUp}&to=${lastOverwritten}&limit=10000`);
  t.same(
    after.filter(({ timestamp }) => timestamp > lastBackedUp),
    [],
    'nothing of what came after',
  );
  const [previous] = previousIn(site) as [string];
  const kept = inspectDatabase(join(site.dataFolder, previous), { thorough: true });
  t.ok((kept.nodes[0]?.samples ?? 0) >= (document.backup?.database?.samples ?? 0) + 60, 'which is kept');
  t.equal(readFileSync(join(site.dataFolder, 'metrics/a.csv'), 'utf8'), 'as it was\nand is now\n');
  t.equal(readFileSync(join(site.dataFolder, 'metrics/b.csv'), 'utf8'), 'gone later\n');
  t.notOk(existsSync(join(site.dataFolder, 'restore.partial')));
  const mode = statSync(join(site.dataFolder, previous)).mode & 0o777;
  t.equal(statSync(join(site.dataFolder, 'edge-health.db')).mode & 0o777, mode, 'with the mode of the one before');

  t.match(
    (await site.restore({ yes: true })).text,
    /CRITICAL .*process \d+ is using .*stop it \(Ctrl-C .*kill \d+/,
    'refused while a service runs that is no unit',
  );

  await t.test('a failed start restores the previous state', async (t) => {
    const to = await unit.newest();
    const now = await unit.history(to);
    const previousBefore = previousIn(site);
    for (const way of ['throws', 'answers with less'] as const) {
      unit.insteadOfStart = async () => {
        if (way === 'throws') throw new Error('Job for edge-health.service failed');
        // As a service does that cannot use the restored database.
        rmSync(join(site.dataFolder, 'edge-health.db'));
        await unit.start();
      };
      const failed = await runRestore(site.context(), { options: { yes: true }, positionals: [] }, unit).catch((error: Error) => error);
      t.match(failed, {
        name: 'RolledBack',
        message: /(Job for .* failed|of \d+ samples the service finds \d+); everything is as it was before/,
      });
      t.same(await unit.history(to), now, 'the service runs with what it had');
      t.same(previousIn(site), previousBefore);
      t.notOk(existsSync(join(site.dataFolder, 'restore.partial')));
    }
  });
});

t.test('a checkout is restored without systemd', async (t) => {
  const site = new BackupSite(t);
  site.fill(300);
  site.write('alerts/alerts_2026-03-04.ndjson', 'then\n');
  await site.backup();
  site.write('alerts/alerts_2026-03-04.ndjson', 'now, and longer\n');
  await t.test('there is no database', async (t) => {
    rmSync(join(site.dataFolder, 'edge-health.db'));
    const { outcome, text } = await site.restore({ yes: true, overwrite: true });
    t.equal(outcome.status, 'OK', text);
    t.match(
      text,
      /replaced, the previous ones kept as FILE\.previous-<time>: alerts\/alerts_2026-03-04\.ndjson[\s\S]*start the service as usual/,
    );
    t.equal(inspectDatabase(join(site.dataFolder, 'edge-health.db'), { thorough: true }).nodes[0]?.samples, 301);
    t.equal(readFileSync(join(site.dataFolder, 'alerts/alerts_2026-03-04.ndjson'), 'utf8'), 'then\n');
    const [old] = readdirSync(join(site.dataFolder, 'alerts')).filter((name) => name.includes('.previous-'));
    t.equal(readFileSync(join(site.dataFolder, 'alerts', old as string), 'utf8'), 'now, and longer\n');
  });
  await t.test('the database is damaged', async (t) => {
    site.write('edge-health.db', 'not a database at all'.repeat(500));
    const { outcome, text } = await site.restore({ yes: true });
    t.equal(outcome.status, 'OK', text);
    t.equal(inspectDatabase(join(site.dataFolder, 'edge-health.db'), { thorough: true }).nodes[0]?.samples, 301);
    t.equal(previousIn(site).length, 1);
  });
  await t.test('--list, names and a missing backup are handled', async (t) => {
    const [name] = site.names as [string];
    t.match((await site.restore({ list: true })).text, new RegExp(`${name}  \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC  0\\.0 MB`));
    t.match((await site.restore({}, [name])).text, /is intact/);
    t.match((await site.restore({}, ['nothing.tar.zst'])).text, /CRITICAL .*there is no backup nothing\.tar\.zst; see: .*--list/);
    t.match((await site.restore({ extract: site.folder }, [name])).text, /is not empty/);
    t.match((await new BackupSite(t).restore()).text, /CRITICAL .*there is no backup in .*backups/);
    t.equal((await new BackupSite(t).restore({ list: true })).outcome.status, 'WARNING');
  });
  await t.test('a backup of a newer version is refused', async (t) => {
    const other = new BackupSite(t);
    other.fill(60);
    await other.backup();
    const folder = join(other.folder, 'out');
    await other.restore({ extract: folder });
    const db = new DatabaseSync(join(folder, 'database/edge-health.db'));
    db.exec('PRAGMA user_version = 99');
    db.close();
    t.throws(() => inspectDatabase(join(folder, 'database/edge-health.db'), { thorough: true }), {
      message: /another version \(schema 99/,
    });
  });
});

t.test('the configuration is restored only on request', async (t) => {
  const site = new BackupSite(t, { keep: 5 });
  const etc = join(site.folder, 'etc');
  site.fill(60);
  mkdirSync(join(etc, 'shutdown.d'));
  writeFileSync(join(etc, 'shutdown.d/10-park'), 'then');
  chmodSync(join(etc, 'shutdown.d/10-park'), 0o755);
  await site.backup();
  const then = readFileSync(site.configFile, 'utf8');
  site.configure({ keep: 9 });
  writeFileSync(join(etc, 'shutdown.d/10-park'), 'now');
  await t.test('it is kept without --config-too', async (t) => {
    const { outcome, text } = await site.restore({ yes: true });
    t.equal(outcome.status, 'OK');
    t.match(text, /the configuration stays as it is \(--config-too restores that of the backup\)/);
    t.match(readFileSync(site.configFile, 'utf8'), /keep: 9/);
  });
  await t.test('the differences are shown first', async (t) => {
    const { text } = await site.restore({ 'config-too': true });
    t.match(text, /--- .*edge_health_config\.yaml\n[\s\S]*- {4}keep: 9\n[\s\S]*\+ {4}keep: 5\n[\s\S]*nothing was changed/);
    t.match(readFileSync(site.configFile, 'utf8'), /keep: 9/);
  });
  await t.test('it is restored with --config-too', async (t) => {
    const { outcome, text } = await site.restore({ yes: true, 'config-too': true });
    t.equal(outcome.status, 'OK', text);
    t.equal(readFileSync(site.configFile, 'utf8'), then);
    t.equal(readFileSync(join(etc, 'shutdown.d/10-park'), 'utf8'), 'then');
    t.equal(statSync(join(etc, 'shutdown.d/10-park')).mode & 0o777, 0o755);
    t.same(readdirSync(join(etc, 'shutdown.d')), ['10-park'], 'no second one that would run as well');
    const [previous] = readdirSync(etc).filter((name) => name.startsWith('previous-')) as [string];
    t.match(readFileSync(join(etc, previous, 'edge_health_config.yaml'), 'utf8'), /keep: 9/);
  });
  await t.test('the current secrets are kept, because no backup contains any', async (t) => {
    const webhook = (url: string | null) => ({ ops: { notify: { webhook: { url } } } });
    const other = new BackupSite(t);
    other.fill(60);
    other.configure({ keep: 5 }, webhook('https://hooks.example/old-secret'));
    await other.backup();
    other.configure({ keep: 9 }, webhook(null));
    const before = readFileSync(other.configFile, 'utf8');
    const refused = await other.restore({ yes: true, 'config-too': true });
    t.match(refused.text, /CRITICAL .*the backup has no ops\.notify\.webhook\.url, as backups leave secrets out.*set it there first/);
    t.equal(readFileSync(other.configFile, 'utf8'), before);
    other.configure({ keep: 9 }, webhook('https://hooks.example/new-secret'));
    t.notMatch((await other.restore({ 'config-too': true })).text, /secret/, 'the terminal does not show them');
    const { outcome, text } = await other.restore({ yes: true, 'config-too': true });
    t.equal(outcome.status, 'OK', text);
    t.match(readFileSync(other.configFile, 'utf8'), /keep: 5[\s\S]*url: "https:\/\/hooks\.example\/new-secret"/);
  });
  await t.test('the present file of another role is kept if the one in the backup is invalid', async (t) => {
    const other = new BackupSite(t);
    other.fill(60);
    const role = join(other.folder, 'etc/robot_config.yaml');
    writeFileSync(role, 'rest: {prot: 1}\n');
    await other.backup();
    writeFileSync(role, 'rest: {port: 1}\n');
    const { outcome, text } = await other.restore({ 'config-too': true });
    t.match([outcome.status, text], ['WARNING', /warning: robot_config\.yaml stays as it is: robot_config\.yaml of the backup has errors/]);
    await other.restore({ yes: true, 'config-too': true });
    t.equal(readFileSync(role, 'utf8'), 'rest: {port: 1}\n');
  });
  await t.test('it is refused if it names another data folder', async (t) => {
    const other = new BackupSite(t);
    other.fill(60);
    await other.backup();
    const moved = new BackupSite(t);
    cpSync(other.backups, moved.backups, { recursive: true });
    t.match((await moved.restore({ yes: true, 'config-too': true })).text, /CRITICAL .*has another data folder .*omit --config-too/);
  });
});

t.test('too little disk space is reported', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const site = new BackupSite(t, {}, join(disk.folder));
  site.fill(600);
  await site.backup();
  const { bavail, bsize } = statfsSync(disk.folder);
  writeFileSync(join(disk.folder, 'recordings'), Buffer.alloc(bavail * bsize - 100_000));
  const before = readFileSync(join(site.dataFolder, 'edge-health.db'));
  const { outcome, text } = await site.restore({ yes: true });
  t.equal(outcome.status, 'CRITICAL');
  t.match(text, /not enough disk space to extract .* in .*; remove what is not needed there/);
  t.ok(readFileSync(join(site.dataFolder, 'edge-health.db')).equals(before), 'the present one is untouched');
  t.same(
    readdirSync(site.dataFolder).filter((name) => /partial|previous/.test(name)),
    [],
  );
});

t.test('the units of a configuration are found', async (t) => {
  t.same(unitsOf('/etc/edge-health/edge_health_config.yaml'), ['edge-health-ops.service', 'edge-health.service']);
  t.same(unitsOf('/etc/edge-health/sensor_node_config.yaml'), ['edge-health@sensor_node.service']);
  t.same(unitsOf(join(ROOT, 'config/edge_health_config.yaml')), []);
});

t.test('units are stopped and started according to their state in systemd', async (t) => {
  const site = new BackupSite(t);
  const bin = join(site.folder, 'bin');
  mkdirSync(bin);
  const calls = join(bin, 'calls');
  const systemctl = (ops: string, service: string): void => {
    const unit = (id: string, state: string, folder: string): string =>
      `Id=${id}\\nLoadState=${state === 'missing' ? 'not-found' : 'loaded'}\\nActiveState=${state}\\nRuntimeDirectory=${folder}\\n`;
    const shown = `${unit('edge-health-ops.service', ops, '')}\\n${unit('edge-health.service', service, 'edge-health')}`;
    writeFileSync(
      join(bin, 'systemctl'),
      `#!/bin/sh\necho "$*" >> '${calls}'\n[ "$1" != show ] || printf '${shown}'\n[ ! -e '${bin}/fails' ] || { echo no >&2; exit 1; }\n`,
    );
    chmodSync(join(bin, 'systemctl'), 0o755);
  };
  const environment = { PATH: `${bin}:${process.env['PATH']}` };
  const services = (): Promise<Services> => systemdServices('/etc/edge-health/edge_health_config.yaml', environment);
  systemctl('active', 'active');
  const both = await services();
  t.same([both.running, both.runtimeFolders], [['edge-health-ops.service', 'edge-health.service'], ['/run/edge-health']]);
  await both.stop();
  await both.start();
  t.match(
    readFileSync(calls, 'utf8'),
    /stop edge-health-ops\.service edge-health\.service\nstart edge-health\.service edge-health-ops\.service\n$/,
  );
  systemctl('missing', 'activating');
  t.same((await services()).running, ['edge-health.service'], 'only what runs');
  systemctl('inactive', 'failed');
  t.same((await services()).running, []);
  writeFileSync(join(bin, 'fails'), '');
  await t.rejects(both.stop(), { message: /systemctl stop .* failed: no/ });
  t.same(
    (await systemdServices('/etc/edge-health/edge_health_config.yaml', { PATH: '/nowhere' })).running,
    [],
    'without systemd nothing is a unit',
  );
  t.same((await systemdServices(site.configFile, environment)).running, []);
});
