import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Criterion } from '../../harness/engine/judgement.ts';
import type { ReportDocument } from '../../harness/report/document.ts';
import { HOUR_MS, isoUtc, MINUTE_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { NODE, STORAGE, statusDocument } from '../../testkit/service/status-document.ts';
import { NOT_THERE } from '../collect/testing/context.ts';
import { collect, type Made, make, reportOf, rowsOf, value, write } from './testing/made.ts';
import { END, type Minute, perfectWeek, START, writeWeek } from './testing/week.ts';

const verdicts = ({ of }: Made): string =>
  Object.values(of)
    .map(({ criterion, verdict }) => `${criterion} ${verdict}`)
    .join(', ');

/** A service that has stored a sample at each of these times. */
async function serviceWith(t: Test, stamps: readonly number[], { node = 'unit_7', oldestMs = START - HOUR_MS } = {}): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    if (url === '/status') {
      const status = { nodes: [{ ...NODE, node_name: node }], storage: { ...STORAGE, oldest_sample: isoUtc(oldestMs) } };
      response.end(JSON.stringify(statusDocument(status)));
      return;
    }
    const { searchParams } = new URL(url, 'http://localhost');
    const [from, to] = ['from', 'to'].map((name) => Date.parse(searchParams.get(name) ?? ''));
    const rows = stamps.filter((ms) => ms >= (from as number) && ms < (to as number)).map((ms) => `20,40,50,,unit_7,OK,${isoUtc(ms)}\r\n`);
    response.end(`cpu_percent,memory_percent,disk_percent,temperature,node_name,status,timestamp\r\n${rows.join('')}`);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
/** The machine was started and collection began a day late. */
const lastSixDays = (week: Minute[]): Minute[] =>
  week.slice(1440).map((minute) => ({ ...minute, started: isoUtc(START + 1439 * MINUTE_MS), bootedMs: START + 1438 * MINUTE_MS }));
const restartedOnce = (_: Minute, i: number): Partial<Minute> =>
  i < 1000 ? {} : { started: isoUtc(START + 999 * MINUTE_MS + 30_000), samples: 30 + 60 * (i - 1000), cpuSeconds: 0.6 * (i - 999) };
const everyMinute = (from: number, to: number): number[] => Array.from({ length: (to - from) / MINUTE_MS }, (_, i) => from + i * MINUTE_MS);

t.test('a week without a fault, with its stored samples, passes', async (t) => {
  const data = collect(t);
  const url = await serviceWith(t, everyMinute(START - HOUR_MS, END));
  const made = await write(data, {}, url);
  t.equal(
    verdicts(made),
    'uptime PASS, reliability PASS, stability PASS, alerts PASS, performance PASS, integrity PASS',
    JSON.stringify(made.report.judgements.map(({ missing }) => missing)),
  );
  const { lines, of, report, status } = made;
  t.equal(status, 'OK');
  t.match(report, { verdict: 'PASS', is_168_hour_verdict: false, record: null });
  t.match(report.run, {
    origin: 'collected',
    node_name: 'unit_7',
    version: '1.2.3',
    observed_seconds: 604_800,
    monitoring_gap_seconds: 0,
    planned_seconds: 604_800,
  });
  t.match(of.reliability, {
    summary: /^604740 of 604740 statuses published \(100.000 %\), 0 not/,
    missing: [],
    formula: /statuses that the service handed to the ROS 2 graph/,
  });
  t.equal(of.performance.measured.value, 1);
  t.equal(of.stability.measured.value?.toFixed(2), '0.99');
  t.equal(value(of.integrity, 'collected rows'), 10_080);
  t.equal(report.folder, join(data, 'reports', '7day_2026-03-08'));
  t.same(readdirSync(report.folder ?? '').sort(), ['junit.xml', 'report.html', 'report.json', 'report.md']);
  const written = JSON.parse(readFileSync(join(report.folder ?? '', 'report.json'), 'utf8')) as ReportDocument;
  const { series, ...rest } = written;
  t.same({ ...rest, folder: report.folder }, report, 'report.json has the series besides');
  t.match({ points: series.at.length, rates: [...new Set(series.rate_percent)] }, { points: 10_080, rates: [100, null] });
  for (const text of [readFileSync(join(report.folder ?? '', 'report.md'), 'utf8'), lines.join('\n')])
    t.match(text, /It is not the 168-hour verdict/);
});

t.test('a criterion without evidence is INCOMPLETE, and shows what is missing and how to get it', async (t) => {
  const url = await serviceWith(t, everyMinute(START - HOUR_MS, END));
  const noAlerts = temporaryFolder(t);
  writeWeek(noAlerts, perfectWeek());
  const week = (change: (minute: Minute, i: number) => Partial<Minute>): string =>
    collect(t, (minutes) => minutes.map((minute, i) => ({ ...minute, ...change(minute, i) })));
  const process = { resident_memory_bytes: null, cpu_seconds: 1 };
  const cases: readonly (readonly [criteria: readonly Criterion[], missing: RegExp, data: string, from?: string])[] = [
    [['uptime'], /^24 h of 168 h remain to be observed; keep ops\.collect_metrics at every minute for 168 h/, collect(t, lastSixDays)],
    [['uptime'], /^whether there were more restarts .*; journalctl --unit=edge-health/, week(restartedOnce)],
    [['reliability'], /^10080 of 10080 rows have no published_statuses: .*ros\.transport to auto/, week(() => ({ unpublished: null }))],
    [['reliability'], /^5080 of 10080 rows have no/, week((_, i) => (i < 5000 ? {} : { unpublished: null }))],
    [['stability'], /at least .*; .*service_memory_bytes of its rows$/, week(() => ({ status: { process } }))],
    [
      ['performance'],
      /CPU time.*; .*service_cpu_seconds of its rows$/,
      week(() => ({ status: { process: { resident_memory_bytes: 60_000_000, cpu_seconds: null } } })),
    ],
    [['alerts'], /^no alerts were collected: there is nothing in alerts\/; keep ops\.collect_alerts at every 5 minutes/, noAlerts],
    [['integrity'], /^the stored samples: no response from the service.*; report while the service runs/, collect(t), NOT_THERE],
  ];
  for (const [criteria, missing, data, from = url] of cases) {
    const { lines, of, report, status } = await make(data, {}, from);
    t.match({ status, verdict: report.verdict }, { status: 'WARNING', verdict: 'INCOMPLETE' }, String(missing));
    for (const criterion of criteria) {
      t.match(of[criterion], { verdict: 'INCOMPLETE', missing: [missing] });
      t.match(lines.join('\n'), `missing: ${of[criterion].missing[0]}`);
    }
  }
});

t.test('without a response, or from another service, the stored samples are missing evidence', async (t) => {
  const data = collect(t);
  const missing = async (url: string): Promise<string> => (await make(data, {}, url)).of.integrity.missing.join();
  t.match(await missing(NOT_THERE), /the stored samples: no response from the service: .*ECONNREFUSED/);
  t.match(await missing(await serviceWith(t, [], { node: 'unit_8' })), /the stored samples: the service at .* is unit_8, not unit_7/);
  const late = await serviceWith(t, everyMinute(START + HOUR_MS, END), { oldestMs: START + HOUR_MS });
  t.match(await missing(late), /the stored samples: not scanned for/, 'what was removed since is no gap');
});

t.test('a long gap in the stored samples fails', async (t) => {
  const data = collect(t);
  const stamps = everyMinute(START - HOUR_MS, END).filter((ms) => ms < START + 5 * HOUR_MS || ms >= START + 5 * HOUR_MS + 6 * MINUTE_MS);
  const { of, status } = await make(data, {}, await serviceWith(t, stamps));
  t.match(of.integrity, { verdict: 'FAIL', measured: { value: 420 } });
  t.equal(status, 'CRITICAL');
});

t.test('too few samples, too much memory or too much CPU fails', async (t) => {
  const few = await reportOf(t, (week) => week.map((minute, i) => ({ ...minute, samples: 5000 + Math.floor(59.3 * i) })));
  t.match(few.of.reliability, { verdict: 'FAIL', measured: { value: /^98\.83/ } });
  const just = await reportOf(t, (week) => week.map((minute, i) => ({ ...minute, samples: 5000 + Math.floor(59.5 * i) })));
  t.match(just.of.reliability, { verdict: 'PASS' });
  const unpublished = await reportOf(t, (week) => week.map((minute, i) => ({ ...minute, unpublished: Math.floor(0.7 * i) })));
  t.match(unpublished.of.reliability, { verdict: 'FAIL', summary: /^597685 of 604740 statuses published .* 7055 not/ });
  t.match(rowsOf(unpublished.of.reliability, /went/), [
    ['not sampled', 0],
    ['not published', 7055],
  ]);
  // The counters of /status are not read at the same moment: one may be a sample ahead of the other in any row.
  const uneven = await reportOf(t, (week) => week.map((minute, i) => ({ ...minute, unpublished: i % 2 })));
  t.match(uneven.of.reliability.summary, /^60473\d of 604740 statuses published/);
  const leak = await reportOf(t, (week) => week.map((minute, i) => ({ ...minute, memoryBytes: 60e6 + (i / 60) * 1e6 })));
  t.match(leak.of.stability.verdict, 'FAIL');
  const busy = await reportOf(t, (week) => week.map((minute, i) => ({ ...minute, cpuSeconds: 10 + 6.1 * i })));
  t.match(busy.of.performance, { verdict: 'FAIL' });
});

t.test('torn lines, unreadable lines and files with other columns do not stop the report', async (t) => {
  const data = collect(t);
  const file = (name: string): string => join(data, 'metrics', name);
  appendFileSync(file('metrics_2026-03-02.csv'), '2026-03-02T23:59:30.000Z,123,uni');
  appendFileSync(file('metrics_2026-03-03.csv'), Buffer.alloc(5000));
  appendFileSync(file('metrics_2026-03-04.csv'), 'hello\r\nnot a time,1,unit_7\r\n"\r\n');
  writeFileSync(file('metrics_2026-03-05.2.csv'), 'time,node_name,local,answered,novel\r\n2026-03-05T23:59:30.000Z,unit_7,true,true,7\r\n');
  writeFileSync(file('metrics_2026-03-05.3.csv'), '');
  const { of, report } = await make(data);
  t.match(report.run.how, [/^10081 rows of metrics\/ \(files: 9\)/]);
  t.match(report.notes, [/^5 lines of the files cannot be read/]);
  t.match([of.uptime.verdict, of.stability.verdict], ['PASS', 'PASS']);
});

t.test('alerts are judged by the files, and by whether the rows agree', async (t) => {
  const open = (CRITICAL: number) => (week: Minute[]) => {
    for (const minute of week) minute.status = { open_alerts: { WARNING: 0, ERROR: 0, CRITICAL } };
    return undefined;
  };
  let sequence = 0;
  const line = (id: string, ms: number, severity: string, resolved = false, node = 'unit_7'): string => {
    const timestamp = isoUtc(ms);
    const more = { metric: 'cpu_percent', value: 1, threshold: 1, began: timestamp, duration_seconds: 0, collected: timestamp };
    return `${JSON.stringify({ alert_id: `${node}/cpu_percent/${id}`, severity, timestamp, resolved, node, sequence: ++sequence, ...more })}\n`;
  };
  const data = collect(t, open(1));
  const file = (day: string): string => join(data, 'alerts', `alerts_${day}.ndjson`);
  const before = [
    line('old', START - 9 * HOUR_MS, 'WARNING'),
    line('old', START - 8 * HOUR_MS, 'WARNING', true),
    line('open', START - HOUR_MS, 'CRITICAL'),
  ];
  writeFileSync(file('2026-02-20'), before.join(''));
  const inside = [line('a', START + 1000, 'WARNING'), line('a', START + 2000, 'CRITICAL'), line('a', START + 3000, 'WARNING')];
  writeFileSync(file('2026-03-01'), inside.join('') + line('a', START + 4000, 'WARNING', true) + line('b', END + 1000, 'ERROR'));
  const made = await write(data);
  t.match(made.of.alerts, { verdict: 'FAIL', measured: { value: 1 }, missing: [] });
  t.equal(value(made.of.alerts, 'episodes that reached CRITICAL'), 2);
  t.equal(value(made.of.alerts, 'episodes that reached ERROR'), 0, 'what came after the end');
  t.match(rowsOf(made.of.alerts, /^Open/), [['unit_7/cpu_percent/open', 'cpu_percent', 'CRITICAL', 'CRITICAL', isoUtc(START - HOUR_MS)]]);
  const { series } = JSON.parse(readFileSync(join(made.report.folder ?? '', 'report.json'), 'utf8')) as ReportDocument;
  t.match(series.alerts, [
    { alert_id: 'unit_7/cpu_percent/open', from: 0, to: null },
    { alert_id: 'unit_7/cpu_percent/a', severity: 'CRITICAL', to: /^(3\.9|4)/ },
  ]);
  appendFileSync(file('2026-03-01'), line('open', END - HOUR_MS, 'CRITICAL', true));
  const disagreeing = await make(data);
  t.match(disagreeing.of.alerts, { verdict: 'FAIL', missing: /./ }, 'what /status counts is open');
  t.match(disagreeing.of.alerts.missing.join(), /1 CRITICAL were open by the last row, 0 by the collected alerts/);

  const agreeing = collect(t, open(0));
  writeFileSync(
    join(agreeing, 'alerts', 'alerts_2026-03-01.ndjson'),
    line('c', START + 1000, 'CRITICAL') + line('c', START + 2000, 'CRITICAL', true),
  );
  t.match((await make(agreeing)).of.alerts, { verdict: 'PASS', measured: { value: 0 } });
  appendFileSync(join(agreeing, 'alerts', 'alerts_2026-03-01.ndjson'), line('d', START + 5000, 'CRITICAL', false, 'unit_9'));
  t.match((await make(agreeing)).of.alerts, {
    verdict: 'INCOMPLETE',
    measured: { value: 0 },
    missing: [/0 CRITICAL were open by the last row, 1/],
  });
  const never = temporaryFolder(t);
  writeWeek(never, perfectWeek());
  t.match((await make(never)).of.alerts, { verdict: 'INCOMPLETE', missing: [/nothing in alerts/] });
});

t.test('selects the rows of a period', async (t) => {
  const data = collect(t);
  const rows = async (options: Record<string, string | boolean>): Promise<number> =>
    Number.parseInt((await make(data, options)).report.run.how[0] ?? '', 10);
  t.equal(await rows({ days: '1' }), 1440);
  t.equal(await rows({ from: '2026-03-02', to: '2026-03-02T01:00:00Z' }), 60);
  t.equal(await rows({ from: '2026-03-02T00:00:00+01:00', days: '0.5' }), 720);
  t.equal(await rows({ to: '2026-03-03', days: '1' }), 1440);
  t.equal(await rows({ from: '2026-03-07' }), 1440);
  t.match((await make(data, { days: '1' })).of.uptime, { verdict: 'INCOMPLETE', missing: [/planned for 24 h, the test takes 168 h/] });
  for (const options of [
    { from: 'monday' },
    { to: '2026-13-01' },
    { days: '0' },
    { days: 'x' },
    { from: '2026-03-02', to: '2026-03-01' },
    { from: '2027-01-01' },
    { from: '2026-03-01', to: '2026-03-02', days: '1' },
  ] as Record<string, string>[]) {
    await t.rejects(make(data, options), { name: 'UsageError' }, JSON.stringify(options));
  }
});

t.test('without collected data there is a WARNING with the remedy, which is no failure; supports --dry-run and --out', async (t) => {
  const empty = temporaryFolder(t);
  t.match(await make(empty), { status: 'WARNING', lines: [/^WARNING {2}no rows .*is collect_metrics scheduled/] });
  const data = collect(t, (week) => week.slice(-10));
  const out = join(temporaryFolder(t), 'mine');
  t.equal((await make(data, { out })).report.folder, null);
  t.notOk(existsSync(out));
  await write(data, { out });
  t.match(readFileSync(join(out, 'report.md'), 'utf8'), /reliability report: INCOMPLETE/);
});
