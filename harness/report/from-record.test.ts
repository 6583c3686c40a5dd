import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { temporaryFolder } from '../../testkit/folder.ts';
import { week } from '../../testkit/weeks/weeks.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { begin, clocksAt, minute, resume } from '../record/testing/entries.ts';
import { reportSchema } from './document.ts';
import { documentOf } from './from-record.ts';
import { render } from './render.ts';
import { assets } from './testing/forms.ts';
import { recorded } from './testing/recorded.ts';

const MADE = { madeMs: Date.UTC(2026, 3, 1), madeBy: '1.2.3' };

t.test('a perfect week passes, in a page of less than 3 MB', async (t) => {
  const folder = temporaryFolder(t);
  recorded(folder, week({ hertz: 0.1 }));
  const { document, reading } = documentOf(folder, MADE);
  t.equal(v.safeParse(reportSchema, document).success, true);
  t.equal(document.verdict, 'PASS');
  t.equal(document.is_168_hour_verdict, true);
  t.equal(document.run.observed_seconds, 604_800);
  t.equal(document.series.at.length, 10_080);
  t.equal(document.series.memory_trend.length, 1);
  t.ok(document.series.memory_medians.length > 1900);
  t.same(document.record, { file: RECORD_FILE, entries: reading.entries, bytes: reading.bytes, head: reading.head, torn_lines: 0 });
  t.equal(document.made_by, '1.2.3');
  t.ok(render(document, await assets())['report.html'].length < 3_000_000);
});

t.test('a run with every kind of event has them in its series, and one trend line for each run of the service', async (t) => {
  const folder = temporaryFolder(t);
  recorded(
    folder,
    week({
      hours: 24,
      memory: (at, sinceStart) => 60e6 + sinceStart * 50 + (at % 7),
      faults: [
        { kind: 'suspend', at: 10_000, seconds: 1800 },
        { kind: 'restart', at: 30_000, seconds: 60, cause: 'watchdog' },
        { kind: 'kill', at: 50_000, seconds: 3600 },
        { kind: 'step', at: 60_000, seconds: -3600 },
        { kind: 'alert', at: 70_000, seconds: null, severity: 'CRITICAL' },
      ],
    }),
  );
  const { document } = documentOf(folder, MADE);
  t.equal(document.verdict, 'FAIL');
  t.match(document.statement, /^This run (lasted|has lasted) .* It is not the 168-hour verdict\. Failed: .*Alerts/);
  t.match(document.statement, /Monitoring gaps of 1 h in total/);
  const { series } = document;
  t.same(
    series.restarts.map(({ cause }) => cause),
    ['watchdog'],
  );
  t.equal(series.monitoring_gaps.length, 1);
  t.equal(Math.round(series.suspends[0]?.seconds ?? 0), 1800);
  t.equal(Math.round(series.clock_steps[0]?.seconds ?? 0), -3600);
  t.match(series.alerts, [{ severity: 'CRITICAL', to: null }]);
  t.equal(series.memory_trend.length, 2, 'a line for each run of the service');
  const [before, after] = series.memory_trend;
  const slope = (line: typeof before): number =>
    ((line?.megabytes_to ?? 0) - (line?.megabytes_from ?? 0)) / ((line?.to ?? 0) - (line?.from ?? 0));
  t.ok(Math.abs(slope(before) * 1e6 - 50) < 1 && Math.abs(slope(after) * 1e6 - 50) < 1, `${slope(before)} and ${slope(after)} MB a second`);
});

t.test('a report contains the facts of the run', async (t) => {
  const folder = temporaryFolder(t);
  const again = resume(700);
  if (again.type !== 'resume') throw new Error('no resume');
  recorded(folder, [
    begin(),
    minute(1),
    { type: 'note', ...clocksAt(60), text: 'the stream broke off' },
    minute(2),
    { type: 'note', ...clocksAt(120), text: 'the stream broke off' },
    { ...again, target: { ...again.target, version: '0.2.0' }, observer: { ...again.observer, transport: 'off', reason: 'asked for' } },
    { ...minute(13), observer: { cpu_seconds: 0.08, resident_bytes: 71_000_000 } },
    { ...minute(14), observer: { cpu_seconds: 0.14, resident_bytes: 60_000_000 } },
  ]);
  const { run, notes } = documentOf(folder, MADE).document;
  t.equal(run.id, 'run-1');
  t.equal(run.node_name, 'unit_7');
  t.equal(run.version, '0.2.0');
  t.equal(run.begun, '2026-03-01T00:00:00.000Z');
  t.equal(run.ended, '2026-03-01T00:14:00.000Z');
  t.equal(run.finished, false);
  t.match(run.how[1], /^\/health_status and \/alerts on the ROS 2 graph, transport embedded: needs no ROS 2$/);
  t.match(run.how.at(-1), /^From 2026-03-01 00:11:40 UTC on: Not on the ROS 2 graph: asked for$/);
  t.equal(run.machine?.['model'], 'Raspberry Pi 5 Model B Rev 1.0');
  // 1.2 s until 00:02 (1.1 s until 00:01), then 0.14 s in 140 s for the next process.
  t.equal(run.harness?.cpu_percent, Math.round(((1.2 + 0.14) / (120 + 140)) * 1e5) / 1e3);
  t.equal(run.harness?.resident_bytes, 71_000_000);
  t.ok(notes.includes('Versions of the service during this run, in order: 0.1.0 and 0.2.0.'));
  t.ok(notes.includes('2026-03-01 00:01:00 UTC: the stream broke off (2 times in total)'), notes.join('\n'));
});

t.test('an earlier report can be computed again from a record that has grown since', async (t) => {
  const folder = temporaryFolder(t);
  recorded(folder, [begin(), minute(1), minute(2)]);
  const { document: first } = documentOf(folder, MADE);
  const grown = temporaryFolder(t);
  recorded(grown, [begin(), minute(1), minute(2), minute(3), minute(4)]);
  t.not(documentOf(grown, MADE).document.record?.entries, first.record?.entries);
  const { bytes = 0, entries = 0 } = first.record ?? {};
  t.same(documentOf(grown, { ...MADE, upTo: { entries, bytes } }).document, first);
});

t.test('refuses a report without a record, or of an altered one', async (t) => {
  const folder = temporaryFolder(t);
  t.throws(() => documentOf(folder, MADE), { code: 'none', message: /name the folder of a run/ });
  recorded(folder, [begin(), minute(1), minute(2)]);
  const file = join(folder, RECORD_FILE);
  const text = readFileSync(file, 'utf8');
  appendFileSync(file, '{"type":"minute","boo');
  t.equal(documentOf(folder, MADE).document.record?.entries, 3, 'a truncated last line is no alteration');
  writeFileSync(file, text.replace('"missed":0', '"missed":1'));
  t.throws(() => documentOf(folder, MADE), { code: 'altered', message: /was changed after it was written \(line 2: / });
});
