import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../src/core/files/atomic-file.ts';
import { failureOf, previewOf, reportOf } from './backup/backup-report.ts';
import { collectFiles, readJournal } from './backup/contents.ts';
import { type CopyOutcome, copyTo } from './backup/copies.ts';
import { copyDatabase } from './backup/database.ts';
import { DiskSpace, expectedBytes } from './backup/disk-space.ts';
import { DATABASE, manifestOf } from './backup/manifest.ts';
import { backupFolder, backupsIn, freeName, newestFirst, prune, removePartials } from './backup/names.ts';
import { readArchive } from './backup/read-archive.ts';
import { writeArchive } from './backup/write-archive.ts';
import { makeFolder } from './lib/files.ts';
import { type Job, type JobContext, type JobResult, UsageError } from './lib/job.ts';

export const backupLogs: Job = {
  name: 'backup_logs',
  summary: 'Make a backup of database, metrics, alerts, logs, configuration and journal, and copy it to other targets',
  usage: 'backup_logs [--dry-run]',
  help: `The archive <data>/backups/edge-health_<UTC time>.tar.zst gets its name after it was read back and compared; only then are backups beyond
ops.backup.keep removed. Files with secrets are left out. restore_backup restores it; \`tar --zstd -tf FILE\` lists it.

  --dry-run       only shows what it would do
`,
  options: { 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run: async (context, { options }) => {
    if (!context.rest.isLocal) throw new UsageError('backup_logs copies the database of this machine; omit --url');
    if (options['dry-run']) return previewOf(context);
    return backUp(context).catch((error: Error) => failureOf(error, context));
  },
};

/** Output is named `.partial` until it is complete. After a SIGKILL, the next run removes it. */
async function backUp(context: JobContext): Promise<JobResult> {
  const { config, dataFolder, nowMs, progress, signal } = context;
  const { copy_to, keep, reserve_megabytes } = config.ops.backup;
  const madeMs = nowMs();
  const folder = backupFolder(dataFolder);
  await makeFolder(folder);
  await removePartials(folder);
  const name = freeName(await backupsIn(folder), madeMs);
  const partial = join(folder, `${name}.partial`);
  const snapshot = join(folder, name.replace('.tar.zst', '.db.partial'));
  const space = new DiskSpace(folder, reserve_megabytes * 1e6);
  try {
    const files = await collectFiles(context);
    const expected = await expectedBytes(folder, name, files.bytes);
    if (!(await space.has(expected))) await prune(folder, name, keep); // The others stay until a newer one exists.
    await space.require(expected);

    progress('backup: database');
    const copy = await copyDatabase({ ...context, space, target: snapshot });
    const journal = await readJournal(context);

    const members = [...(copy.database ? [{ name: DATABASE, content: snapshot }] : []), ...files.members, ...journal.members];
    const about = manifestOf(context, madeMs, copy, [...files.leftOut, ...journal.leftOut]);
    await writeArchive(partial, { members, about, space, signal, progress: (file) => progress(`backup: ${file}`) });
    await rm(snapshot, { force: true });

    progress('backup: reading back');
    const archive = await readArchive(partial, signal);
    await rename(partial, join(folder, name));
    await syncFolder(folder);

    // A backup without the database prunes no older backup, here or in the copies: an older one may be the last with the database.
    const keepNow = copy.database ? keep : Number.POSITIVE_INFINITY;
    const pruned = await prune(folder, name, keepNow);
    const kept = newestFirst(await backupsIn(folder), name);
    const copies: CopyOutcome[] = [];
    for (const target of copy_to) copies.push(await copyTo(target, kept, keepNow, context));
    return reportOf({ name, archive, pruned, kept, copies }, nowMs());
  } finally {
    await removePartials(folder);
  }
}
