import { deepStrictEqual, throws } from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { openDatabase } from '../database/database.ts';
import { ALL, allPages, change, EVER, expectedAlerts, history, NOW, query } from '../testing/alerts.ts';
import { AlertLog, AlertTable } from './alert-log.ts';

const folder = temporaryFolder(t);
let databases = 0;

function withDatabase<T>(use: (db: DatabaseSync) => T): T {
  databases += 1;
  const { db } = openDatabase(`${folder}/${databases}.db`, NOW);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

/** Makes every write fail, as on a full disk, or work again. */
const setWritable = (db: DatabaseSync, writable: boolean): void => db.exec(`PRAGMA query_only = ${writable ? 0 : 1}`);

t.test('changes that cannot be written are listed with the others and written once writing works', async (t) => {
  fc.assert(
    fc.property(history, fc.nat(), fc.array(query, { minLength: 1, maxLength: 8 }), (published, written, queries) => {
      withDatabase((db) => {
        const log = new AlertLog(new AlertTable(db));
        const failFrom = written % (published.length + 1);
        for (const alert of published.slice(0, failFrom)) log.save(alert);
        setWritable(db, false);
        for (const alert of published.slice(failFrom)) throws(() => log.save(alert), /readonly/);
        for (const one of queries)
          deepStrictEqual(
            allPages((page) => log.list(page), one),
            expectedAlerts(published, one),
          );
        const open = expectedAlerts(published, { ...ALL, resolved: false }).map(({ alert_id }) => alert_id);
        deepStrictEqual(
          log
            .open()
            .map(({ alert_id }) => alert_id)
            .sort(),
          open.sort(),
        );
        setWritable(db, true);
        log.flush();
        for (const one of queries)
          deepStrictEqual(
            allPages((page) => new AlertTable(db).list(page), one),
            expectedAlerts(published, one),
          );
      });
    }),
    { numRuns: runs(12, 250), seed: SEED },
  );
  t.pass();
});

t.test('when writing fails halfway through the pending changes, no change is listed twice', async (t) => {
  withDatabase((db) => {
    const published = [change('a/cpu_percent/1', NOW - 3000), change('a/cpu_percent/2', NOW - 2000), change('a/cpu_percent/3', NOW - 1000)];
    class Stumbling extends AlertTable {
      override save(...[alert, cursor, raisedMs]: Parameters<AlertTable['save']>): boolean {
        if (alert === published[1] && !healed) throw new Error('disk full');
        return super.save(alert, cursor, raisedMs);
      }
    }
    let healed = false;
    const log = new AlertLog(new Stumbling(db));
    for (const alert of published) log.hold(alert);
    t.throws(() => log.flush(), /disk full/);
    t.same(log.list(ALL).alerts, published.toReversed());
    t.same(log.list({ ...ALL, changes: true }).alerts, published.toReversed());
    t.same(
      log
        .open()
        .map(({ alert_id }) => alert_id)
        .sort(),
      published.map(({ alert_id }) => alert_id),
    );
    healed = true;
    log.flush();
    t.same(new AlertTable(db).list(ALL).alerts, published.toReversed());
  });
});

t.test('open episodes move to the next database and keep their start time', async (t) => {
  withDatabase((old) => {
    withDatabase((next) => {
      const log = new AlertLog(new AlertTable(old));
      const raised = change('a/cpu_percent/1', NOW - 10_000);
      const worse = change('a/cpu_percent/1', NOW - 5000, { severity: 'CRITICAL' });
      log.save(raised);
      log.save(worse);
      log.save(change('a/cpu_percent/2', NOW - 5000, { resolved: true }));
      log.hold(change('a/cpu_percent/3', NOW));
      log.keepOpenEpisodes();
      log.replace(new AlertTable(next));
      log.flush();
      t.same(new AlertTable(next).list({ ...ALL, range: EVER }).alerts, [change('a/cpu_percent/3', NOW), worse]);
      const early = { fromMs: NOW - 9000, toMs: NOW - 8000 };
      t.same(new AlertTable(next).list({ ...ALL, range: early }).alerts, [worse]);
    });
  });
});
