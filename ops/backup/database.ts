import { realpathSync } from 'node:fs';
import { access, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { setTimeout as later } from 'node:timers/promises';
import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { SNAPSHOT_HEADER } from '../../src/core/snapshot.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { FILE_MODE } from '../lib/folder.ts';
import { NoRoom, type Room } from './room.ts';

/** How often the database may lie on the disk beside itself: the service makes a copy, which is gone once it was sent, and so do we. */
export const COPIES = 2;
const ATTEMPTS = 6;
const BETWEEN_ATTEMPTS_MS = 5000;
/** How long the service may take to make its copy: a slow card, half a gigabyte. */
const SNAPSHOT_SECONDS = 300;
/** SQLITE_BUSY and SQLITE_FULL, without what their extended codes add. */
const BUSY = 5;
const FULL = 13;
const PAGES_A_STEP = 2000;

export const DATABASE_FILE = 'edge-health.db';

/** Where the copy of a database came from, or why there is none. */
export type Fetched = { readonly source: 'service' | 'file' } | { readonly source: null; readonly reason: string };

export interface FetchOptions {
  readonly rest: RestClient;
  readonly dataFolder: string;
  /** Where the copy goes. */
  readonly target: string;
  readonly room: Room;
  readonly signal: AbortSignal;
  /** Between two attempts; shorter in tests. */
  readonly pauseMs?: number;
}

/** Not now: the service is just starting, another snapshot is being made, or the connection broke. */
class Later extends Error {}

/**
 * Puts a consistent copy of the database into a file: by the running service, which has the database for itself, or, when it does not run,
 * from the file. What makes no sense to try again is a reason; NoRoom and errors of the disk are thrown.
 */
export async function fetchDatabase(options: FetchOptions): Promise<Fetched> {
  const { pauseMs = BETWEEN_ATTEMPTS_MS, signal, target } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await fromService(options)) ?? (await fromFile(options));
    } catch (error) {
      await rm(target, { force: true });
      if (!(error instanceof Later)) throw error;
      if (attempt === ATTEMPTS) return { source: null, reason: error.message };
      await later(pauseMs, undefined, { signal });
    }
  }
}

function same(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return a === b;
  }
}

/** Null: the service does not run. */
async function fromService(options: FetchOptions): Promise<Fetched | null> {
  const { dataFolder, rest, room, signal, target } = options;
  try {
    const { storage } = await rest.json<StatusDocument>('/status', { signal });
    if (!same(storage.path, join(dataFolder, DATABASE_FILE))) {
      const reason = `the service at ${rest.base} has its database in ${storage.path}, not in ${dataFolder}; see --config and --url`;
      return { source: null, reason };
    }
    if (storage.state === 'degraded') return { source: null, reason: `the service cannot use its database: ${storage.error}` };
    await room.require(COPIES * (storage.size_bytes ?? 0));
    const response = await rest.stream('/snapshot', {
      signal,
      headers: { [SNAPSHOT_HEADER]: '1' },
      timeoutSeconds: SNAPSHOT_SECONDS,
    });
    const expected = Number(response.headers['content-length']);
    const handle = await open(target, 'w', FILE_MODE);
    try {
      // No fsync: it is read back at once and removed, and so need never reach the disk.
      await pipeline(
        response,
        async (chunks: AsyncIterable<Buffer>) => {
          for await (const chunk of room.guard(chunks)) await handle.writeFile(chunk);
        },
        { signal },
      );
      const { size } = await handle.stat();
      if (Number.isFinite(expected) && size !== expected) throw new Later(`the snapshot broke off at ${size} of ${expected} bytes`);
    } finally {
      await handle.close();
    }
    return { source: 'service' };
  } catch (error) {
    return whyNot(error as Error, rest.base, signal);
  }
}

function whyNot(error: Error, base: string, signal: AbortSignal): Fetched | null {
  signal.throwIfAborted();
  if (error instanceof ServiceUnreachable) return null;
  if (error instanceof ServiceRefused) {
    if (error.status === 507) throw new NoRoom(`the service has no room for a snapshot of its database: ${error.message}`);
    if (error.status === 503 && error.code !== 'storage_unavailable')
      throw new Later(`the service did not give a snapshot: ${error.message}`);
    const remedy =
      error.status === 401 || error.status === 403
        ? '; snapshots go to this machine alone, or to who has the token of rest.token_file'
        : '';
    return { source: null, reason: `the service at ${base} refused a snapshot of its database: ${error.message}${remedy}` };
  }
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE') throw new Later('the service broke off its snapshot');
  throw error;
}

async function fromFile({ dataFolder, room, signal, target }: FetchOptions): Promise<Fetched> {
  const path = join(dataFolder, DATABASE_FILE);
  try {
    await access(path);
  } catch (error) {
    return { source: null, reason: `${path} cannot be read (${(error as NodeJS.ErrnoException).code}), and the service does not answer` };
  }
  let db: DatabaseSync | null = null;
  try {
    // A read lock for the time of the copy: a service that starts meanwhile finds it busy, keeps its samples waiting and comes back.
    db = new DatabaseSync(path, { readOnly: true, timeout: 200 });
    const { bytes } = db.prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size').get() as {
      bytes: number;
    };
    await room.require(bytes);
    await backup(db, target, { rate: PAGES_A_STEP, progress: () => signal.throwIfAborted() });
    return { source: 'file' };
  } catch (error) {
    const { errcode, message } = error as Error & { errcode?: number };
    if (errcode === undefined) throw error;
    if (errcode % 256 === BUSY) throw new Later(`somebody has the database ${path} open, but the service does not answer over REST`);
    if (errcode % 256 === FULL) throw new NoRoom(`there is no room for a copy of ${path}; remove what is not needed on that disk`);
    return { source: null, reason: `${path}: ${message}` };
  } finally {
    db?.close();
  }
}
