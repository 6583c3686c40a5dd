import { readdir, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isoUtc } from '../src/core/time.ts';
import { syncFolder } from '../src/system/atomic-file.ts';
import { collectFiles, readJournal, SECRET } from './backup/contents.ts';
import { type CopyOutcome, copyBackups } from './backup/copies.ts';
import { COPIES, DATABASE_FILE, fetchDatabase, inspectCopy } from './backup/database.ts';
import { DiskSpace, megabytes, NotEnoughSpace } from './backup/disk-space.ts';
import { DATABASE, type Manifest } from './backup/manifest.ts';
import { backupFolder, backupsIn, freeName, isPartial, newestFirst, surplus } from './backup/names.ts';
import { type CheckedArchive, Damaged, readArchive } from './backup/read-archive.ts';
import { writeArchive } from './backup/write-archive.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { makeFolder } from './lib/folder.ts';
import { type Job, type JobArguments, type JobContext, type JobResult, type JobStatus, worst } from './lib/job.ts';

interface Backup {
  readonly name: string;
  readonly archive: CheckedArchive;
  readonly pruned: readonly string[];
  /** All backups that there are now, newest first. */
  readonly kept: readonly string[];
  readonly copies: readonly CopyOutcome[];
}

/**
 * Makes one backup. The archive gets its name once it was read back and compared; what was written until then ends in `.partial`, and the next
 * run removes it where this one is killed. Throws NotEnoughSpace, Damaged, errors of the disk and the reason of the signal.
 */
async function backUp(context: JobContext, folder: string): Promise<Backup> {
  const { config, configFile, dataFolder, environment, nowMs, progress, signal, version } = context;
  const madeMs = nowMs();
  await makeFolder(folder);
  await removePartials(folder);
  const name = freeName(await backupsIn(folder), madeMs);
  const partial = join(folder, `${name}.partial`);
  const snapshot = join(folder, name.replace('.tar.zst', '.db.partial'));
  const space = new DiskSpace(folder, config.ops.backup.reserve_megabytes * 1e6);
  try {
    const files = await collectFiles(config, configFile, dataFolder);
    const expected = await expectedBytes(folder, name, files.bytes);
    await space.require(expected).catch(async (error: Error) => {
      // Backups beyond the number to keep are removed first where that helps; the others stay until there is a newer one.
      if (!(error instanceof NotEnoughSpace) || (await prune(folder, name, config.ops.backup.keep)).length === 0) throw error;
      await space.require(expected);
    });

    progress('backup: database');
    const fetched = await fetchDatabase({ ...context, space, target: snapshot });
    signal.throwIfAborted();
    const { counts, missing } = await inspectCopy(fetched, snapshot);
    const journal = await readJournal(config.ops.backup.journal_hours, environment, signal);

    const about: Omit<Manifest, 'files'> = {
      format: 'edge-health backup',
      format_version: 1,
      product_version: version,
      host: hostname(),
      made: isoUtc(madeMs),
      database: counts,
      database_missing: missing,
      left_out: 'reason' in journal ? [...files.leftOut, journal] : [...files.leftOut],
    };
    await writeArchive(partial, {
      members: [...(counts ? [{ name: DATABASE, content: snapshot }] : []), ...files.members, ...('content' in journal ? [journal] : [])],
      manifest: (archived) => `${JSON.stringify({ ...about, files: [...archived] } satisfies Manifest, null, 1)}\n`,
      space,
      nowMs: madeMs,
      signal,
      progress: (file) => progress(`backup: ${file}`),
    });
    await rm(snapshot, { force: true });

    progress('backup: reading back');
    const archive = await readArchive(partial, { signal });
    await rename(partial, join(folder, name));
    await syncFolder(folder);

    // A backup without the database removes no older one, here or in the copies: that may be the last that has it.
    const keep = counts ? config.ops.backup.keep : Number.POSITIVE_INFINITY;
    const pruned = await prune(folder, name, keep);
    const kept = newestFirst(await backupsIn(folder), name);
    const copies = await copyBackups({ ...context, folder, names: kept, newest: name, keep });
    return { name, archive, pruned, kept, copies };
  } finally {
    await removePartials(folder);
  }
}

/** An upper estimate of the archive's size: a quarter more than the last one, or half of what goes in. */
async function expectedBytes(folder: string, name: string, contentBytes: number): Promise<number> {
  const [newest] = newestFirst(await backupsIn(folder), name);
  return Math.ceil(newest === undefined ? contentBytes / 2 : 1.25 * (await stat(join(folder, newest))).size);
}

/** Removes the backups beyond the number to keep, and returns their names. */
async function prune(folder: string, name: string, keep: number): Promise<string[]> {
  const old = surplus(await backupsIn(folder), name, keep);
  for (const one of old) await rm(join(folder, one), { force: true });
  return old;
}

/** Removes what interrupted runs left. No other backup may be running. */
async function removePartials(folder: string): Promise<void> {
  for (const name of await readdir(folder)) if (isPartial(name)) await rm(join(folder, name), { force: true });
}

interface Finding {
  readonly status: JobStatus;
  readonly text: string;
}

async function preview({ config, configFile, dataFolder, nowMs }: JobContext, folder: string): Promise<JobResult> {
  const { copy_to, keep, reserve_megabytes } = config.ops.backup;
  const names = await backupsIn(folder);
  const name = freeName(names, nowMs());
  const { bytes, leftOut, members } = await collectFiles(config, configFile, dataFolder);
  const findings: Finding[] = [
    {
      status: 'OK',
      text: `backup: would make ${join(folder, name)} of the database, ${plural(members.length, 'file')} (${megabytes(bytes)}) and the journal`,
    },
  ];
  // The database may not exist yet, or only the service may see it: then only the space for the archive is checked.
  const databaseBytes = (await stat(join(dataFolder, DATABASE_FILE)).catch(() => null))?.size ?? 0;
  const needed = Math.max(await expectedBytes(folder, name, databaseBytes + bytes), COPIES * databaseBytes);
  try {
    await new DiskSpace(names.length > 0 ? folder : dataFolder, reserve_megabytes * 1e6).require(needed);
  } catch (error) {
    if (!(error instanceof NotEnoughSpace)) throw error;
    findings.push({ status: 'CRITICAL', text: `backup: not enough disk space: ${error.message}` });
  }
  const pruned = surplus([...names, name], name, keep);
  for (const old of pruned) findings.push({ status: 'OK', text: `backup: would remove ${old} (ops.backup.keep: ${keep})` });
  for (const target of copy_to) findings.push({ status: 'OK', text: `copy to ${target}: would be brought up to date` });
  const files = members.map((member) => member.name);
  return resultOf(findings, { would_make: name, files, left_out: leftOut, would_prune: pruned, copy_to });
}

function reportOf({ archive, copies, kept, name, pruned }: Backup, time: string): JobResult {
  const { bytes, manifest, sha256 } = archive;
  const { database, database_missing, files, left_out, made } = manifest;
  const content = files.reduce((sum, { size }) => sum + size, 0);
  const what = `${name}, ${megabytes(bytes)} of ${megabytes(content)} in ${plural(files.length, 'file')}, read back and compared; ${plural(kept.length, 'backup')} kept`;
  const findings: Finding[] = [];
  if (database) {
    const counts = `${plural(database.samples, 'sample')} of ${plural(database.nodes.length, 'node')}, ${plural(database.episodes, 'alert episode')}`;
    findings.push({ status: 'OK', text: `backup: ${what}; ${counts}` });
  } else findings.push({ status: 'CRITICAL', text: `backup: WITHOUT a database: ${database_missing}. The rest is in ${what}` });
  const secrets = left_out.filter(({ reason }) => reason.startsWith(SECRET)).map((left) => left.what);
  if (secrets.length > 0) findings.push({ status: 'OK', text: `secrets left out: ${secrets.join(', ')}` });
  for (const { copied, problem, status, target } of copies) {
    const done = copied.length === 0 ? 'nothing new' : plural(copied.length, 'backup');
    const text = problem === null ? done : `${problem} (copied: ${done}); the next backup tries again`;
    findings.push({ status, text: `copy to ${target}: ${text}` });
  }
  const backup = { file: name, made, size_bytes: bytes, sha256, files: files.length, database, database_missing, left_out };
  return resultOf(findings, { time, backup, kept, pruned, copies });
}

/** Why no backup was made, and what to do; null: an unexpected error. */
function failure(error: Error, { config, signal }: JobContext, folder: string): string | null {
  if (signal.aborted)
    return `stopped before it was complete, nothing was left behind (${(signal.reason as Error).message}); raise ops.timeouts.backup_logs (${config.ops.timeouts.backup_logs} s) if it takes longer`;
  if (error instanceof NotEnoughSpace) return `not made: ${error.message}`;
  if (error instanceof Damaged) return `not kept, as it differed when read back; check the disk (dmesg): ${error.message}`;
  const problem = diskProblem(error, folder);
  return problem && `not made: ${problem}`;
}

function resultOf(findings: readonly Finding[], document: object): JobResult {
  const status = worst(findings.map((finding) => finding.status));
  const lines = findings.map((finding) => `${finding.status.padEnd(8)}  ${finding.text}`);
  return { status, lines, document: { status, findings, ...document } };
}

function plural(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

async function run(context: JobContext, { options }: JobArguments): Promise<JobResult> {
  const folder = backupFolder(context.dataFolder);
  if (options['dry-run']) return preview(context, folder);
  try {
    return reportOf(await backUp(context, folder), isoUtc(context.nowMs()));
  } catch (error) {
    const text = failure(error as Error, context, folder);
    if (text === null) throw error;
    return resultOf([{ status: 'CRITICAL', text: `backup: ${text}` }], { backup: null });
  }
}

export const backupLogs: Job = {
  name: 'backup_logs',
  summary: 'Makes a backup of database, metrics, alerts, logs, configuration and journal, and copies it to other places',
  usage: 'backup_logs [--dry-run]',
  help: `The archive <data>/backups/edge-health_<UTC time>.tar.zst gets its name after it was read back and compared; only then are backups beyond
ops.backup.keep removed. Files with secrets are left out. restore_backup restores it; \`tar --zstd -tf FILE\` lists it.

  --dry-run       only shows what it would do
`,
  options: { 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run,
};
