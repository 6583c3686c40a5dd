import { statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { aggregate, history } from '../queries/queries.ts';
import { ALL, change, EVER } from '../testing/alerts.ts';
import { TestArchive, testArchive } from '../testing/archive.ts';
import { type Row, row, series, toColumns } from '../testing/rows.ts';
import { ALERT_DAYS, HOUR_DAYS, MINUTE_DAYS, pruneBySize, RAW_DAYS } from './retention.ts';

const NODE = 'a';
const NOW = Date.parse('2026-03-04T10:00:00Z');

type Table = 'raw' | 'minute' | 'hour' | 'episode' | 'alert_change' | 'clock_event';
const TIME: Record<Table, string> = {
  raw: 'from_ms',
  minute: 'hour_ms',
  hour: 'hour_ms',
  episode: 'changed_ms',
  alert_change: 'changed_ms',
  clock_event: 'timestamp_ms',
};

function rowsOf({ archive }: TestArchive, table: Table): number {
  return (archive.db.prepare(`SELECT count(*) AS count FROM ${table}`).get() as { count: number }).count;
}

function oldestOf({ archive }: TestArchive, table: Table): number {
  return (
    (archive.db.prepare(`SELECT min(${TIME[table]}) AS ms FROM ${table}`).get() as { ms: number | null }).ms ?? Number.POSITIVE_INFINITY
  );
}

/** Offset from the full hours at which the other samples lie. */
const QUARTER_MS = HOUR_MS / 4;

/** A day of recorded hours up to now, after which the clock is trusted. */
function liveForADay(opened: TestArchive, node = NODE): void {
  for (let hours = 24; hours > 0; hours -= 1) opened.add(node, series(opened.nowMs - hours * HOUR_MS + QUARTER_MS, 1));
  opened.commit();
}

t.test('a clock that is wrong by a year deletes nothing and is trusted after a day', async (t) => {
  const opened = testArchive(t, NOW);
  liveForADay(opened);
  const first = oldestOf(opened, 'raw');
  opened.nowMs = NOW + 365 * DAY_MS;
  for (let hour = 0; hour < 23; hour += 1) {
    opened.add(NODE, series(opened.nowMs, 2));
    opened.commit();
    opened.nowMs += HOUR_MS;
    if (hour % 8 === 0) opened.restart();
  }
  t.equal(oldestOf(opened, 'raw'), first, 'nothing is pruned yet');
  t.equal(oldestOf(opened, 'minute'), NOW - DAY_MS);
  const wrong = opened.nowMs;
  opened.nowMs = NOW;
  opened.add(NODE, series(NOW, 2));
  opened.commit();
  t.equal(oldestOf(opened, 'raw'), first, 'nor after the clock is corrected');
  opened.nowMs = wrong;
  for (let hour = 0; hour < 3; hour += 1) {
    opened.add(NODE, series(opened.nowMs, 2));
    opened.commit();
    opened.nowMs += HOUR_MS;
  }
  t.equal(oldestOf(opened, 'raw'), NOW, 'pruned once a year has really passed, except for what arrived since');
});

t.test('each tier is kept for its retention and no longer', async (t) => {
  const opened = testArchive(t, NOW - 3 * 365 * DAY_MS);
  const ages = [...[0.5, RAW_DAYS - 1, RAW_DAYS + 1, MINUTE_DAYS - 1, MINUTE_DAYS + 1, HOUR_DAYS - 1, HOUR_DAYS + 1]].toSorted(
    (a, b) => b - a,
  );
  for (const days of ages) {
    opened.nowMs = NOW - days * DAY_MS;
    opened.add(NODE, series(opened.nowMs, 120));
    opened.add('robot', series(opened.nowMs, 120));
    opened.commit();
  }
  opened.archive.saveAlert(change('a/cpu_percent/old', NOW - (ALERT_DAYS + 1) * DAY_MS, { resolved: true }));
  opened.archive.saveAlert(change('a/cpu_percent/open', NOW - (ALERT_DAYS + 1) * DAY_MS));
  opened.archive.saveAlert(change('a/cpu_percent/kept', NOW - (ALERT_DAYS - 1) * DAY_MS, { resolved: true }));
  opened.archive.saveClockEvent({ kind: 'step', timestamp_ms: NOW - (HOUR_DAYS + 1) * DAY_MS, delta_seconds: 5 });
  opened.archive.saveClockEvent({ kind: 'step', timestamp_ms: NOW - (HOUR_DAYS - 1) * DAY_MS, delta_seconds: 5 });
  opened.nowMs = NOW;
  liveForADay(opened);
  opened.add(NODE, series(NOW, 120));
  opened.add('robot', series(NOW, 120));
  opened.commit();

  const stepMs = (hours: number): number => hours * HOUR_MS;
  const ageDays = (ms: number): number => (NOW - ms) / DAY_MS;
  const countAt = (days: number, step: number | null): number => {
    const fromMs = NOW - days * DAY_MS - HOUR_MS;
    return history(opened.archive, { node: NODE, fromMs, toMs: fromMs + 2 * HOUR_MS, stepMs: step, order: 'asc', limit: 1000 }).count;
  };
  t.ok(ageDays(oldestOf(opened, 'raw')) <= RAW_DAYS);
  t.ok(ageDays(oldestOf(opened, 'minute')) <= MINUTE_DAYS);
  t.ok(ageDays(oldestOf(opened, 'hour')) <= HOUR_DAYS);
  t.equal(countAt(RAW_DAYS - 1, null), 120, 'raw samples');
  t.equal(countAt(RAW_DAYS + 1, null), 0);
  t.ok(countAt(RAW_DAYS + 1, MINUTE_MS) >= 2, 'minutes');
  t.ok(countAt(MINUTE_DAYS - 1, MINUTE_MS) >= 2);
  t.equal(countAt(MINUTE_DAYS + 1, MINUTE_MS), 1, 'an hour without minutes');
  t.equal(countAt(HOUR_DAYS - 1, stepMs(1)), 1, 'hours');
  t.equal(countAt(HOUR_DAYS + 1, stepMs(1)), 0);
  const whole = aggregate(opened.archive, { node: NODE, fromMs: NOW - 1000 * DAY_MS, toMs: NOW + 1000, by: null }, NOW + 1000)[0];
  t.equal(whole?.samples_received, 6 * 120 + 24 + 1);
  t.same(
    opened.archive.alerts
      .list({ ...ALL, range: EVER })
      .alerts.map(({ alert_id }) => alert_id)
      .sort(),
    ['a/cpu_percent/kept', 'a/cpu_percent/open'],
  );
  opened.restart();
  t.same(
    opened.archive.sampling.clockEvents.map(({ timestamp_ms }) => timestamp_ms),
    [NOW - (HOUR_DAYS - 1) * DAY_MS],
  );
});

t.test('the newest rate of a node is kept regardless of age', async (t) => {
  const opened = testArchive(t, NOW - 900 * DAY_MS);
  const { archive } = opened;
  for (const [days, hertz] of [
    [900, 1],
    [800, 2],
    [10, 5],
  ] as const)
    archive.setRate('robot', hertz, NOW - days * DAY_MS);
  for (const days of [60, 40, 20, 5]) {
    opened.nowMs = NOW - days * DAY_MS;
    archive.append(opened.nowMs, 'robot', toColumns([row(opened.nowMs - days * HOUR_MS)]));
    archive.commit(opened.nowMs);
  }
  opened.nowMs = NOW;
  liveForADay(opened);
  opened.add(NODE, series(NOW, 2));
  opened.commit();
  const rates = archive.db.prepare('SELECT DISTINCT since_ms AS ms FROM rate ORDER BY 1').all() as { ms: number }[];
  t.same(
    rates.map(({ ms }) => (NOW - ms) / DAY_MS),
    [800, 10],
  );
  const part = [...archive.samples.segmentParts(NOW - 6 * DAY_MS, 'robot')];
  t.same(
    part.map(({ segment }) => (NOW - segment) / DAY_MS),
    [5],
  );
});

t.test('a node whose clock is wrong keeps its raw samples as long as the others, and does not keep theirs', async (t) => {
  const opened = testArchive(t, NOW);
  const offsets = { right: 0, behind: -20 * 365 * DAY_MS, ahead: 300 * DAY_MS };
  const arrive = (): void => {
    for (const [node, offsetMs] of Object.entries(offsets)) opened.add(node, series(opened.nowMs + offsetMs, 1));
    opened.commit();
  };
  const stored = (node: string): number => {
    const range = { fromMs: 0, toMs: NOW + 400 * DAY_MS };
    return history(opened.archive, { node, ...range, stepMs: null, order: 'asc', limit: 1000 }).count;
  };
  for (let hour = 0; hour < RAW_DAYS * 24 + 48; hour += 1) {
    arrive();
    opened.nowMs += HOUR_MS;
  }
  // The hour that is eight days old, those after it, and the one that ends now.
  t.same(Object.keys(offsets).map(stored), [RAW_DAYS * 24 + 1, RAW_DAYS * 24 + 1, RAW_DAYS * 24 + 1]);
});

t.test('where raw samples begin in the middle of an hour, its minutes cover the time before', async (t) => {
  const opened = testArchive(t, NOW);
  for (let minute = 0; minute < 60; minute += 1) opened.add(NODE, series(NOW + minute * MINUTE_MS, 60));
  opened.add(NODE, series(NOW + HOUR_MS, 1));
  opened.nowMs = NOW + 2 * HOUR_MS;
  opened.commit();
  const { totalBytes, freeBytes } = opened.archive.size();
  pruneBySize(opened.archive.db, totalBytes - freeBytes);
  t.ok(oldestOf(opened, 'raw') > NOW && oldestOf(opened, 'raw') < NOW + HOUR_MS);
  const minutes = aggregate(opened.archive, { node: NODE, fromMs: NOW, toMs: NOW + HOUR_MS, by: 'minute' }, opened.nowMs);
  t.same(
    minutes.map(({ samples_received }) => samples_received),
    minutes.map(() => 60),
  );
});

/** Incompressible values that fill the database quickly. */
function bulky(fromMs: number, count: number): Row[] {
  let seed = fromMs % 1_000_003;
  const next = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 25;
  };
  return Array.from({ length: count }, (_, i) => ({ ...row(fromMs + i * 1000), values: [next(), next(), next(), next()] }));
}

t.test('beyond the size cap the oldest minutes of all nodes are removed, whichever node has them', async (t) => {
  const opened = testArchive(t, NOW);
  const minutesOf = (node: string): number =>
    (
      opened.archive.db
        .prepare('SELECT count(*) AS count FROM minute JOIN node ON node.id = minute.node_id WHERE node.name = ?')
        .get(node) as { count: number }
    ).count;
  for (let hour = 0; hour < 12; hour += 1) {
    for (const [node, isUp] of [
      ['old', hour < 6],
      ['new', hour >= 6],
    ] as const) {
      if (isUp) opened.add(node, bulky(opened.nowMs, 1200));
    }
    opened.commit();
    opened.nowMs += HOUR_MS;
  }
  opened.add('new', series(opened.nowMs, 1)); // Ends the last hour.
  opened.commit();
  t.same([minutesOf('old'), minutesOf('new')], [6, 6]);
  const all = minutesOf('old') + minutesOf('new');
  for (let cap = opened.archive.size().totalBytes; minutesOf('old') + minutesOf('new') === all; cap -= 4096)
    pruneBySize(opened.archive.db, cap);
  t.equal(rowsOf(opened, 'raw'), 0, 'raw samples go first');
  t.ok(minutesOf('old') < 6);
  t.equal(minutesOf('new'), 6);
});

t.test('beyond the size cap the oldest data is removed, raw samples before minutes before hours, and alerts stay', async (t) => {
  const maxBytes = 1_500_000;
  const path = join(temporaryFolder(t), 'edge-health.db');
  const opened = new TestArchive(path, NOW, maxBytes);
  t.teardown(() => opened.close());
  for (let i = 0; i < 200; i += 1) opened.archive.saveAlert(change(`a/cpu_percent/${i}`, NOW, { resolved: i % 2 === 0 }));
  let largest = 0;
  const fill = (hours: number, samples: number): void => {
    for (let hour = 0; hour < hours; hour += 1) {
      for (let done = 0; done < samples; done += 300) {
        opened.add(NODE, bulky(opened.nowMs + done * 1000, Math.min(300, samples - done)));
        opened.commit();
        largest = Math.max(largest, opened.archive.size().totalBytes, statSync(path).size);
      }
      opened.nowMs += HOUR_MS;
    }
  };
  fill(30, 3600);
  t.ok(largest <= maxBytes, `${largest} of ${maxBytes} bytes`);
  t.ok(largest > maxBytes * 0.8, 'and the space is used');
  t.ok(oldestOf(opened, 'raw') > NOW + HOUR_MS, 'the oldest raw samples are removed');
  t.equal(oldestOf(opened, 'hour'), NOW);
  t.equal(oldestOf(opened, 'minute'), NOW, 'their minutes and hours stay');
  const newest = history(opened.archive, {
    node: NODE,
    fromMs: opened.nowMs - 600_000,
    toMs: opened.nowMs,
    stepMs: null,
    order: 'asc',
    limit: 1000,
  });
  t.equal(newest.count, 600);

  // The cap is lowered, as by a new configuration.
  opened.close();
  const small = new TestArchive(path, opened.nowMs, 400_000);
  t.teardown(() => small.close());
  const shrink = (): void => {
    small.add(NODE, bulky(small.nowMs, 60));
    small.commit();
    small.archive.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  };
  shrink();
  t.ok(statSync(path).size <= 400_000, `${statSync(path).size} bytes`);
  t.equal(rowsOf(small, 'raw'), 0);
  t.ok(rowsOf(small, 'minute') > 0);
  t.ok(oldestOf(small, 'minute') > NOW, 'then minutes are removed');
  t.equal(oldestOf(small, 'hour'), NOW);
  small.close();

  const tiny = new TestArchive(path, opened.nowMs, 150_000);
  t.teardown(() => tiny.close());
  tiny.add(NODE, bulky(tiny.nowMs, 60));
  tiny.commit();
  tiny.archive.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  t.ok(statSync(path).size <= 150_000, `${statSync(path).size} bytes`);
  t.equal(rowsOf(tiny, 'minute'), 0);
  t.ok(oldestOf(tiny, 'hour') > NOW, 'then hours');
  t.equal(rowsOf(tiny, 'episode'), 200);
  t.equal(rowsOf(tiny, 'alert_change'), 200);
  t.equal(tiny.archive.alerts.open().length, 100);

  tiny.close();
  const none = new TestArchive(path, opened.nowMs, 1000);
  t.teardown(() => none.close());
  none.add(NODE, bulky(none.nowMs, 60));
  none.commit();
  t.equal(rowsOf(none, 'episode'), 200, 'alerts are never removed to free space');
});

t.test('a flood of remote alerts removes neither samples nor alerts of this machine, however small the cap', async (t) => {
  const opened = testArchive(t, NOW, 8e6);
  opened.localNode = NODE;
  opened.restart();
  const { archive } = opened;
  for (let i = 0; i < 40; i += 1) archive.saveAlert(change(`${NODE}/cpu_percent/${i}`, NOW + i, { resolved: i % 2 === 0 }));
  for (let hour = 0; hour < 12; hour += 1) {
    opened.add(NODE, bulky(opened.nowMs, 1200));
    opened.commit();
    opened.nowMs += HOUR_MS;
  }
  const before = ['raw', 'minute', 'hour'].map((table) => rowsOf(opened, table as Table));
  // The longest ids that are received; every second episode stays open.
  const name = '\u20ac'.repeat(60);
  const robot = (n: number): string => `${name}${n % 100}/disk:/${name.repeat(4)}/${name}${n}`;
  const last = robot(1599);
  for (let n = 0; n < 1600; n += 1) {
    archive.saveAlert(change(robot(n), opened.nowMs + n, { metric: 'disk', resolved: n % 2 === 0 }), { segment: NOW, sequence: n + 1 });
    if (n % 400 !== 399) continue;
    opened.add(NODE, series(opened.nowMs, 1));
    opened.commit();
    // The daily limit of written alerts begins again.
    opened.nowMs += 25 * HOUR_MS;
  }
  opened.commit();
  const { freeBytes, totalBytes } = archive.size();
  t.ok(totalBytes <= 8e6, `${totalBytes} bytes`);
  t.ok(totalBytes - freeBytes > 2e6);
  const after = ['raw', 'minute', 'hour'].map((table) => rowsOf(opened, table as Table));
  t.ok(
    after.every((rows, i) => rows > (before[i] as number)),
    `${before} rows before, ${after} after`,
  );
  const own = archive.alerts.list({ ...ALL, node: NODE, range: EVER });
  t.equal(own.alerts.length, 40);
  const remote = archive.alerts.open().filter(({ alert_id }) => !alert_id.startsWith(`${NODE}/`));
  t.equal(remote.at(-1)?.alert_id, last, 'the newest are kept');
});

t.test('of remote alerts the last changes are kept, with all open ones and all of this node', async (t) => {
  const opened = testArchive(t, NOW, 4e5);
  opened.localNode = NODE;
  opened.restart();
  const { archive } = opened;
  for (let i = 0; i < 2000; i += 1) {
    const isOwn = i % 50 === 0;
    const alert = change(`${isOwn ? NODE : 'robot'}/cpu_percent/${i}`, NOW + i * 1000, { resolved: i > 1 });
    archive.saveAlert(alert, { segment: NOW, sequence: i + 1 });
    if (i % 500 === 499) opened.commit();
  }
  const changes = archive.alerts.list({ ...ALL, range: EVER, changes: true, limit: 5000 }).alerts;
  const of = (node: string): string[] => changes.flatMap(({ alert_id }) => (alert_id.startsWith(`${node}/`) ? alert_id : []));
  t.equal(of(NODE).length, 40);
  const kept = of('robot').length;
  t.ok(kept > 50 && kept < 500, `${kept} of 1960`);
  t.same(of('robot').slice(0, 2), ['robot/cpu_percent/1999', 'robot/cpu_percent/1998']);
  t.same(
    archive.alerts.open().map(({ alert_id }) => alert_id),
    [`${NODE}/cpu_percent/0`, 'robot/cpu_percent/1'],
  );
});

t.test('beyond the size cap the samples that arrived first are removed, whatever their time stamps', async (t) => {
  const opened = testArchive(t, NOW);
  const { archive } = opened;
  const nodes = { ahead: DAY_MS, behind: -DAY_MS, right: 0 };
  for (let minute = 0; minute < 60; minute += 1) {
    const segment = NOW + minute * MINUTE_MS;
    for (const [node, offsetMs] of Object.entries(nodes)) archive.append(segment, node, toColumns(bulky(segment + offsetMs, 60)));
  }
  archive.commit(NOW + HOUR_MS);
  const { freeBytes, totalBytes } = archive.size();
  // Slightly more than the limit: one removal is enough.
  pruneBySize(archive.db, totalBytes - freeBytes);
  const left = Object.entries(nodes).map(([node, offsetMs]) => {
    const range = { fromMs: NOW + offsetMs, toMs: NOW + offsetMs + HOUR_MS };
    return history(archive, { node, ...range, stepMs: null, order: 'asc', limit: 10_000 }).count;
  });
  t.same(left, [45 * 60, 45 * 60, 45 * 60]);
});
