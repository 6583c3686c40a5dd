import { realpathSync } from 'node:fs';
import { access, chmod, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { setTimeout as later } from 'node:timers/promises';
import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { SNAPSHOT_HEADER } from '../../src/core/snapshot.ts';
import { isoUtc } from '../../src/core/time.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { inspectDatabase } from '../../src/store/inspect.ts';
import { FILE_MODE } from '../lib/folder.ts';
import { type DiskSpace, NotEnoughSpace } from './disk-space.ts';
import type { DatabaseCounts } from './manifest.ts';

/** Copies of the database on the disk at one time: the service makes one, which it removes once it is sent, and the backup another. */
export const COPIES = 2;
const ATTEMPTS = 6;
const BETWEEN_ATTEMPTS_MS = 5000;
/** How long the service may take to make its copy: half a gigabyte on a slow card. */
const SNAPSHOT_SECONDS = 300;
/** SQLITE_BUSY and SQLITE_FULL, without what their extended codes add. */
const BUSY = 5;
const FULL = 13;
const PAGES_PER_STEP = 2000;

export const DATABASE_FILE = 'edge-health.db';

/** Where the copy of a database came from, or why there is none and what to do. */
export type Fetched = { readonly source: 'service' | 'file' } | { readonly source: null; readonly reason: string };

export interface FetchOptions {
  readonly rest: RestClient;
  readonly dataFolder: string;
  /** The file for the copy. */
  readonly target: string;
  readonly space: DiskSpace;
  readonly signal: AbortSignal;
  /** Between two attempts; shorter in tests. */
  readonly pauseMs?: number;
}

/** To be tried again: the service is just starting, another snapshot is being made, or the connection broke. */
class TryLater extends Error {}

/**
 * Makes a consistent copy of the database: a snapshot by the running service, which has the database for itself, or, when it does not run, a
 * copy of the file. What is not worth another attempt becomes a reason; NotEnoughSpace and errors of the disk are thrown.
 */
export async function fetchDatabase(options: FetchOptions): Promise<Fetched> {
  const { pauseMs = BETWEEN_ATTEMPTS_MS, signal, target } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await fetchSnapshot(options)) ?? (await copyFromFile(options));
    } catch (error) {
      await rm(target, { force: true });
      if (!(error instanceof TryLater)) throw error;
      if (attempt === ATTEMPTS) return { source: null, reason: `${error.message}; try again: edge-health ops backup_logs` };
      await later(pauseMs, undefined, { signal });
    }
  }
}

function isSamePath(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return a === b;
  }
}

/** Null: the service does not run. */
async function fetchSnapshot({ dataFolder, rest, signal, space, target }: FetchOptions): Promise<Fetched | null> {
  try {
    const { storage } = await rest.json<StatusDocument>('/status', { signal });
    if (!isSamePath(storage.path, join(dataFolder, DATABASE_FILE))) {
      const reason = `the service at ${rest.base} has its database in ${storage.path}, not in ${dataFolder}; see --config and --url`;
      return { source: null, reason };
    }
    if (storage.state === 'degraded') {
      const reason = `the service cannot use its database: ${storage.error}; edge-health ops health_check shows what to do`;
      return { source: null, reason };
    }
    await space.require(COPIES * (storage.size_bytes ?? 0));
    const response = await rest.stream('/snapshot', {
      signal,
      headers: { [SNAPSHOT_HEADER]: '1' },
      timeoutSeconds: SNAPSHOT_SECONDS,
    });
    const expected = Number(response.headers['content-length']);
    const handle = await open(target, 'w', FILE_MODE);
    try {
      // No fsync: it is read back at once and removed, so it need not reach the disk.
      const write = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
        for await (const chunk of space.guard(chunks)) await handle.writeFile(chunk);
      };
      await pipeline(response, write, { signal });
      const { size } = await handle.stat();
      if (Number.isFinite(expected) && size !== expected) throw new TryLater(`the snapshot broke off at ${size} of ${expected} bytes`);
    } finally {
      await handle.close();
    }
    return { source: 'service' };
  } catch (error) {
    signal.throwIfAborted();
    return reasonOf(error as Error, rest.base);
  }
}

function reasonOf(error: Error, base: string): Fetched | null {
  if (error instanceof ServiceUnreachable) return null;
  if (error instanceof ServiceRefused) {
    const { code, message, status } = error;
    if (status === 507) throw new NotEnoughSpace(`the service has not enough disk space for a snapshot of its database: ${message}`);
    if (status === 503 && code !== 'storage_unavailable') throw new TryLater(`the service did not send a snapshot: ${message}`);
    const remedy =
      status === 401 || status === 403
        ? 'run it on the machine of the service, or with the token of rest.token_file'
        : 'edge-health ops health_check shows what to do';
    return { source: null, reason: `the service at ${base} refused a snapshot of its database: ${message}; ${remedy}` };
  }
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE') throw new TryLater('the service broke off its snapshot');
  throw error;
}

async function copyFromFile({ dataFolder, signal, space, target }: FetchOptions): Promise<Fetched> {
  const path = join(dataFolder, DATABASE_FILE);
  try {
    await access(path);
  } catch (error) {
    const remedy = 'start the service (systemctl start edge-health, or npm start), or see --config and --url';
    const { code } = error as NodeJS.ErrnoException;
    return { source: null, reason: `${path} cannot be read (${code}), and the service does not answer; ${remedy}` };
  }
  let db: DatabaseSync | null = null;
  try {
    // Holds a read lock during the copy: a service that starts meanwhile finds the database busy, keeps its samples and tries again.
    db = new DatabaseSync(path, { readOnly: true, timeout: 200 });
    const { bytes } = db.prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size').get() as {
      bytes: number;
    };
    await space.require(bytes);
    await backup(db, target, { rate: PAGES_PER_STEP, progress: () => signal.throwIfAborted() });
    return { source: 'file' };
  } catch (error) {
    const { errcode, message } = error as Error & { errcode?: number };
    if (errcode === undefined) throw error;
    if (errcode % 256 === BUSY)
      throw new TryLater(`another process has the database ${path} open, but the service does not answer over REST`);
    if (errcode % 256 === FULL) throw new NotEnoughSpace(`not enough disk space for a copy of ${path}; remove what is not needed there`);
    return { source: null, reason: damaged(message, path) };
  } finally {
    db?.close();
  }
}

function damaged(problem: string, path: string): string {
  return `${path}: ${problem.replaceAll(/\s+/g, ' ')}; restore the last good backup: edge-health ops restore_backup`;
}

/** Checks the copy and counts what it holds. A damaged copy is no backup: the manifest then has the reason in its place. */
export async function inspectCopy(
  fetched: Fetched,
  copy: string,
): Promise<{ readonly counts: DatabaseCounts | null; readonly missing: string | null }> {
  if (fetched.source === null) return { counts: null, missing: fetched.reason };
  await chmod(copy, FILE_MODE);
  const instant = (ms: number | null): string | null => (ms === null ? null : isoUtc(ms));
  try {
    const { alertChanges, episodes, nodes, openEpisodes, schemaVersion } = inspectDatabase(copy, { thorough: false });
    const counts: DatabaseCounts = {
      source: fetched.source,
      schema_version: schemaVersion,
      nodes: nodes.map(({ firstMs, lastMs, node, samples }) => ({ node, samples, first: instant(firstMs), last: instant(lastMs) })),
      samples: nodes.reduce((sum, { samples }) => sum + samples, 0),
      episodes,
      open_episodes: openEpisodes,
      alert_changes: alertChanges,
    };
    return { counts, missing: null };
  } catch (error) {
    return { counts: null, missing: damaged((error as Error).message, 'the copy of the database cannot be used') };
  }
}
