import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { begin, minute } from '../record/testing/entries.ts';
import { compose } from './compose.ts';
import type { ReportDocument } from './document.ts';
import { digestOf, REPORT_FILES, statedDigest } from './render.ts';
import { badWeek } from './testing/bad-week.ts';
import { recorded } from './testing/recorded.ts';
import { perfectWeek } from './testing/runs.ts';
import { readPageAssets, writeDocument, writeReports } from './write.ts';

const ASSETS = { script: 'void 0', style: 'p { margin: 0 }' };

t.test('writes four files of one report, and nothing else', async (t) => {
  const folder = temporaryFolder(t);
  recorded(folder, [begin(), minute(1), minute(2)]);
  const before = readdirSync(folder);
  const written = await writeReports(folder, Date.UTC(2026, 3, 1));
  t.equal(written.verdict, 'INCOMPLETE');
  t.match(written.statement, /^This run of 168 h has not ended; observed: 2 min\. It is not the verdict yet\./);
  t.same(
    written.files,
    REPORT_FILES.map((name) => join(folder, name)),
  );
  t.same(readdirSync(folder).sort(), [...before, ...REPORT_FILES].sort());
  const json = readFileSync(join(folder, 'report.json'), 'utf8');
  const { made, verdict } = JSON.parse(json) as ReportDocument;
  t.same([made, verdict], ['2026-04-01T00:00:00.000Z', 'INCOMPLETE']);
  for (const name of REPORT_FILES)
    if (name !== 'report.json') t.equal(statedDigest(name, readFileSync(join(folder, name), 'utf8')), digestOf(json), name);
});

t.test('a new report replaces the old one', async (t) => {
  const folder = temporaryFolder(t);
  t.same((await writeDocument(folder, compose(badWeek()), ASSETS)).warnings, []);
  const old = statSync(join(folder, 'report.html')).ino;
  await writeDocument(folder, compose(perfectWeek()), ASSETS);
  t.match(readFileSync(join(folder, 'report.md'), 'utf8'), /^# edge-health reliability report: PASS/);
  t.not(statSync(join(folder, 'report.html')).ino, old, 'a reader with the old file open keeps it');
});

t.test(
  'on a full disk every file is complete, and files of another report are recognized',
  { skip: whyNotMountable() ?? false },
  async (t) => {
    const disk = new SmallDisk(t);
    await writeDocument(disk.folder, compose(badWeek()), ASSETS);
    const digest = digestOf(readFileSync(join(disk.folder, 'report.json'), 'utf8'));
    disk.fill();
    await t.rejects(writeDocument(disk.folder, compose(perfectWeek()), ASSETS), { code: 'ENOSPC' });
    t.equal(digestOf(readFileSync(join(disk.folder, 'report.json'), 'utf8')), digest);
    t.equal(statedDigest('report.html', readFileSync(join(disk.folder, 'report.html'), 'utf8')), digest);
  },
);

t.test('without the chart script the report is written and reports that the charts are missing', async (t) => {
  const folder = temporaryFolder(t);
  const none = readPageAssets(folder);
  t.same(none, { script: '', style: '' });
  const { warnings } = await writeDocument(folder, compose(badWeek()), none);
  t.match(warnings, [/^report\.html has no style and no charts: .*; install it again .*edge-health harness report \//]);
  const page = readFileSync(join(folder, 'report.html'), 'utf8');
  t.match(page, /The charts are missing/);
  t.match(page, /97\.53 %/);
  writeFileSync(join(folder, 'harness-chart.js'), 'one');
  writeFileSync(join(folder, 'harness-chart.css'), 'two');
  t.same(readPageAssets(folder), { script: 'one', style: 'two' });
});
