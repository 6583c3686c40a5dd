import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { restore } from '../../ops/backup/restore.ts';
import { planRestore } from '../../ops/backup/restore-plan.ts';
import type { Services } from '../../ops/backup/units.ts';
import { foldInLog, inspectDatabase } from '../../src/store/inspect.ts';
import { tailInMemory } from '../../src/store/tail-folder.ts';
import { RunningService } from '../../testkit/service.ts';
import { BackupSite } from './support/backup-site.ts';
import { hourAgo } from './support/restore-unit.ts';

const NOTHING_RUNS: Services = { running: [], runtimeFolders: [], stop: async () => undefined, start: async () => undefined };

const asides = (site: BackupSite): string[] => readdirSync(site.dataFolder).filter((name) => name.includes('set-aside'));

t.test('killed between any two steps: the next start has the old one or the new one', async (t) => {
  const template = new BackupSite(t);
  const backedUp = template.fill(120);
  await template.backup();
  const config = { publish_frequency: 100 };
  // What a killed service leaves: a log beside the database, and a tail in memory.
  for (let run = 1; run <= 2; run += 1) {
    const service = await RunningService.start(template.folder, { dataPath: template.dataFolder, config });
    const from = new Date().toISOString();
    await service.until<{ count: number }>(`/health/history?from=${from}`, ({ count }) => count > 60);
    await service.end('SIGKILL');
  }
  const uid = process.getuid?.() ?? 0;
  const tail = tailInMemory(template.dataFolder, uid);
  t.teardown(() => rmSync(tail, { recursive: true, force: true }));
  t.ok(readdirSync(tail).length > 0 && statSync(join(template.dataFolder, 'edge-health.db-wal')).size > 0, 'there are a log and a tail');
  const [archive] = template.names as [string];
  const untilMs = Date.now();

  /** Samples of before the kill that a service finds which is started now, and what it set aside. */
  const found = async (site: BackupSite): Promise<number> => {
    const service = await RunningService.start(site.folder, { dataPath: site.dataFolder, config });
    const { samples_received } = await service.json<{ samples_received: number }>(
      `/health/aggregate?from=${hourAgo()}&to=${new Date(untilMs).toISOString()}`,
    );
    const { storage } = await service.json<{ storage: { state: string; set_aside: string[] } }>('/status');
    t.same([storage.state, storage.set_aside], ['ok', []]);
    await service.end();
    return samples_received;
  };
  const copyOf = (): BackupSite => {
    const site = new BackupSite(t);
    cpSync(template.dataFolder, site.dataFolder, { recursive: true });
    const copied = tailInMemory(realpathSync(site.dataFolder), uid);
    cpSync(tail, copied, { recursive: true });
    chmodSync(copied, 0o700);
    t.teardown(() => rmSync(copied, { recursive: true, force: true }));
    return site;
  };
  const old = await found(copyOf());
  const bare = copyOf();
  foldInLog(join(bare.dataFolder, 'edge-health.db'));
  const oldWithoutTail = inspectDatabase(join(bare.dataFolder, 'edge-health.db'), { thorough: true }).nodes[0]?.samples as number;
  t.ok(oldWithoutTail > backedUp && old > oldWithoutTail, `${backedUp} backed up, ${oldWithoutTail} in the database, ${old} with the tail`);
  await t.test('a step that fails: everything is as it was', async (t) => {
    for (let step = 1; ; step += 1) {
      const site = copyOf();
      const copied = tailInMemory(realpathSync(site.dataFolder), uid);
      const before = readdirSync(copied);
      const plan = await planRestore(site.context(), join(site.backups, archive), { configToo: false, overwrite: false });
      let steps = 0;
      const onStep = (): void => {
        steps += 1;
        if (steps === step) throw new Error('the disk says no');
      };
      const error = await restore(site.context(), plan, NOTHING_RUNS, { overwrite: false, onStep }).catch((thrown: Error) => thrown);
      if (!(error instanceof Error)) break;
      t.match(error, { name: 'RolledBack', message: /the disk says no; everything is as it was before/ });
      t.same(readdirSync(copied), before, 'the tail');
      t.same(asides(site), []);
      foldInLog(join(site.dataFolder, 'edge-health.db'));
      t.equal(inspectDatabase(join(site.dataFolder, 'edge-health.db'), { thorough: true }).nodes[0]?.samples, oldWithoutTail);
      if (step === 5) t.equal(await found(site), old, 'all of it is found');
    }
  });
  const seen: string[] = [];
  for (let step = 1; ; step += 1) {
    const site = copyOf();
    const program = join(import.meta.dirname, 'support/restore-and-die.ts');
    const given = [site.configFile, site.dataFolder, join(site.backups, archive), String(step)];
    const { signal, stderr, stdout } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...given], {
      encoding: 'utf8',
    });
    if (signal !== 'SIGKILL') t.equal(stdout, 'restored', stderr);
    const isNew = stdout === 'done' || stdout === 'restored';
    const isAfterTail = stdout.startsWith('no -') || stdout === 'new one';
    const samples = await found(site);
    t.equal(samples, isNew ? backedUp : isAfterTail ? oldWithoutTail : old, `before the step "${stdout}"`);
    if (isAfterTail)
      t.ok(
        asides(site).some((name) => name.endsWith('-tail')),
        'the tail lies beside it',
      );
    seen.push(stdout);
    if (stdout === 'restored') break;
    if (stdout === 'tail') {
      const again = await site.restore({ yes: true });
      t.equal(again.outcome.status, 'OK', again.text);
      t.equal(await found(site), backedUp, 'and can be restored again');
    }
  }
  t.same(seen, ['fold in the log', 'second name', 'tail', 'no -wal', 'no -shm', 'new one', 'done', 'restored']);
});
