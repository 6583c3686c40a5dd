import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { HOUR_MS, isoUtc, MINUTE_MS } from '../../src/core/time.ts';
import { temporaryFolder } from '../../src/store/testing/folder.ts';
import { contextFor, NOT_THERE } from '../collect/testing/context.ts';
import { generateReport } from '../generate_7day_report.ts';
import type { ReportDocument } from './report.ts';
import { END, type Minute, perfectWeek, START, writeWeek } from './testing/week.ts';

interface Made {
  readonly status: string;
  readonly report: ReportDocument & { readonly folder: string | null };
  readonly lines: readonly string[];
}

async function make(data: string, options: Record<string, string | boolean> = {}): Promise<Made> {
  const { document, lines, status } = await generateReport.run(contextFor(data, NOT_THERE, { nowMs: () => END }), {
    options,
    positionals: [],
  });
  return { status, report: document as Made['report'], lines };
}

/** The report of a week that was changed. */
async function reportOf(t: Test, change: (week: Minute[]) => Minute[] | undefined): Promise<Made & { readonly data: string }> {
  const week = perfectWeek();
  const data = temporaryFolder(t);
  writeWeek(data, change(week) ?? week);
  return { ...(await make(data)), data };
}

t.test('a perfect week', async (t) => {
  const { data, lines, report, status } = await reportOf(t, () => undefined);
  t.equal(status, 'OK', report.incomplete.join());
  t.match(report.collection, { rows: 10_080, slots: 10_080, slots_with_row: 10_080, slots_answered: 10_080, answered_share: 1 });
  t.match(report.collection, { longest_gap_seconds: 60, gaps: [], clock_steps: [], sleeps: [], lines_not_read: 0, files: 7 });
  t.same(report.service.restarts, []);
  t.match(report.samples, { received: 10_079 * 60, expected: 10_079 * 60, share: 1 });
  t.same(report.memory_bytes, { min: 60_000_000, median: 60_500_000, max: 61_000_000 });
  t.equal(report.cpu_percent_of_one_core, 1);
  const cpu = { rows: 10_080, min: 20, mean: 20, max: 20 };
  t.match(report.nodes, [{ node_name: 'unit_7', silent_rows: 0, metrics: { cpu_percent: cpu, temperature: null } }]);
  t.equal(report.folder, join(data, 'reports', '7day_2026-03-08'));
  t.same(
    { ...report, folder: undefined },
    { ...JSON.parse(readFileSync(join(report.folder ?? '', 'report.json'), 'utf8')), folder: undefined },
  );
  const text = readFileSync(join(report.folder ?? '', 'report.md'), 'utf8');
  for (const told of [text, lines.join('\n')]) t.match(told, /not the verdict of the 168-hour harness/);
  t.notMatch(text, 'incomplete');
});

t.test('restarts of the service, of another version, and of the machine', async (t) => {
  const { report, status } = await reportOf(t, (week) => {
    week.forEach((minute, i) => {
      if (i >= 1000) Object.assign(minute, { started: '2026-03-01T16:39:30.000Z', samples: 30 + 60 * (i - 1000) });
      if (i >= 2000)
        Object.assign(minute, { started: '2026-03-02T09:19:30.000Z', samples: 30 + 60 * (i - 2000), status: { version: '2.0.0' } });
      if (i >= 3000) {
        Object.assign(minute, { started: '2026-03-03T02:00:00.000Z', bootId: 'boot/2', bootedMs: START + 3000 * MINUTE_MS - 20_000 });
        minute.samples = 10 + 60 * (i - 3000);
      }
    });
    return undefined;
  });
  t.equal(status, 'OK');
  t.same(
    report.service.restarts.map(({ kind, version }) => [kind, version]),
    [
      ['service', '1.2.3'],
      ['upgrade', '2.0.0'],
      ['reboot', '2.0.0'],
    ],
  );
  t.equal(report.service.boots, 2);
  // Of each run that ended alone the last half minute was not counted; between two boots nothing was expected.
  t.match(report.samples, { expected: 10_078 * 60, received: 10_078 * 60 - 2 * 30 });
});

t.test('silence of the service is no gap, and no sample is received', async (t) => {
  const { report, status } = await reportOf(t, (week) => {
    for (const minute of week.slice(500, 510)) minute.answered = false;
    for (const minute of week.slice(510)) Object.assign(minute, { started: 'later', samples: minute.samples - 5000 - 60 * 509 });
    return undefined;
  });
  t.equal(status, 'OK');
  t.match(report.collection, {
    slots_with_row: 10_080,
    slots_answered: 10_070,
    gaps: [],
    unanswered: [{ reason: 'ECONNREFUSED', rows: 10 }],
  });
  t.match(report.samples, { expected: 10_079 * 60, received: (10_079 - 10) * 60 });
});

t.test('gaps of more than five minutes are listed, and make the data incomplete', async (t) => {
  const short = await reportOf(t, (week) => week.filter((_, i) => i < 100 || i >= 104));
  t.equal(short.status, 'OK');
  t.match(short.report.collection, { longest_gap_seconds: 300, gaps: [], slots_with_row: 10_076 });
  const long = await reportOf(t, (week) => week.filter((_, i) => i < 100 || i >= 105));
  t.equal(long.status, 'WARNING');
  t.match(long.report.collection.gaps, [{ seconds: 360, kind: 'collection', from: isoUtc(START + 99 * MINUTE_MS + 50) }]);
  const late = await reportOf(t, (week) => week.slice(1440));
  t.equal(late.status, 'WARNING');
  t.match(late.report.collection, { longest_gap_seconds: 60, gaps: [{ kind: 'period', seconds: 86_400.1 }] });
  t.match(late.report.incomplete, ['1440 of 10080 rows are missing', '1 gap of more than 300 s']);
});

t.test('a clock that is set is shown as such: neither gap nor missing rows', async (t) => {
  for (const step of [HOUR_MS, -HOUR_MS, -90_000]) {
    const { report, status } = await reportOf(t, (week) => {
      // Set right again two days later, so that the week ends in time.
      for (const minute of week.slice(2000, 5000)) minute.wallOffsetMs = step;
      return undefined;
    });
    t.equal(status, 'OK', `${step}: ${report.incomplete.join()}`);
    t.same(
      report.collection.clock_steps.map(({ seconds }) => seconds),
      [step / 1000, -step / 1000],
    );
    t.match(report.collection, { longest_gap_seconds: 60, slots_with_row: 10_080, gaps: [], sleeps: [] });
    t.match(report.samples, { expected: 10_079 * 60, received: 10_079 * 60 });
  }
});

t.test('a clock that stays set: a period of the wall clock has as many minutes as really passed', async (t) => {
  const { data } = await reportOf(t, (week) => {
    for (const minute of week.slice(2000)) minute.wallOffsetMs = -HOUR_MS;
    return undefined;
  });
  const { report, status } = await make(data, { from: isoUtc(START), to: isoUtc(END - HOUR_MS) });
  t.equal(status, 'OK', report.incomplete.join());
  t.match(report.collection, { slots: 10_080, slots_with_row: 10_080, clock_steps: [{ seconds: -3600 }] });
});

t.test('rows made by hand between two minutes stand for none that are missing', async (t) => {
  const { report } = await reportOf(t, (week) => {
    const byHand = week.slice(50, 60).map((minute) => ({ ...minute, ms: minute.ms + 10_000 }));
    return [...week.filter((_, i) => i < 100 || i >= 104), ...byHand].sort((a, b) => a.ms - b.ms);
  });
  t.match(report.collection, { rows: 10_086, slots_with_row: 10_076, slots_answered: 10_076 });
});

t.test('sleep is shown as such, and no sample is expected of it', async (t) => {
  const { report } = await reportOf(t, (week) => {
    for (const minute of week.slice(3060)) Object.assign(minute, { sleptSeconds: 3590, samples: minute.samples - 3590 });
    return week.filter((_, i) => i < 3000 || i >= 3060);
  });
  t.match(report.collection, { gaps: [{ kind: 'sleep', seconds: 3660 }], sleeps: [{ seconds: 3590 }] });
  t.equal(report.samples.received, report.samples.expected);
});

t.test('torn lines, foreign ones and files of other columns do not stop it', async (t) => {
  const { data } = await reportOf(t, () => undefined);
  const file = (name: string): string => join(data, 'metrics', name);
  appendFileSync(file('metrics_2026-03-02.csv'), '2026-03-02T23:59:30.000Z,123,uni');
  appendFileSync(file('metrics_2026-03-03.csv'), Buffer.alloc(5000));
  appendFileSync(file('metrics_2026-03-04.csv'), 'hello\r\nnot a time,1,unit_7\r\n"\r\n');
  writeFileSync(file('metrics_2026-03-05.2.csv'), 'time,node_name,local,answered,novel\r\n2026-03-05T23:59:30.000Z,unit_7,true,true,7\r\n');
  writeFileSync(file('metrics_2026-03-05.3.csv'), '');
  const { report, status } = await make(data);
  t.equal(status, 'WARNING');
  t.match(report.collection, { rows: 10_081, lines_not_read: 5, files: 9 });
  t.match(report.incomplete, ['5 lines cannot be read']);
});

t.test('alerts: by worst severity, what is open, and whether the rows agree', async (t) => {
  const { data } = await reportOf(t, (week) => {
    for (const minute of week) minute.status = { open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 1 } };
    return undefined;
  });
  let sequence = 0;
  const line = (id: string, ms: number, severity: string, resolved = false): string => {
    const timestamp = isoUtc(ms);
    const more = { metric: 'cpu_percent', value: 1, threshold: 1, began: timestamp, duration_seconds: 0, collected: timestamp };
    return `${JSON.stringify({ alert_id: `unit_7/cpu_percent/${id}`, severity, timestamp, resolved, node: 'unit_7', sequence: ++sequence, ...more })}\n`;
  };
  mkdirSync(join(data, 'alerts'));
  writeFileSync(
    join(data, 'alerts', 'alerts_2026-02-20.ndjson'),
    line('old', START - 9 * HOUR_MS, 'WARNING') +
      line('old', START - 8 * HOUR_MS, 'WARNING', true) +
      line('open', START - HOUR_MS, 'CRITICAL'),
  );
  const inside = [line('a', START + 1000, 'WARNING'), line('a', START + 2000, 'CRITICAL'), line('a', START + 3000, 'WARNING')];
  const alerts = join(data, 'alerts', 'alerts_2026-03-01.ndjson');
  writeFileSync(alerts, inside.join('') + line('a', START + 4000, 'WARNING', true) + line('b', END + 1000, 'ERROR'));
  const { report, status } = await make(data);
  t.equal(status, 'OK', report.incomplete.join());
  t.match(report.alerts, { changes: 4, episodes: { WARNING: 0, ERROR: 0, CRITICAL: 2 }, open: [{ severity: 'CRITICAL', node: 'unit_7' }] });
  t.equal(report.alerts.open.length, 1);
  appendFileSync(alerts, line('open', END - HOUR_MS, 'CRITICAL', true));
  t.match((await make(data)).report.incomplete, ['1 CRITICAL were open by the last row, 0 by the collected alerts']);
});

t.test('periods', async (t) => {
  const { data } = await reportOf(t, () => undefined);
  const rows = async (options: Record<string, string | boolean>): Promise<number | undefined> =>
    (await make(data, options)).report.collection?.rows;
  t.equal(await rows({ days: '1' }), 1440);
  t.equal(await rows({ from: '2026-03-02', to: '2026-03-02T01:00:00Z' }), 60);
  t.equal(await rows({ from: '2026-03-02T00:00:00+01:00', days: '0.5' }), 720);
  t.equal(await rows({ to: '2026-03-03', days: '1' }), 1440);
  t.equal(await rows({ from: '2026-03-07' }), 1440);
  for (const options of [
    { from: 'monday' },
    { to: '2026-13-01' },
    { days: '0' },
    { days: 'x' },
    { from: '2026-03-02', to: '2026-03-01' },
    { from: '2027-01-01' },
    { from: '2026-03-01', to: '2026-03-02', days: '1' },
  ] as Record<string, string>[]) {
    await t.rejects(make(data, options), { name: 'Misuse' }, JSON.stringify(options));
  }
});

t.test('nothing collected: UNKNOWN, with where to look; --dry-run and --out', async (t) => {
  const empty = temporaryFolder(t);
  t.match(await make(empty), { status: 'UNKNOWN', lines: [/^UNKNOWN {2}no rows .*is collect_metrics scheduled/] });
  const { data } = await reportOf(t, (week) => week.slice(0, 10));
  const out = join(temporaryFolder(t), 'mine');
  t.equal((await make(data, { 'dry-run': true, out })).report.folder, null);
  t.throws(() => readFileSync(join(out, 'report.md')), { code: 'ENOENT' });
  await make(data, { out });
  t.match(readFileSync(join(out, 'report.md'), 'utf8'), /The data is incomplete/);
});
