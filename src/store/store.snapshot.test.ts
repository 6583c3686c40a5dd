import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { until } from '../../testkit/wait.ts';
import type { Snapshot } from '../core/snapshot.ts';
import { ALL, change, NOW } from './testing/alerts.ts';
import { type Row, sameRows, series } from './testing/rows.ts';
import { NODE, START, startStore, TestStore } from './testing/store.ts';

const crashing = new URL('./testing/crashing-worker.ts', import.meta.url);
const wanted = (): AbortSignal => new AbortController().signal;
const leftovers = (folder: string): string[] => readdirSync(join(folder, 'data')).filter((name) => name.startsWith('snapshot'));

/** Saves a snapshot where another store can open it, and closes it. */
function unpack(t: Test, { close, descriptor }: Snapshot): string {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'data'));
  copyFileSync(`/proc/self/fd/${descriptor}`, join(folder, 'data/edge-health.db'));
  close();
  return folder;
}

/** Enough data for several steps of the copy. */
const BALLAST_BYTES = 3_000_000;

/** A store with ballast whose next copy pauses after its first step. */
class PausedCopy {
  readonly started: TestStore;
  readonly #continue: string;

  private constructor(started: TestStore, file: string) {
    this.started = started;
    this.#continue = file;
  }

  static async start(t: Test, folder: string): Promise<PausedCopy> {
    await (await startStore(t, folder)).stop();
    const db = new DatabaseSync(join(folder, 'data/edge-health.db'));
    db.exec(`CREATE TABLE ballast (bytes BLOB); INSERT INTO ballast VALUES (zeroblob(${BALLAST_BYTES}))`);
    db.close();
    const paused = new PausedCopy(await startStore(t, folder, { worker: crashing, retrySeconds: 10 }), join(folder, 'continue'));
    t.teardown(() => paused.goOn());
    await paused.arm();
    return paused;
  }

  async arm(): Promise<void> {
    rmSync(this.#continue, { force: true });
    rmSync(`${this.#continue}.paused`, { force: true });
    await this.ask(`pause copy until ${this.#continue}`);
  }

  /** Sends the thread a command of crashing-worker.ts. */
  async ask(what: string): Promise<void> {
    await this.started.store.history({ node: what, fromMs: 0, toMs: 1, stepMs: null, order: 'asc', limit: 1 });
  }

  async begun(): Promise<void> {
    await until('the copy has begun', () => this.hasBegun);
  }

  get hasBegun(): boolean {
    return existsSync(`${this.#continue}.paused`);
  }

  goOn(): void {
    writeFileSync(this.#continue, '');
  }
}

t.test('a snapshot holds everything recorded up to the call and opens anywhere', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder);
  started.record(series(START, 100));
  started.recordNextMinute(series(START + 100_000, 50));
  const alert = change(`${NODE}/cpu_percent/1`, NOW);
  await started.store.recordAlert(alert);
  started.record(series(START + 150_000, 7));
  const before = Date.now();
  const snapshot = await started.store.snapshot(wanted());
  t.ok(snapshot.takenMs >= before && snapshot.takenMs <= Date.now());
  t.same(leftovers(folder), [], 'the file has no name');
  const copied = unpack(t, snapshot);
  const path = join(copied, 'data/edge-health.db');
  chmodSync(join(copied, 'data'), 0o555);
  const db = new DatabaseSync(path, { readOnly: true });
  t.same(db.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
  t.same(db.prepare('PRAGMA application_id').get(), { application_id: 0x45646748 });
  t.same(readdirSync(join(copied, 'data')), ['edge-health.db'], 'read without side files');
  db.close();
  chmodSync(join(copied, 'data'), 0o755);
  const next = await startStore(t, copied);
  sameRows(t, await next.rows(), series(START, 157));
  t.same((await next.store.alerts(ALL)).alerts, [alert]);
  started.record(series(START + 157_000, 3));
  sameRows(t, await started.rows(), series(START, 160), 'and the store goes on');
});

t.test('during a snapshot requests are answered and everything is written', async (t) => {
  const folder = temporaryFolder(t);
  const copy = await PausedCopy.start(t, folder);
  const { store } = copy.started;
  const rows: Row[] = series(START, 60);
  copy.started.record(rows);
  const answered: string[] = [];
  const noting = <T>(what: string, work: Promise<T>): Promise<T> => work.finally(() => answered.push(what));
  const taking = noting('snapshot', store.snapshot(wanted()));
  await copy.begun();
  const work: Promise<unknown>[] = [];
  for (let round = 1; round <= 3; round += 1) {
    const minute = series(START + round * 60_000, 60);
    rows.push(...minute);
    copy.started.recordNextMinute(minute);
    work.push(
      noting('read', store.clockEvents(1)),
      noting('alert', store.recordAlert(change(`${NODE}/cpu_percent/${round}`, NOW + round))),
    );
  }
  copy.goOn();
  const snapshot = await taking;
  await Promise.all(work);
  t.same(answered.toSorted(), ['alert', 'alert', 'alert', 'read', 'read', 'read', 'snapshot']);
  t.equal(answered.at(-1), 'snapshot', 'the copy ended last');
  t.ok(snapshot.sizeBytes > BALLAST_BYTES);
  sameRows(t, await copy.started.rows(), rows);
  const next = await startStore(t, unpack(t, snapshot));
  const copied = await next.rows();
  t.ok(copied.length >= 60, `${copied.length} samples`);
  sameRows(t, copied, rows.slice(0, copied.length), 'from the first on, without a gap');
});

t.test('one snapshot at a time, until it is closed', async (t) => {
  const folder = temporaryFolder(t);
  const { store } = await startStore(t, folder);
  const first = await store.snapshot(wanted());
  await t.rejects(store.snapshot(wanted()), { name: 'SnapshotRefused', why: 'busy' });
  first.close();
  const both = await Promise.allSettled([store.snapshot(wanted()), store.snapshot(wanted())]);
  t.same(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  for (const one of both) if (one.status === 'fulfilled') one.value.close();
  (await store.snapshot(wanted())).close();
});

t.test('a client that disconnects ends the snapshot', async (t) => {
  const folder = temporaryFolder(t);
  const copy = await PausedCopy.start(t, folder);
  const { store } = copy.started;
  await t.rejects(store.snapshot(AbortSignal.abort()), { name: 'AbortError' }, 'before it begins');
  const gone = new AbortController();
  const taking = t.rejects(store.snapshot(gone.signal), /closed or replaced while it was copied/, 'in its middle');
  await copy.begun();
  gone.abort();
  copy.goOn();
  await taking;
  await until('nothing is left of it', () => leftovers(folder).length === 0);
  const snapshot = await store.snapshot(wanted());
  t.ok(snapshot.sizeBytes > BALLAST_BYTES, 'the next one is whole');
  snapshot.close();
});

t.test('for a client that disconnects while the file is created no copy begins', async (t) => {
  const folder = temporaryFolder(t);
  const copy = await PausedCopy.start(t, folder);
  copy.goOn();
  const gone = new AbortController();
  const { signal } = gone;
  // The client disconnects right after the last check before the file is created.
  signal.throwIfAborted = () => {
    AbortSignal.prototype.throwIfAborted.call(signal);
    gone.abort();
  };
  await t.rejects(copy.started.store.snapshot(signal), { name: 'AbortError' });
  t.notOk(copy.hasBegun);
  await until('nothing is left of it', () => leftovers(folder).length === 0);
});

t.test('the store stops during a snapshot', async (t) => {
  const folder = temporaryFolder(t);
  const copy = await PausedCopy.start(t, folder);
  copy.started.record(series(START, 10));
  const taken = copy.started.store.snapshot(wanted()).then(
    (snapshot) => unpack(t, snapshot),
    (error: Error) => error,
  );
  await copy.begun();
  const stopping = copy.started.stop();
  copy.goOn();
  await stopping;
  // The store writes its last samples before it closes the database: on a busy machine the copy may be complete by then.
  const result = await taken;
  if (typeof result === 'string') t.same(await (await startStore(t, result)).rows(), series(START, 10), 'the copy is complete');
  else t.match(result, { name: 'SnapshotRefused', why: 'unavailable', message: /closed/ });
  await until('nothing is left of it', () => leftovers(folder).length === 0);
  t.same(await (await startStore(t, folder)).rows(), series(START, 10));
});

t.test('the thread crashes during a snapshot', async (t) => {
  const folder = temporaryFolder(t);
  const copy = await PausedCopy.start(t, folder);
  const { store } = copy.started;
  const refused = t.rejects(store.snapshot(wanted()), {
    name: 'SnapshotRefused',
    why: 'unavailable',
    message: /crash requested by the test/,
  });
  await copy.begun();
  copy.ask('crash now').catch(() => undefined);
  copy.goOn();
  await refused;
  await t.rejects(store.snapshot(wanted()), { why: 'unavailable', message: /crash requested by the test/ }, 'the store is degraded');
  copy.started.wait(10);
  await until('the store works again', () => store.state().state === 'ok');
  await until('nothing is left of it', () => leftovers(folder).length === 0);
  (await store.snapshot(wanted())).close();
});

t.test('a store that cannot write gives the reason why there is no snapshot', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const started = await startStore(t, temporaryFolder(t), { dataPath: disk.folder });
  started.record(series(START, 10));
  const { bavail, bsize } = statfsSync(disk.folder);
  writeFileSync(join(disk.folder, 'recordings'), Buffer.alloc(bavail * bsize - 150_000));
  await t.rejects(started.store.snapshot(wanted()), { why: 'no_space', message: /0\.2 MB that stay free\), but 0\.1 MB are/ });
  t.same(
    readdirSync(disk.folder).filter((name) => name.startsWith('snapshot')),
    [],
  );
  disk.fill();
  started.record(series(START + 10_000, 5000));
  await t.rejects(started.store.snapshot(wanted()), { why: 'unavailable', message: /full/ });
  await t.rejects(started.store.snapshot(wanted()), { why: 'unavailable', message: /full/ }, 'also once it is known');
});

t.test('snapshots of a killed process are removed at the start; before it, none can be taken', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'data'));
  for (const name of ['snapshot-3.tmp', 'snapshot-3.tmp-journal']) writeFileSync(join(folder, 'data', name), 'x');
  const started = new TestStore(folder);
  await t.rejects(started.store.snapshot(wanted()), { why: 'unavailable', message: /being opened/ });
  await started.store.start();
  t.same(leftovers(folder), []);
  await started.stop();
});
