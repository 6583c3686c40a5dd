import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { isoUtc } from '../../src/core/time.ts';
import { type DatabaseFacts, inspectDatabase } from '../../src/store/inspect.ts';
import { syncFolder } from '../../src/system/atomic-file.ts';
import { FILE_MODE, makeFolder } from '../lib/folder.ts';
import type { JobContext } from '../lib/job.ts';
import { gatherContents } from './contents.ts';
import { type Fetched, fetchDatabase } from './database.ts';
import { readJournal } from './journal.ts';
import { DATABASE, type DatabaseCounts, type LeftOut, type Manifest } from './manifest.ts';
import { freeName, isPartial, newestFirst, surplus, timeOfBackup } from './names.ts';
import { readArchive } from './read-archive.ts';
import { NoRoom, Room } from './room.ts';
import { type Member, ShrunkWhileRead, writeArchive } from './write-archive.ts';

const ATTEMPTS = 3;
const BETWEEN_ATTEMPTS_MS = 2000;

export interface Made {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly manifest: Manifest;
  /** Older ones that gave way. */
  readonly pruned: readonly string[];
  /** All that there are now, the newest first. */
  readonly kept: readonly string[];
}

/** Where a data folder's backups lie. */
export function backupFolder(dataFolder: string): string {
  return join(dataFolder, 'backups');
}

/** Names of the backups in a folder; none where it is not there. */
export async function backupsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter((name) => timeOfBackup(name) !== null);
}

export function roomFor({ config, dataFolder }: JobContext, folder = backupFolder(dataFolder)): Room {
  return new Room(folder, config.ops.backup.reserve_megabytes * 1e6);
}

/** What an archive will take at most, before it is known: the last one and a quarter of it, or half of what goes in. */
export async function expectedBytes(folder: string, newest: string | undefined, contentBytes: number): Promise<number> {
  if (newest === undefined) return Math.ceil(contentBytes / 2);
  return Math.ceil(1.25 * (await stat(join(folder, newest))).size);
}

function countsOf(
  { alertChanges, episodes, nodes, openEpisodes, schemaVersion }: DatabaseFacts,
  source: 'service' | 'file',
): DatabaseCounts {
  const instant = (ms: number | null): string | null => (ms === null ? null : isoUtc(ms));
  return {
    source,
    schema_version: schemaVersion,
    nodes: nodes.map(({ firstMs, lastMs, node, samples }) => ({ node, samples, first: instant(firstMs), last: instant(lastMs) })),
    samples: nodes.reduce((sum, { samples }) => sum + samples, 0),
    episodes,
    open_episodes: openEpisodes,
    alert_changes: alertChanges,
  };
}

/** Removes what interrupted runs left. Nobody else may be making a backup. */
async function removePartials(folder: string): Promise<void> {
  for (const name of await readdir(folder)) if (isPartial(name)) await rm(join(folder, name), { force: true });
}

/**
 * Makes one backup: the database's copy, checked; the archive, under a name that says it is not done; the same read back and compared; and
 * only then its own name, and an end to what is beyond the number to keep. Throws NoRoom, errors of the disk, and the signal's reason;
 * nothing is left behind then.
 */
export async function makeBackup(context: JobContext): Promise<Made> {
  const { dataFolder, nowMs, signal } = context;
  const folder = backupFolder(dataFolder);
  await makeFolder(folder);
  await removePartials(folder);
  const before = await backupsIn(folder);
  const name = freeName(before, nowMs());
  try {
    await requireRoom(context, folder, before, name);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await attemptBackup(context, folder, name);
      } catch (error) {
        if (!(error instanceof ShrunkWhileRead) || attempt === ATTEMPTS) throw error;
        await removePartials(folder);
        await later(BETWEEN_ATTEMPTS_MS, undefined, { signal });
      }
    }
  } finally {
    await removePartials(folder);
  }
}

/** More than are to be kept may go where there is no room; those that are to be kept stay until there is a newer one. */
async function requireRoom(context: JobContext, folder: string, there: readonly string[], next: string): Promise<void> {
  const { config, configFile, dataFolder } = context;
  const { bytes } = await gatherContents(config, configFile, dataFolder);
  const needed = await expectedBytes(folder, newestFirst(there, next)[0], bytes);
  try {
    await roomFor(context).require(needed);
  } catch (error) {
    const old = surplus(there, next, config.ops.backup.keep);
    if (!(error instanceof NoRoom) || old.length === 0) throw error;
    for (const one of old) await rm(join(folder, one), { force: true });
    await roomFor(context).require(needed);
  }
}

async function attemptBackup(context: JobContext, folder: string, name: string): Promise<Made> {
  const { config, configFile, dataFolder, environment, nowMs, progress, rest, signal, version } = context;
  const base = join(folder, name.replace(/\.tar\.zst$/, ''));
  const copy = `${base}.db.partial`;
  const partial = `${base}.tar.zst.partial`;
  const madeMs = nowMs();
  progress('backup: database');
  const room = roomFor(context);
  const fetched = await fetchDatabase({ rest, dataFolder, target: copy, room, signal });
  const { counts, missing } = await inspected(fetched, copy);
  signal.throwIfAborted();
  const contents = await gatherContents(config, configFile, dataFolder);
  const leftOut: LeftOut[] = [...contents.leftOut];
  const members: Member[] = counts ? [{ name: DATABASE, content: copy }] : [];
  members.push(...contents.members);
  const hours = config.ops.backup.journal_hours;
  const journal = hours === 0 ? { reason: 'ops.backup.journal_hours is 0' } : await readJournal(hours, environment, signal);
  if ('text' in journal) members.push({ name: 'journal/edge-health.log', content: journal.text });
  else leftOut.push({ what: 'the journal', reason: journal.reason });
  const manifest = (files: Manifest['files']): string =>
    `${JSON.stringify(
      {
        format: 'edge-health backup',
        format_version: 1,
        product_version: version,
        host: hostname(),
        made: isoUtc(madeMs),
        database: counts,
        database_missing: missing,
        left_out: leftOut,
        files,
      } satisfies Manifest,
      null,
      1,
    )}\n`;
  await writeArchive(partial, {
    members,
    manifest: (files) => manifest([...files]),
    room,
    nowMs: madeMs,
    signal,
    progress: (file) => progress(`backup: ${file}`),
  });
  progress('backup: reading back');
  const checked = await readArchive(partial, undefined, signal);
  await rename(partial, join(folder, name));
  await syncFolder(folder);
  const all = await backupsIn(folder);
  const pruned = surplus(all, name, config.ops.backup.keep);
  for (const old of pruned) await rm(join(folder, old), { force: true });
  const kept = newestFirst(all, name).filter((one) => !pruned.includes(one));
  return { name, bytes: checked.bytes, sha256: checked.sha256, manifest: checked.manifest, pruned, kept };
}

/** A copy that is damaged is no backup: better none, which is said, than one that nobody can use. */
async function inspected(fetched: Fetched, copy: string): Promise<{ counts: DatabaseCounts | null; missing: string | null }> {
  if (fetched.source === null) return { counts: null, missing: fetched.reason };
  const handle = await open(copy, 'r+');
  await handle.chmod(FILE_MODE).finally(() => handle.close());
  try {
    return { counts: countsOf(inspectDatabase(copy, { thorough: false }), fetched.source), missing: null };
  } catch (error) {
    return { counts: null, missing: `the copy of the database cannot be used: ${(error as Error).message}` };
  }
}
