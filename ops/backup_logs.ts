import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isoUtc } from '../src/core/time.ts';
import { gatherContents, SECRET } from './backup/contents.ts';
import { copyBackups } from './backup/copies.ts';
import { COPIES, DATABASE_FILE } from './backup/database.ts';
import { backupFolder, backupsIn, expectedBytes, type Made, makeBackup, roomFor } from './backup/make-backup.ts';
import { freeName, newestFirst, surplus } from './backup/names.ts';
import { Damaged } from './backup/read-archive.ts';
import { megabytes, NoRoom } from './backup/room.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { makeFolder } from './lib/folder.ts';
import { type Job, type JobArguments, type JobContext, type JobResult, type JobStatus, worst } from './lib/job.ts';

interface Finding {
  readonly status: JobStatus;
  readonly text: string;
}

function plural(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

function outcomeOf(findings: readonly Finding[], document: object): JobResult {
  const status = worst(findings.map((finding) => finding.status));
  const lines = findings.map((finding) => `${finding.status.padEnd(8)}  ${finding.text}`);
  return { status, lines, document: { status, findings, ...document } };
}

/** What a run that made no backup says; null: nobody foresaw it. */
function failure(error: Error, { config, dataFolder, signal }: JobContext): Finding | null {
  if (signal.aborted)
    return {
      status: 'CRITICAL',
      text: `backup: ended before it was done, nothing was kept of it (${(signal.reason as Error).message}); raise ops.deadlines.backup_logs (${config.ops.deadlines.backup_logs} s) if it takes longer`,
    };
  if (error instanceof NoRoom) return { status: 'CRITICAL', text: `backup: not made: ${error.message}` };
  if (error instanceof Damaged)
    return {
      status: 'CRITICAL',
      text: `backup: not kept, as it was not the same when read back; look at the disk (dmesg): ${error.message}`,
    };
  const problem = diskProblem(error, backupFolder(dataFolder));
  return problem === null ? null : { status: 'CRITICAL', text: `backup: not made: ${problem}` };
}

function told({ bytes, kept, manifest, name }: Made): Finding[] {
  const { database, files } = manifest;
  const content = files.reduce((sum, { size }) => sum + size, 0);
  const what = `${name}, ${megabytes(bytes)} of ${megabytes(content)} in ${plural(files.length, 'file')}, read back and compared; ${plural(kept.length, 'backup')} kept`;
  if (!database) return [{ status: 'WARNING', text: `backup: ${what}; WITHOUT a database: ${manifest.database_missing}` }];
  const counts = `${plural(database.samples, 'sample')} of ${plural(database.nodes.length, 'node')}, ${plural(database.episodes, 'alert episode')}`;
  const secrets = manifest.left_out.filter(({ reason }) => reason.startsWith(SECRET)).map((left) => left.what);
  return [
    { status: 'OK', text: `backup: ${what}; ${counts}` },
    ...(secrets.length > 0 ? [{ status: 'OK', text: `secrets left out: ${secrets.join(', ')}` } as const] : []),
  ];
}

async function copied(context: JobContext, made: Made): Promise<{ findings: Finding[]; copies: unknown }> {
  const { config, dataFolder, environment, progress, signal } = context;
  const folder = backupFolder(dataFolder);
  const copies = await copyBackups({ config, environment, folder, names: made.kept, newest: made.name, signal, progress });
  const findings = copies.map(({ copied: names, problem, status, target }): Finding => {
    const done = names.length === 0 ? 'nothing new' : plural(names.length, 'backup');
    return {
      status,
      text:
        problem === null
          ? `copy to ${target}: ${done}`
          : `copy to ${target}: ${problem} (copied: ${done}); it is tried again with the next backup`,
    };
  });
  return { findings, copies };
}

async function preview(context: JobContext): Promise<JobResult> {
  const { config, configFile, dataFolder, nowMs } = context;
  const folder = backupFolder(dataFolder);
  const { copy_to, keep } = config.ops.backup;
  const names = await backupsIn(folder);
  const name = freeName(names, nowMs());
  const { bytes, leftOut, members } = await gatherContents(config, configFile, dataFolder);
  const findings: Finding[] = [
    {
      status: 'OK',
      text: `backup: would make ${join(folder, name)} of the database, ${plural(members.length, 'file')} (${megabytes(bytes)}) and the journal`,
    },
  ];
  // None yet, or the service's alone to see: then the archive's own room is all that is asked for.
  const database = (await stat(join(dataFolder, DATABASE_FILE)).catch(() => null))?.size ?? 0;
  try {
    const needed = await expectedBytes(folder, newestFirst(names, name)[0], database + bytes);
    await roomFor(context, names.length > 0 ? folder : dataFolder).require(Math.max(needed, COPIES * database));
  } catch (error) {
    if (!(error instanceof NoRoom)) throw error;
    findings.push({ status: 'CRITICAL', text: `backup: there is no room: ${error.message}` });
  }
  const pruned = surplus([...names, name], name, keep);
  for (const old of pruned) findings.push({ status: 'OK', text: `backup: would remove ${old} (ops.backup.keep: ${keep})` });
  for (const target of copy_to) findings.push({ status: 'OK', text: `copy to ${target}: would be brought up to date` });
  const files = members.map((member) => member.name);
  return outcomeOf(findings, { would_make: name, files, left_out: leftOut, would_prune: pruned, copy_to });
}

async function run(context: JobContext, { options }: JobArguments): Promise<JobResult> {
  if (options['dry-run']) return preview(context);
  let made: Made;
  try {
    await makeFolder(context.dataFolder);
    made = await makeBackup(context);
  } catch (error) {
    const finding = failure(error as Error, context);
    if (!finding) throw error;
    return outcomeOf([finding], { backup: null });
  }
  const { findings, copies } = await copied(context, made);
  const { bytes, kept, manifest, name, pruned, sha256 } = made;
  const { database, database_missing, files, left_out } = manifest;
  const backup = { file: name, made: manifest.made, size_bytes: bytes, sha256, files: files.length, database, database_missing, left_out };
  return outcomeOf([...told(made), ...findings], { time: isoUtc(context.nowMs()), backup, kept, pruned, copies });
}

export const backupLogs: Job = {
  name: 'backup_logs',
  summary: 'Makes a backup of database, metrics, alerts, logs, configuration and journal, and copies it elsewhere',
  usage: 'backup_logs [--dry-run]',
  help: `The archive <data>/backups/edge-health_<UTC time>.tar.zst gets its name once it was read back and compared; only then older ones beyond
ops.backup.keep are removed. Files with secrets stay out. restore_backup puts it back; \`tar --zstd -tf FILE\` looks into it.

  --dry-run       only says what it would do
`,
  options: { 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run,
};
