import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { DAY_MS } from '../../core/time/time.ts';
import { openDatabase } from '../database/database.ts';
import { ALL, allPages, change, EVER, expectedAlerts, history, NOW, query } from '../testing/alerts.ts';
import { AlertTable } from './alert-log.ts';

const folder = temporaryFolder(t);
let databases = 0;

function withTable<T>(use: (table: AlertTable) => T): T {
  databases += 1;
  const { db } = openDatabase(`${folder}/${databases}.db`, NOW);
  try {
    return use(new AlertTable(db));
  } finally {
    db.close();
  }
}

t.test('every listing of any changes is complete, ordered and without duplicates, over all pages', async (t) => {
  fc.assert(
    fc.property(history, fc.array(query, { minLength: 1, maxLength: 12 }), (published, queries) => {
      withTable((table) => {
        for (const alert of published) table.save(alert);
        for (const one of queries)
          deepStrictEqual(
            allPages((page) => table.list(page), one),
            expectedAlerts(published, one),
          );
      });
    }),
    { numRuns: runs(25, 600), seed: SEED },
  );
  t.pass();
});

t.test('saving changes again, from any point on, has no effect', async (t) => {
  fc.assert(
    fc.property(history, fc.nat(), fc.nat(), (published, from, to) => {
      withTable((table) => {
        for (const alert of published) table.save(alert);
        const listings = (): unknown[] => [
          table.open(),
          table.list({ ...ALL, range: EVER }),
          table.list({ ...ALL, range: EVER, changes: true }),
        ];
        const before = listings();
        for (const alert of published.slice(from % (published.length + 1)).slice(0, to % (published.length + 1))) table.save(alert);
        deepStrictEqual(listings(), before);
      });
    }),
    { numRuns: runs(25, 600), seed: SEED },
  );
  t.pass();
});

t.test('open episodes are listed regardless of age, resolved ones for a day', async (t) => {
  withTable((table) => {
    const old = change('a/cpu_percent/1', NOW - 400 * DAY_MS);
    const closed = change('a/cpu_percent/2', NOW - DAY_MS - 1, { resolved: true });
    const closedLately = change('a/cpu_percent/3', NOW - DAY_MS, { resolved: true });
    for (const alert of [old, closed, closedLately]) table.save(alert);
    t.same(table.list(ALL).alerts, [closedLately, old]);
    t.same(table.open(), [old]);
  });
});

t.test('the last change counts although the clock was set back before it', async (t) => {
  withTable((table) => {
    const raised = change('a/cpu_percent/1', NOW);
    const worse = change('a/cpu_percent/1', NOW - 3_600_000, { severity: 'CRITICAL', value: 97, threshold: 90 });
    const over = change('a/cpu_percent/1', NOW - 1_800_000, { value: 50, resolved: true });
    table.save(raised);
    table.save(worse);
    t.same(table.open(), [worse]);
    t.same(
      table.list({ ...ALL, range: { fromMs: NOW - 7_200_000, toMs: NOW - 3_000_000 } }).alerts,
      [worse],
      'also among changes of the same time',
    );
    table.save(over);
    t.same(table.open(), []);
    table.save(raised);
    table.save(worse);
    t.same(table.list(ALL).alerts, [over], 'a repetition does not reopen it');
  });
});

t.test('a change that arrives after its episode was resolved is recorded, but does not reopen it', async (t) => {
  withTable((table) => {
    const over = change('a/cpu_percent/1', NOW + 2000, { resolved: true });
    const late = change('a/cpu_percent/1', NOW + 1000, { severity: 'CRITICAL' });
    t.ok(table.save(change('a/cpu_percent/1', NOW)));
    t.ok(table.save(over));
    t.notOk(table.save(late), 'it is not new');
    t.same(table.open(), []);
    t.same(table.list(ALL).alerts, [over]);
    t.equal(table.list({ ...ALL, changes: true }).alerts.length, 3);
  });
});

t.test('a page has a successor only if more changes follow', async (t) => {
  withTable((table) => {
    for (let n = 0; n < 4; n += 1) table.save(change(`a/cpu_percent/${n}`, NOW + n));
    const first = table.list({ ...ALL, limit: 2 });
    t.ok(first.next);
    t.match(table.list({ ...ALL, limit: 2, after: first.next }), { alerts: { length: 2 }, next: null });
    t.equal(table.list({ ...ALL, limit: 4 }).next, null);
  });
});

t.test('an unavailable value stays unavailable', async (t) => {
  withTable((table) => {
    table.save(change('a/cpu_percent/1', NOW, { value: Number.NaN }));
    t.equal(table.list(ALL).alerts[0]?.value, null);
  });
});
