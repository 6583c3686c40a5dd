import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { planRestore } from '../../ops/restore/restore-plan.ts';
import type { Services } from '../../ops/restore/units.ts';
import { restore } from '../../ops/restore_backup.ts';
import { foldInLog, inspectDatabase } from '../../src/client/inspect-database.ts';
import { spoolInMemory } from '../../src/core/files/spool-folder.ts';
import { TestStore } from '../../src/store/testing/store.ts';
import { BackupSite } from '../../testkit/ops/backup-site.ts';
import { RunningService } from '../../testkit/service/service.ts';
import { hourAgo } from './support/restore-unit.ts';

const NOTHING_RUNS: Services = { running: [], runtimeFolders: [], stop: async () => undefined, start: async () => undefined };
/** The steps before which a restore can be killed, in order. */
const STEPS = ['fold in the log', 'second name', 'spool', 'no -wal', 'no -shm', 'swap', 'done'];
const UID = process.getuid?.() ?? 0;

const previousIn = (site: BackupSite): string[] => readdirSync(site.dataFolder).filter((name) => name.includes('.previous-'));
const spoolOf = (site: BackupSite): string => spoolInMemory(realpathSync(site.dataFolder), UID);
const samplesIn = (site: BackupSite): number =>
  inspectDatabase(join(site.dataFolder, 'edge-health.db'), { thorough: true }).nodes[0]?.samples ?? 0;

/** Copies a folder with its hard links, which distinguish two names of one database from two databases. */
function copyFolder(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  const { status, stderr } = spawnSync('cp', ['-a', `${from}/.`, to], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** A site with a copy of the folders of another one, exactly as a SIGKILL of all its processes at this moment would leave them. */
function copyOf(t: Test, site: BackupSite): BackupSite {
  const copy = new BackupSite(t);
  copyFolder(site.dataFolder, copy.dataFolder);
  copyFolder(spoolOf(site), spoolOf(copy));
  t.teardown(() => rmSync(spoolOf(copy), { recursive: true, force: true }));
  return copy;
}

/** The samples in the store of the service when it starts in a site. */
async function samplesAtStart(t: Test, site: BackupSite): Promise<number> {
  const started = new TestStore(site.folder, { environment: {} });
  try {
    await started.store.start();
    const count = (await started.rows()).length;
    const { quarantined, state } = started.store.state();
    t.same([state, quarantined], ['ok', []]);
    return count;
  } finally {
    await started.stop();
  }
}

t.test('after a kill between any two steps the next start has either the old database or the new one', async (t) => {
  const template = new BackupSite(t);
  const backedUp = template.fill(120);
  await template.backup();
  const config = { publish_frequency: 100 };
  // What a killed service leaves: a write-ahead log beside the database, and a spool in memory.
  for (let run = 1; run <= 2; run += 1) {
    const service = await RunningService.start(template.folder, { dataPath: template.dataFolder, config });
    const from = new Date().toISOString();
    await service.until<{ count: number }>(`/health/history?from=${from}`, ({ count }) => count > 20, 120);
    await service.end('SIGKILL');
  }
  t.teardown(() => rmSync(spoolOf(template), { recursive: true, force: true }));
  t.ok(readdirSync(spoolOf(template)).length > 0, 'there is a spool');
  t.ok(statSync(join(template.dataFolder, 'edge-health.db-wal')).size > 0, 'there is a log');
  const [archive] = template.names as [string];
  const planFor = (site: BackupSite) => planRestore(site.context(), join(site.backups, archive), { configToo: false, overwrite: false });

  await t.test('a backup contains what is only in the write-ahead log of a killed service', async (t) => {
    const site = copyOf(t, template);
    const bare = copyOf(t, template);
    foldInLog(join(bare.dataFolder, 'edge-health.db'));
    const { outcome, text, document } = await site.backup();
    t.equal(outcome.status, 'OK', text);
    t.match(document.backup?.database, { source: 'file', samples: samplesIn(bare) });
  });

  const old = await samplesAtStart(t, copyOf(t, template));
  const bare = copyOf(t, template);
  foldInLog(join(bare.dataFolder, 'edge-health.db'));
  const oldWithoutSpool = samplesIn(bare);
  t.ok(oldWithoutSpool > backedUp, `${backedUp} samples backed up, ${oldWithoutSpool} in the database`);
  t.ok(old > oldWithoutSpool, `${old} with the spool`);

  await t.test('a failed step restores the previous state', async (t) => {
    for (const [index, name] of STEPS.entries()) {
      const site = copyOf(t, template);
      const before = readdirSync(spoolOf(site));
      const onStep = (step: string): void => {
        if (step === name) throw new Error('the disk fails');
      };
      await t.rejects(restore(site.context(), await planFor(site), NOTHING_RUNS, onStep), {
        name: 'RolledBack',
        message: /the disk fails; everything is as it was before/,
      });
      t.same(readdirSync(spoolOf(site)), before, `before "${name}": the spool`);
      t.same(previousIn(site), []);
      if (index === 4) t.equal(await samplesAtStart(t, copyOf(t, site)), old, 'all of it is found');
      foldInLog(join(site.dataFolder, 'edge-health.db'));
      t.equal(samplesIn(site), oldWithoutSpool);
    }
  });

  await t.test('killed before each step', async (t) => {
    const site = copyOf(t, template);
    const left: { readonly step: string; readonly copy: BackupSite }[] = [];
    const onStep = (step: string): void => void left.push({ step, copy: copyOf(t, site) });
    await restore(site.context(), await planFor(site), NOTHING_RUNS, onStep);
    left.push({ step: 'restored', copy: site });
    t.same(
      left.map(({ step }) => step),
      [...STEPS, 'restored'],
    );
    for (const { copy, step } of left) {
      const isNew = step === 'done' || step === 'restored';
      const isAfterSpool = step.startsWith('no -') || step === 'swap';
      t.equal(await samplesAtStart(t, copy), isNew ? backedUp : isAfterSpool ? oldWithoutSpool : old, `before "${step}"`);
      if (isAfterSpool)
        t.ok(
          previousIn(copy).some((name) => name.endsWith('-spool')),
          'the spool is kept beside it',
        );
      if (step !== 'spool') continue;
      const again = await copy.restore({ yes: true });
      t.equal(again.outcome.status, 'OK', again.text);
      t.equal(await samplesAtStart(t, copy), backedUp, 'and can be restored again');
    }
  });

  await t.test('a killed process, and a service that starts after it', async (t) => {
    const site = copyOf(t, template);
    const untilMs = Date.now();
    const program = join(import.meta.dirname, 'support/restore-and-die.ts');
    const parameters = [site.configFile, site.dataFolder, join(site.backups, archive), 'swap'];
    const { signal, stdout } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...parameters], {
      encoding: 'utf8',
    });
    t.same([signal, stdout], ['SIGKILL', 'swap']);
    const service = await RunningService.start(site.folder, { dataPath: site.dataFolder, config });
    t.teardown(() => service.end());
    const { samples_received } = await service.json<{ samples_received: number }>(
      `/health/aggregate?from=${hourAgo()}&to=${new Date(untilMs).toISOString()}`,
    );
    t.equal(samples_received, oldWithoutSpool);
  });
});
