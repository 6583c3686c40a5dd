import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { recordOf, type ShutdownRecord } from '../../core/shutdown/shutdown.ts';
import { isoUtc } from '../../core/time/time.ts';
import { standInDatabase } from '../database/database.ts';
import { parseSegment, Spool } from '../spool/spool.ts';
import { startStore } from '../testing/store.ts';
import { KEPT_OF_EACH, ShutdownLog } from './shutdown-log.ts';

const NOW = Date.parse('2026-03-04T12:00:00Z');

function record(n: number, more: Partial<ShutdownRecord> = {}): ShutdownRecord {
  const decided = { action: 'dry-run', outcome: 'refused', message: `number ${n}`, boot_id: 'b' } as const;
  const call = { reason: 'MANUAL', requested_by: 'Zoë', timeout: 1.5 };
  const request_id = `01J${String(n).padStart(9, '0')}`;
  return {
    ...recordOf(call, { address: '::1', port: 7411, user: 'zoë' }, { ...decided, request_id, timestamp: isoUtc(NOW + n) }),
    ...more,
  };
}

const accepted = (n: number, more: Partial<ShutdownRecord> = {}): ShutdownRecord =>
  record(n, { outcome: 'in_progress', ended: null, ...more });

t.test('lists newest first, all or filtered, with the last state of each', async (t) => {
  const log = new ShutdownLog(standInDatabase());
  for (const saved of [record(1), accepted(2), record(3), accepted(2, { step: 'hooks' }), accepted(2, { outcome: 'completed' })])
    log.save(saved);
  t.same(log.list({ accepted: null, limit: 9 }), [record(3), accepted(2, { outcome: 'completed' }), record(1)]);
  t.same(log.list({ accepted: true, limit: 9 }), [accepted(2, { outcome: 'completed' })]);
  t.same(log.list({ accepted: false, limit: 1 }), [record(3)]);
});

t.test('an older record of the same request does not overwrite an outcome', async (t) => {
  const log = new ShutdownLog(standInDatabase());
  log.save(accepted(1, { outcome: 'aborted' }));
  log.save(accepted(1));
  t.match(log.list({ accepted: true, limit: 9 }), [{ outcome: 'aborted' }]);
  log.hold(accepted(2, { outcome: 'aborted' }));
  log.hold(accepted(2));
  t.match(log.list({ accepted: true, limit: 1 }), [{ outcome: 'aborted' }]);
});

t.test('refused requests cannot displace accepted ones', async (t) => {
  const db = standInDatabase();
  const log = new ShutdownLog(db);
  log.save(accepted(0));
  for (let n = 1; n <= KEPT_OF_EACH + 100; n += 1) log.save(record(n));
  const all = log.list({ accepted: null, limit: 1e6 });
  t.equal(all.length, KEPT_OF_EACH + 1);
  t.same(all[0], record(KEPT_OF_EACH + 100));
  t.same(all.at(-1), accepted(0));
});

t.test('records that cannot be written are readable and bounded in number', async (t) => {
  const closed = new DatabaseSync(':memory:'); // The database has no tables, so every write fails.
  const log = new ShutdownLog(closed);
  t.throws(() => log.save(accepted(0)), /no such table/);
  for (let n = 1; n < 2000; n += 1) log.hold(record(n));
  log.replace(standInDatabase());
  const waiting = log.list({ accepted: null, limit: 1e6 });
  t.ok(waiting.length <= 500, `${waiting.length} wait`);
  t.same(waiting[0], record(1999));
  t.same(waiting.at(-1), accepted(0), 'of which the refused ones are dropped first');
  log.flush();
  const next = standInDatabase();
  log.replace(next);
  t.same(log.list({ accepted: null, limit: 9 }), [], 'no record is pending');
});

t.test('a record is in the spool before it is in the database, and the next run loads it', async (t) => {
  const folder = temporaryFolder(t);
  const spool = new Spool(join(folder, 'run', 'spool'));
  spool.begin(1);
  spool.write(JSON.stringify(accepted(1)));
  spool.write(JSON.stringify(record(2)));
  spool.write(JSON.stringify(accepted(1, { step: 'hooks', outcome: 'aborted' })));
  spool.end();
  const { store } = await startStore(t, folder);
  t.same(await store.shutdowns({ accepted: null, limit: 9 }), [record(2), accepted(1, { step: 'hooks', outcome: 'aborted' })]);
});

t.test('dropping the samples of a segment keeps the records', async (t) => {
  const spool = new Spool(temporaryFolder(t));
  const segment = spool.begin(1);
  spool.write(JSON.stringify(record(1)));
  spool.begin(2);
  t.ok(spool.dropSamples(segment) > 0);
  t.same(spool.leftovers()[0]?.shutdowns, [record(1)]);
  spool.end();
});

t.test('lines that resemble a record are skipped', async (t) => {
  const lines = [{ ...record(1), outcome: 'won' }, { ...record(1), request_id: 7 }, { ...record(1), timestamp: 'then' }, record(2)];
  t.same(parseSegment(1, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`).shutdowns, [record(2)]);
});

/** Creates the schema of the first version. */
