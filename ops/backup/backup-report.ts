import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isoUtc } from '../../src/core/time/time.ts';
import { diskProblem } from '../lib/files.ts';
import { type JobContext, type JobResult, type JobStatus, worst } from '../lib/job.ts';
import { collectFiles, SECRET } from './contents.ts';
import type { CopyOutcome } from './copies.ts';
import { COPIES, DATABASE_FILE } from './database.ts';
import { DiskSpace, expectedBytes, megabytes, NotEnoughSpace } from './disk-space.ts';
import { backupFolder, backupsIn, freeName, surplus } from './names.ts';
import { type CheckedArchive, Damaged } from './read-archive.ts';

interface Backup {
  readonly name: string;
  readonly archive: CheckedArchive;
  readonly pruned: readonly string[];
  /** All existing backups, newest first. */
  readonly kept: readonly string[];
  readonly copies: readonly CopyOutcome[];
}

interface Finding {
  readonly status: JobStatus;
  readonly text: string;
}

function resultOf(findings: readonly Finding[], document: object): JobResult {
  const status = worst(findings.map((finding) => finding.status));
  const lines = findings.map((finding) => `${finding.status.padEnd(8)}  ${finding.text}`);
  return { status, lines, document: { status, findings, ...document } };
}

function plural(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

export function reportOf({ archive, copies, kept, name, pruned }: Backup, nowMs: number): JobResult {
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
  return resultOf(findings, { time: isoUtc(nowMs), backup, kept, pruned, copies });
}

/** Describes what a backup would do now. */
export async function previewOf(context: JobContext): Promise<JobResult> {
  const { config, dataFolder, nowMs } = context;
  const { copy_to, keep, reserve_megabytes } = config.ops.backup;
  const folder = backupFolder(dataFolder);
  const names = await backupsIn(folder);
  const name = freeName(names, nowMs());
  const { bytes, leftOut, members } = await collectFiles(context);
  const what = `the database, ${plural(members.length, 'file')} (${megabytes(bytes)}) and the journal`;
  const findings: Finding[] = [{ status: 'OK', text: `backup: would make ${join(folder, name)} of ${what}` }];
  // The database may not exist yet, or only the service may be able to read it; then only the space for the archive is checked.
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

/** The result of a failed backup: the reason and the remedy. Rethrows an unexpected error. */
export function failureOf(error: Error, { config, dataFolder, signal }: JobContext): JobResult {
  const seconds = config.ops.timeouts.backup_logs;
  const disk = diskProblem(error, backupFolder(dataFolder));
  let text: string;
  if (signal.aborted)
    text = `stopped before it was complete, nothing was left behind (${(signal.reason as Error).message}); raise ops.timeouts.backup_logs (${seconds} s) if it takes longer`;
  else if (error instanceof NotEnoughSpace) text = `not made: ${error.message}`;
  else if (error instanceof Damaged) text = `discarded: it differed when read back; check the disk (dmesg): ${error.message}`;
  else if (disk !== null) text = `not made: ${disk}`;
  else throw error;
  return resultOf([{ status: 'CRITICAL', text: `backup: ${text}` }], { backup: null });
}
