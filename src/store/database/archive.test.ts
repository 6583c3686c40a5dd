import { deepStrictEqual } from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import type { Alert } from '../../core/alerts/alert.ts';
import type { Order } from '../../core/ports.ts';
import { DAY_MS, HOUR_MS, isoUtc, MINUTE_MS } from '../../core/time/time.ts';
import { aggregate, history } from '../queries/queries.ts';
import { ALL, change } from '../testing/alerts.ts';
import { TestArchive, testArchive } from '../testing/archive.ts';
import { type Row, row, series, toColumns, toRows } from '../testing/rows.ts';
import type { Archive } from './archive.ts';

const NODE = 'a';
const HOUR = Date.parse('2026-03-04T10:00:00Z');
const EVER = { fromMs: 0, toMs: HOUR + 1000 * HOUR_MS };

function raw(archive: Archive, order: Order = 'asc', range = EVER): Row[] {
  return toRows(history(archive, { node: NODE, ...range, stepMs: null, order, limit: 100_000 }));
}

/** Samples received per hour, from the hour tier. */
function byHour(archive: Archive, fromMs: number, hours: number): number[] {
  const toMs = fromMs + hours * HOUR_MS;
  return aggregate(archive, { node: NODE, fromMs, toMs, by: 'hour' }, toMs).map(({ samples_received }) => samples_received);
}

/** Written hours of the node with their sample counts. */
function writtenHours(t: Test, opened: TestArchive): Record<number, number> {
  // The database is open with an exclusive lock, so a copy is read together with its log.
  const copy = join(temporaryFolder(t), 'copy.db');
  for (const suffix of ['', '-wal']) if (existsSync(opened.path + suffix)) copyFileSync(opened.path + suffix, copy + suffix);
  const reader = new TestArchive(copy, opened.nowMs);
  t.teardown(() => reader.close());
  const rows = reader.archive.db.prepare('SELECT hour_ms FROM hour ORDER BY hour_ms').all() as { hour_ms: number }[];
  return Object.fromEntries(
    rows.map(({ hour_ms }) => [(hour_ms - HOUR) / HOUR_MS, reader.archive.hours.hour(NODE, hour_ms)?.summary.received ?? -1]),
  );
}

const byTime = (rows: readonly Row[]): Row[] => rows.toSorted((a, b) => a.timestampMs - b.timestampMs);

t.test('an hour that ended while the store was not running is not lost', async (t) => {
  const opened = testArchive(t, HOUR);
  opened.add(NODE, series(HOUR + 10 * MINUTE_MS, 600));
  opened.commit();
  opened.nowMs = HOUR + 3 * HOUR_MS;
  opened.restart();
  t.same(byHour(opened.archive, HOUR, 3), [600, 0, 0], 'before new samples');
  opened.add(NODE, series(HOUR + 3 * HOUR_MS, 60));
  opened.commit();
  t.same(writtenHours(t, opened), { 0: 600 });
  t.same(byHour(opened.archive, HOUR, 4), [600, 0, 0, 60]);
});

t.test('an hour continues after a restart and is written once it is over', async (t) => {
  const opened = testArchive(t, HOUR);
  opened.add(NODE, series(HOUR, 100));
  opened.commit();
  opened.restart();
  opened.add(NODE, series(HOUR + 200_000, 100));
  opened.commit();
  t.same(byHour(opened.archive, HOUR, 1), [200]);
  opened.add(NODE, series(HOUR + HOUR_MS - 1000, 2));
  opened.commit();
  t.same(writtenHours(t, opened), { 0: 201 });
  t.same(byHour(opened.archive, HOUR, 2), [201, 1]);
});

t.test('the hour of a stale node is written an hour later', async (t) => {
  const opened = testArchive(t, HOUR);
  opened.add('robot', series(HOUR, 50));
  opened.add(NODE, series(HOUR, 50));
  opened.commit();
  opened.nowMs = HOUR + 2 * HOUR_MS;
  opened.add(NODE, series(opened.nowMs, 1));
  opened.commit();
  const rows = opened.archive.db.prepare("SELECT count(*) AS count FROM hour JOIN node ON id = node_id WHERE name = 'robot'").get();
  t.match(rows, { count: 1 });
  t.equal(opened.archive.hours.hour('robot', HOUR)?.summary.received, 50);
});

t.test('after a clock step back every sample is stored once and listed in order of time', async (t) => {
  const opened = testArchive(t, HOUR);
  const before = series(HOUR + 30 * MINUTE_MS, 2400); // To 11:10.
  const again = series(HOUR + 40 * MINUTE_MS + 500, 1800);
  for (let i = 0; i < before.length; i += 60) opened.add(NODE, before.slice(i, i + 60));
  opened.commit();
  for (let i = 0; i < again.length; i += 60) {
    opened.add(NODE, again.slice(i, i + 60));
    if (i < 900) opened.commit();
  }
  const all = byTime([...before, ...again]);
  const check = (what: string): void => {
    t.same(raw(opened.archive), all, what);
    t.same(raw(opened.archive, 'desc'), all.toReversed(), what);
    t.same(byHour(opened.archive, HOUR, 2), [1800 + 1200, 600 + 600], what);
  };
  check('some written, some pending');
  opened.commit();
  check('all written');
  opened.restart();
  check('after a restart');
  opened.nowMs = HOUR + 4 * HOUR_MS;
  opened.add(NODE, series(opened.nowMs, 1));
  opened.commit();
  t.same(writtenHours(t, opened), { 0: 3000, 1: 1200 });
});

t.test('samples with arbitrary and repeated times are each stored once', async (t) => {
  const folder = temporaryFolder(t);
  let databases = 0;
  const step = fc.oneof(
    fc.constant(1000),
    fc.integer({ min: -2, max: 2 }),
    fc.integer({ min: -30_000, max: 30_000 }),
    fc.integer({ min: -HOUR_MS, max: HOUR_MS }),
  );
  const times = fc.array(step, { minLength: 1, maxLength: 100, size: 'max' }).map((steps) => {
    let at = HOUR;
    return steps.map((delta, i) => {
      at += delta;
      return row(at, i);
    });
  });
  fc.assert(
    fc.property(
      times,
      fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 5 }),
      fc.integer({ min: 0, max: 5 }),
      (rows, lengths, restartAt) => {
        databases += 1;
        const opened = new TestArchive(join(folder, `${databases}.db`), HOUR);
        try {
          let done = 0;
          [...lengths, rows.length].forEach((length, i) => {
            opened.add(NODE, rows.slice(done, done + length), 7);
            done += length;
            if (i % 2 === 0 || i === restartAt) opened.commit();
            if (i === restartAt) opened.restart();
          });
          const key = ({ timestampMs, values }: Row): string => `${timestampMs} ${values[0]}`;
          const found = raw(opened.archive);
          deepStrictEqual(found.map(key).sort(), rows.map(key).sort());
          deepStrictEqual(found, byTime(found), 'in order');
          deepStrictEqual(raw(opened.archive, 'desc'), found.toReversed());
          const whole = aggregate(opened.archive, { node: NODE, ...EVER, by: null }, EVER.toMs)[0];
          deepStrictEqual(whole?.samples_received, rows.length);
        } finally {
          opened.close();
        }
      },
    ),
    { numRuns: runs(20, 1000), seed: SEED },
  );
  t.pass();
});

t.test('an hour without raw samples continues from its written summary', async (t) => {
  const opened = testArchive(t, HOUR);
  opened.add(NODE, series(HOUR, 1000));
  opened.add(NODE, series(HOUR + HOUR_MS, 1));
  opened.commit();
  opened.archive.db.exec('DELETE FROM raw');
  opened.restart();
  opened.add(NODE, series(HOUR + 2000_000, 10));
  t.same(byHour(opened.archive, HOUR, 1), [1010]);
  opened.add(NODE, series(HOUR + 2 * HOUR_MS, 1));
  opened.commit();
  t.match(writtenHours(t, opened), { 0: 1010 });
});

t.test('a clock jump is no gap: neither a suspend nor a step detected after the next sample', async (t) => {
  const opened = testArchive(t, HOUR);
  const { archive } = opened;
  archive.setRate(NODE, 1);
  opened.add(NODE, series(HOUR, 100));
  const resumed = HOUR + 100_000 + 2 * HOUR_MS;
  archive.saveClockEvent({ kind: 'suspend', timestamp_ms: resumed + 700, delta_seconds: 7200 });
  opened.add(NODE, series(resumed, 200));
  const range = { node: NODE, fromMs: HOUR, toMs: HOUR + 3 * HOUR_MS };
  const nowMs = resumed + 200_000;
  const check = (what: string): void => {
    const [whole] = aggregate(archive, { ...range, by: null }, nowMs);
    t.match(whole, { samples_received: 300, samples_expected: 300, status_seconds: { OK: 300, UNKNOWN: 0 } }, what);
    t.ok((whole?.longest_gap_seconds ?? 99) <= 3, `${what}: a gap of ${whole?.longest_gap_seconds} s`);
    const hours = aggregate(archive, { ...range, by: 'hour' }, nowMs);
    t.same(
      hours.map(({ samples_received }) => samples_received),
      [100, 0, 200],
      what,
    );
    // The 700 ms until detection count as if they preceded the suspend.
    t.same(
      hours.map(({ samples_expected }) => samples_expected),
      [101, 0, 199],
      what,
    );
    for (const { status_seconds, longest_gap_seconds } of hours) {
      t.equal(status_seconds.UNKNOWN, 0, what);
      t.ok(longest_gap_seconds <= 3, what);
    }
  };
  check('pending');
  opened.commit();
  check('written');
  opened.restart();
  const [whole] = aggregate(opened.archive, { ...range, by: null }, nowMs);
  t.match(whole, { samples_received: 300, samples_expected: 300, status_seconds: { OK: 300, UNKNOWN: 0 } }, 'after a restart');
});

t.test('after a step back the repeated time is expected twice', async (t) => {
  const opened = testArchive(t, HOUR);
  const { archive } = opened;
  archive.setRate(NODE, 1);
  opened.add(NODE, series(HOUR, 1200));
  archive.saveClockEvent({ kind: 'step', timestamp_ms: HOUR + 600_000, delta_seconds: -600 });
  opened.add(NODE, series(HOUR + 600_000, 1200));
  const range = { node: NODE, fromMs: HOUR, toMs: HOUR + 1_800_000 };
  const whole = aggregate(archive, { ...range, by: null }, EVER.toMs)[0];
  t.match(whole, { samples_received: 2400, samples_expected: 2400, longest_gap_seconds: 1, status_seconds: { UNKNOWN: 0 } });
  const minutes = aggregate(archive, { ...range, by: 'minute' }, EVER.toMs);
  t.ok(minutes.every(({ samples_expected, samples_received }) => samples_expected === samples_received));
});

t.test('expected samples follow the publish rate in force', async (t) => {
  const opened = testArchive(t, HOUR);
  opened.archive.setRate(NODE, 1);
  opened.add(NODE, series(HOUR, 100));
  opened.nowMs = HOUR + 100_000;
  opened.archive.setRate(NODE, 10);
  opened.add(NODE, series(HOUR + 100_000, 1000, 100));
  opened.commit();
  const expected = (): unknown => aggregate(opened.archive, { node: NODE, fromMs: HOUR, toMs: HOUR + 200_000, by: null }, EVER.toMs)[0];
  t.match(expected(), { samples_expected: 1100, samples_received: 1100, status_seconds: { OK: 200 } });
  opened.restart();
  t.match(expected(), { samples_expected: 1100 });
});

t.test('while writing fails everything stays readable and is written once, later', async (t) => {
  const opened = testArchive(t, HOUR);
  const { archive } = opened;
  opened.add(NODE, series(HOUR, 60));
  opened.commit();
  archive.db.exec('PRAGMA query_only = 1');
  const rows = series(HOUR + 60_000, 7200);
  for (let i = 0; i < rows.length; i += 60) {
    opened.add(NODE, rows.slice(i, i + 60));
    if (i % 600 === 0) t.throws(() => opened.commit(), /readonly/);
  }
  const all = [...series(HOUR, 60), ...rows];
  t.same(raw(archive), all);
  t.same(byHour(archive, HOUR, 3), [3600, 3600, 60]);
  archive.db.exec('PRAGMA query_only = 0');
  opened.commit();
  opened.commit();
  opened.restart();
  t.same(raw(opened.archive), all);
  t.match(writtenHours(t, opened), { 0: 3600, 1: 3600 });
});

t.test('dropped samples are missing from the raw tier only', async (t) => {
  const opened = testArchive(t, HOUR);
  const first = opened.add(NODE, series(HOUR, 60));
  opened.add(NODE, series(HOUR + 60_000, 60));
  opened.archive.forget(first);
  opened.commit();
  t.same(raw(opened.archive), series(HOUR + 60_000, 60));
  t.same(byHour(opened.archive, HOUR, 1), [120]);
});

t.test('a database that can be opened only later', async (t) => {
  const folder = join(temporaryFolder(t), 'data');
  const away = `${folder}-away`;
  mkdirSync(folder);
  const path = join(folder, 'edge-health.db');
  const earlier = new TestArchive(path, HOUR);
  earlier.add(NODE, series(HOUR, 60));
  const known = earlier.add(NODE, series(HOUR + 60_000, 60));
  earlier.commit();
  earlier.close();
  renameSync(folder, away);

  const late = earlier.unopened();
  t.throws(() => late.open(), /unable to open/);
  t.throws(() => late.setRate(NODE, 2), /not open: unable to open/);
  const jump = { kind: 'step' as const, timestamp_ms: HOUR - 1000, delta_seconds: 1 };
  t.throws(() => late.saveClockEvent(jump), /not open/);
  // Records in the spool after a crash, of which the first part had been written; then new samples.
  late.append(known, NODE, toColumns(series(HOUR + 60_000, 60)));
  late.append(known + 1, NODE, toColumns(series(HOUR + 120_000, 60)));
  late.append(known + 2, NODE, toColumns(series(HOUR + HOUR_MS - 5000, 10)));
  t.equal(raw(late).length, 130, 'served from memory meanwhile');
  t.throws(() => late.commit(known + 2), /unable to open/);
  renameSync(away, folder);
  late.commit(known + 2);
  const all = [...series(HOUR, 180), ...series(HOUR + HOUR_MS - 5000, 10)];
  t.same(
    raw(late).map(({ timestampMs }) => timestampMs),
    all.map(({ timestampMs }) => timestampMs),
  );
  t.same(byHour(late, HOUR, 2), [185, 5]);
  late.close();
  const reader = earlier.unopened();
  t.teardown(() => reader.close());
  reader.open();
  t.same(reader.sampling.clockEvents, [jump]);
  t.equal(reader.sampling.periodMsAt(NODE, EVER.toMs), 500);
});

t.test('an undetected damaged blob affects only its own samples', async (t) => {
  const opened = testArchive(t, HOUR);
  opened.add(NODE, series(HOUR, 60));
  opened.add(NODE, series(HOUR + 60_000, 60));
  opened.add(NODE, series(HOUR + HOUR_MS, 60));
  opened.add(NODE, series(HOUR + 2 * HOUR_MS, 1));
  opened.commit();
  opened.restart();
  const { archive } = opened;
  archive.db.prepare("UPDATE hour SET summary = x'7f0102' WHERE hour_ms = ?").run(HOUR);
  t.same(byHour(archive, HOUR, 2), [120, 60], 'an hour is computed from its raw samples');
  archive.db.prepare("UPDATE minute SET summaries = x'ff' WHERE hour_ms = ?").run(HOUR + HOUR_MS);
  const steps = history(archive, {
    node: NODE,
    fromMs: HOUR + HOUR_MS,
    toMs: HOUR + 2 * HOUR_MS,
    stepMs: 5 * MINUTE_MS,
    order: 'asc',
    limit: 10,
  });
  t.same([...steps.timestampMs.subarray(0, steps.count)], [HOUR + HOUR_MS], 'minutes computed from the hour');
  archive.db.prepare("UPDATE raw SET samples = x'01ff' WHERE from_ms = ?").run(HOUR);
  t.same(raw(archive, 'asc', { fromMs: HOUR, toMs: HOUR + HOUR_MS }), series(HOUR + 60_000, 60));
});

t.test('after a step of the clock, what this boot stamped for an open episode of this machine has the corrected time', async (t) => {
  const opened = testArchive(t, HOUR);
  const { archive } = opened;
  const correction = { fromMs: HOUR - 3000, toMs: HOUR + 9000, deltaMs: 30 * DAY_MS };
  const raised = change('robot/cpu_percent/1', HOUR);
  const worse = change('robot/cpu_percent/1', HOUR + 5000, { severity: 'CRITICAL' });
  const untouched = [
    change('robot/memory_percent/1', HOUR),
    change('robot/memory_percent/1', HOUR + 1000, { resolved: true }),
    change('robot/disk_percent/1', HOUR - 4000), // Of an earlier boot.
    change('arm/cpu_percent/1', HOUR + 2000),
  ];
  const stale = change('arm/health_status/1', HOUR + 3000, { metric: 'health_status', severity: 'ERROR' });
  for (const alert of [raised, worse, ...untouched, stale]) archive.saveAlert(alert);
  const later = (alert: Alert): Alert => ({ ...alert, timestamp: isoUtc(Date.parse(alert.timestamp) + correction.deltaMs) });
  const sorted = (alerts: readonly Alert[]): string[] => alerts.map((alert) => JSON.stringify(alert)).sort();
  t.same(sorted(archive.correctAlerts(correction)), sorted([later(worse), later(stale)]));
  const check = (): void => {
    const { alerts } = opened.archive.alerts.list({ ...ALL, range: EVER, changes: true });
    t.same(sorted(alerts), sorted([later(raised), later(worse), ...untouched, later(stale)]));
    const before = opened.archive.alerts.list({ ...ALL, range: { fromMs: 0, toMs: HOUR + DAY_MS } }).alerts;
    t.notOk(
      before.some(({ alert_id }) => alert_id === raised.alert_id),
      'the episode began later',
    );
  };
  check();
  opened.commit();
  opened.restart();
  check();
});
