import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { parentPort } from 'node:worker_threads';
import { prepareDataFolder } from '../../core/files/data-folder.ts';
import { DataFolderInUse, lockDataFolder } from '../../core/files/lock.ts';
import { METRICS } from '../../core/metrics.ts';
import { copyDatabase, removeLeftovers } from '../backup/copy.ts';
import { Archive } from '../database/archive.ts';
import { isDamage } from '../database/database.ts';
import { aggregate, history } from '../queries/queries.ts';
import { recorded } from '../queries/recorded.ts';
import type { Columns } from '../samples/chunk.ts';
import type { Answer, OpenAnswer, OpenRequest, Operation, Operations, Reply, Request, Written } from './protocol.ts';

/**
 * The thread that owns the database. Delays of a slow card, a full disk or a long query stay in this thread; the sampling loop only posts
 * messages.
 */
const port = parentPort;
if (!port) throw new Error('the store worker is started by the store');
const post = (reply: Reply): void => port.postMessage(reply);

let archive: Archive | null = null;
let node = '';
let folder = '';
let lock: DatabaseSync | null = null;

function opened(): Archive {
  if (!archive) throw new Error('the database is not open');
  return archive;
}

function written(): Written {
  return reading((store) => ({
    sizeBytes: store.size().totalBytes,
    oldestSampleMs: store.firstSampleMs(node),
    alertsNotStored: store.alertsNotStored,
  }));
}

function readableMetrics(columns: Columns | null): ReadonlySet<string> {
  return new Set(METRICS.filter((_, m) => columns?.metrics[m]?.some((value) => !Number.isNaN(value))));
}

/**
 * Locks the folder, opens the database and loads the spool of a killed run. A folder locked by another process is an error. A database
 * that cannot be opened yet is not: `problem` holds the reason, and the next commit retries.
 */
function open(request: OpenRequest): OpenAnswer {
  folder = dirname(request.path);
  node = request.node;
  const store = new Archive({
    path: request.path,
    maxBytes: request.maxBytes,
    localNode: request.node,
    nowMs: Date.now,
    beforeOpen: lockFolder,
    onQuarantined: (path, reason) => post({ quarantined: { path, reason } }),
  });
  let problem: string | null = null;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (error instanceof DataFolderInUse) throw error;
      problem ??= (error as Error).message;
    }
  };
  attempt(() => store.open());
  archive = store;
  let recovered = 0;
  for (const { segment, alerts, shutdowns, samples } of request.leftovers) {
    for (const { sequence, alert } of alerts) attempt(() => store.saveAlert(alert, { segment, sequence }));
    for (const record of shutdowns) attempt(() => store.saveShutdown(record));
    for (const { node: name, columns } of samples) {
      if (columns.count === 0 || store.samples.hasSegment(segment, name)) continue;
      // A newcomer starts over in every run. Only the open database knows which nodes are not newcomers.
      if (store.isOpen && !store.isStored(name)) continue;
      store.append(segment, name, columns, true);
      recovered += columns.count;
    }
  }
  const last = request.leftovers.at(-1);
  if (last && store.isOpen) attempt(() => store.commit(last.segment));
  attempt(() => store.setRate(node, request.hertz));
  return reading(() => ({
    ...written(),
    problem,
    openAlerts: store.alerts.open(),
    readableMetrics: readableMetrics(store.samples.newestChunk(node)),
    nodes: store.nodes(),
    remoteNodes: store.remoteNodes(),
    lastSegment: store.lastSegment(),
    recovered,
  }));
}

/** The snapshot in progress. */
let copying: { isWanted: boolean; readonly done: Promise<void> } | null = null;

async function snapshot(path: string): Promise<void> {
  if (copying) throw new Error('another snapshot is in progress; try again later');
  const { db } = opened();
  if (!opened().isOpen) throw new Error('the database is not open');
  // `db` keeps the connection referenced: it must not be garbage-collected before its backup ends.
  const isCurrent = (): boolean => copying?.isWanted === true && archive?.db === db;
  const done = copyDatabase(db, { path, isWanted: isCurrent, onPiece: () => post({ progress: true }) });
  copying = { isWanted: true, done: done.catch(() => undefined) };
  try {
    await done;
  } finally {
    copying = null;
  }
}

function cancelSnapshot(): Promise<void> | undefined {
  if (copying) copying.isWanted = false;
  return copying?.done;
}

/**
 * Locks the folder before its database is opened. On a full disk, or in a folder that cannot be written, this fails and is retried at the
 * next commit.
 */
function lockFolder(): void {
  if (lock) return;
  try {
    lock = lockDataFolder(folder);
  } catch (error) {
    const problem = error instanceof DataFolderInUse ? null : prepareDataFolder(folder, process.env);
    throw problem === null ? error : new Error(problem.text);
  }
  removeLeftovers(folder);
}

/** Databases below this size are checked completely once after opening; damage in a larger one is detected when a query encounters it. */
const CHECK_BELOW_BYTES = 64 * 1024 * 1024;

function checkDatabase(path: string): void {
  const store = archive;
  if (!store?.isOpen) return;
  try {
    if (statSync(path).size > CHECK_BELOW_BYTES) return;
    const row = reading(({ db }) => db.prepare('PRAGMA quick_check(1)').get() as { quick_check: string });
    if (row.quick_check !== 'ok') store.replaceDamaged(row.quick_check);
  } catch {
    // The next commit encounters the same problem and reports it.
  }
}

/** Runs a query. If it encounters damage, the database is quarantined and the query runs on the new one. */
function reading<T>(read: (store: Archive) => T): T {
  try {
    return read(opened());
  } catch (error) {
    if (!isDamage(error)) throw error;
    opened().replaceDamaged((error as Error).message);
    return read(opened());
  }
}

const handlers: { [O in Operation]: (body: Operations[O]['request']) => Answer<O> | Promise<Answer<O>> } = {
  open: (body) => {
    const answer = open(body);
    setImmediate(() => checkDatabase(body.path));
    return answer;
  },
  append: ({ segment, node: name, columns, isNewcomer }) => opened().append(segment, name, columns, isNewcomer),
  commit: ({ segment }) => {
    const store = opened();
    const before = store.isOpen;
    store.commit(segment);
    // The database was opened only now: its open episodes and remote nodes are new to the service.
    return before
      ? written()
      : { ...written(), openAlerts: store.openEpisodesFound, remoteNodes: store.remoteNodes(), lastSegment: store.lastSegment() };
  },
  forget: ({ segment }) => opened().forget(segment),
  drop: ({ node: name }) => opened().drop(name),
  alert: ({ alert, cursor }) => opened().saveAlert(alert, cursor),
  rate: ({ node: name, hertz, sinceMs }) => opened().setRate(name, hertz, sinceMs),
  clockEvent: (event) => opened().saveClockEvent(event),
  correctAlerts: (correction) => opened().correctAlerts(correction),
  shutdown: (record) => opened().saveShutdown(record),
  history: (query) => reading((store) => history(store, query)),
  aggregate: (query) => reading((store) => aggregate(store, query, Date.now())),
  alerts: (query) => reading((store) => store.alerts.list(query)),
  recorded: (query) => reading((store) => recorded(store, query)),
  clockEvents: ({ limit }) => opened().sampling.clockEvents.slice(-limit).reverse(),
  shutdowns: (query) => reading((store) => store.shutdowns.list(query)),
  snapshot: ({ path }) => snapshot(path),
  cancelSnapshot: () => void cancelSnapshot(),
  close: async () => {
    // A connection with a running backup would stay open, and the folder locked, after close().
    await cancelSnapshot();
    try {
      archive?.close();
    } finally {
      archive = null;
      lock?.close();
      lock = null;
    }
  },
};

function fail(id: number, { message, name }: Error): void {
  post({ id, ok: false, error: message, name });
}

port.on('message', ({ id, operation, body }: Request) => {
  try {
    const handler = handlers[operation] as (body: unknown) => unknown;
    const answer = handler(body);
    if (answer instanceof Promise) {
      answer.then(
        (later: unknown) => post({ id, ok: true, body: later }),
        (error: Error) => fail(id, error),
      );
    } else post({ id, ok: true, body: answer });
  } catch (error) {
    fail(id, error as Error);
  }
});
