import { access, chmod, open, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { setTimeout as later } from 'node:timers/promises';
import { type StatusDocument, statusDocumentSchema } from '../../src/client/documents.ts';
import { inspectDatabase } from '../../src/client/inspect-database.ts';
import { ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { SNAPSHOT_HEADER } from '../../src/core/snapshot.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { FILE_MODE } from '../lib/files.ts';
import type { JobContext } from '../lib/job.ts';
import { type DiskSpace, NotEnoughSpace } from './disk-space.ts';
import type { DatabaseFacts } from './manifest.ts';

export const DATABASE_FILE = 'edge-health.db';
/** Copies of the database on the disk at the same time: one that the service makes and removes after sending it, and the backup's own. */
export const COPIES = 2;
const ATTEMPTS = 6;
const BETWEEN_ATTEMPTS_MS = 5000;
/** Timeout for the service to make its copy; enough for half a gigabyte on a slow card. */
const SNAPSHOT_SECONDS = 300;
/** SQLITE_BUSY and SQLITE_FULL as primary codes, without the bits of extended codes. */
const BUSY = 5;
const FULL = 13;
const PAGES_PER_STEP = 2000;

/** Where the copy of a database came from, or why there is none and what to do. */
type Fetched = { readonly source: 'service' | 'file' } | { readonly source: null; readonly reason: string };

interface FetchOptions extends Pick<JobContext, 'dataFolder' | 'rest' | 'signal'> {
  /** The file to write the copy to. */
  readonly target: string;
  readonly space: DiskSpace;
  /** Pause between two attempts; shorter in tests. */
  readonly pauseMs?: number;
}

/** A retry may succeed: the service is starting, another snapshot is in progress, or the connection broke. */
class TryLater extends Error {}

/** No copy is possible, and a retry would not change that. The message gives the reason and what to do. */
class NoDatabase extends Error {}

/**
 * Makes a consistent copy of the database: a snapshot by the running service, which holds the database exclusively, or a copy of the file
 * if the service is not running. Returns a reason for failures that a retry would not fix; throws NotEnoughSpace and disk errors.
 */
export async function fetchDatabase(options: FetchOptions): Promise<Fetched> {
  const { pauseMs = BETWEEN_ATTEMPTS_MS, signal, target } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (await fetchSnapshot(options)) return { source: 'service' };
      await copyFile(options);
      return { source: 'file' };
    } catch (error) {
      await rm(target, { force: true });
      if (error instanceof NoDatabase) return { source: null, reason: error.message };
      if (!(error instanceof TryLater)) throw error;
      if (attempt === ATTEMPTS) return { source: null, reason: `${error.message}; try again: edge-health ops backup_logs` };
      await later(pauseMs, undefined, { signal });
    }
  }
}

/** Returns false if the service is not running. */
async function fetchSnapshot({ dataFolder, rest, signal, space, target }: FetchOptions): Promise<boolean> {
  try {
    const { storage } = await rest.json<StatusDocument>('/status', { signal, schema: statusDocumentSchema });
    if ((await resolved(storage.path)) !== (await resolved(join(dataFolder, DATABASE_FILE))))
      throw new NoDatabase(`the service at ${rest.base} has its database in ${storage.path}, not in ${dataFolder}; see --config and --url`);
    if (storage.state === 'degraded')
      throw new NoDatabase(`the service cannot use its database: ${storage.error}; edge-health ops health_check shows what to do`);
    await space.require(COPIES * (storage.size_bytes ?? 0));
    const headers = { [SNAPSHOT_HEADER]: '1' };
    const response = await rest.stream('/snapshot', { signal, headers, timeoutSeconds: SNAPSHOT_SECONDS });
    await using file = await open(target, 'w', FILE_MODE);
    // No fsync: the file is read back at once and removed, so it need not reach the disk.
    await pipeline(response, space.writerTo(file), { signal });
    const expected = Number(response.headers['content-length']);
    const { size } = await file.stat();
    if (Number.isFinite(expected) && size !== expected) throw new TryLater(`the snapshot ended at ${size} of ${expected} bytes`);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ServiceUnreachable) return false;
    if (error instanceof ServiceRefused) throw refusalOf(error, rest.base);
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE') throw new TryLater('the service ended its snapshot early');
    throw error;
  }
}

function resolved(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

function refusalOf({ code, message, status }: ServiceRefused, base: string): Error {
  if (status === 507) return new NotEnoughSpace(`the service has not enough disk space for a snapshot of its database: ${message}`);
  if (status === 503 && code !== 'storage_unavailable') return new TryLater(`the service did not send a snapshot: ${message}`);
  const remedy =
    status === 401 || status === 403
      ? 'run it on the machine of the service, or with the token of rest.token_file'
      : 'edge-health ops health_check shows what to do';
  return new NoDatabase(`the service at ${base} refused a snapshot of its database: ${message}; ${remedy}`);
}

async function copyFile({ dataFolder, signal, space, target }: FetchOptions): Promise<void> {
  const path = join(dataFolder, DATABASE_FILE);
  await access(path).catch(({ code }: NodeJS.ErrnoException) => {
    const remedy = 'start the service (systemctl start edge-health, or npm start), or see --config and --url';
    throw new NoDatabase(`${path} cannot be read (${code}), and the service does not respond; ${remedy}`);
  });
  try {
    // Holds a read lock during the copy: a service that starts in the meantime finds the database busy, buffers its samples and retries.
    using db = new DatabaseSync(path, { readOnly: true, timeout: 200 });
    const size = db.prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size');
    await space.require(Number(size.get()?.['bytes']));
    await backup(db, target, { rate: PAGES_PER_STEP, progress: () => signal.throwIfAborted() });
  } catch (error) {
    const { errcode, message } = error as Error & { errcode?: number };
    if (errcode === undefined) throw error;
    if (errcode % 256 === BUSY)
      throw new TryLater(`another process has the database ${path} open, but no service responds that runs with this configuration`);
    if (errcode % 256 === FULL) throw new NotEnoughSpace(`not enough disk space for a copy of ${path}; remove what is not needed there`);
    throw new NoDatabase(damaged(message, path));
  }
}

function damaged(problem: string, path: string): string {
  return `${path}: ${problem.replaceAll(/\s+/g, ' ')}; restore the last good backup: edge-health ops restore_backup`;
}

/** Copies the database, checks the copy and counts its contents. A damaged copy is not accepted as a backup. */
export async function copyDatabase(options: FetchOptions): Promise<DatabaseFacts> {
  const fetched = await fetchDatabase(options);
  options.signal.throwIfAborted();
  if (fetched.source === null) return { database: null, database_missing: fetched.reason };
  await chmod(options.target, FILE_MODE);
  const instant = (ms: number | null): string | null => (ms === null ? null : isoUtc(ms));
  try {
    const { alertChanges, episodes, nodes, openEpisodes, schemaVersion } = inspectDatabase(options.target, { thorough: false });
    const database = {
      source: fetched.source,
      schema_version: schemaVersion,
      nodes: nodes.map(({ firstMs, lastMs, node, samples }) => ({ node, samples, first: instant(firstMs), last: instant(lastMs) })),
      samples: nodes.reduce((sum, { samples }) => sum + samples, 0),
      episodes,
      open_episodes: openEpisodes,
      alert_changes: alertChanges,
    };
    return { database, database_missing: null };
  } catch (error) {
    return { database: null, database_missing: damaged((error as Error).message, 'the copy of the database cannot be used') };
  }
}
