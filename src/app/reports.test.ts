import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { Reports } from './reports.ts';

const PUBLISHED = join(import.meta.dirname, '../../docs/develop/reports/run');

function reportIn(folder: string, name: string, seconds: number): void {
  cpSync(PUBLISHED, join(folder, 'reports', name), { recursive: true });
  utimesSync(join(folder, 'reports', name, 'report.json'), seconds, seconds);
}

t.test('without reports the list is empty', async (t) => {
  const reports = new Reports([join(temporaryFolder(t), 'none')]);
  t.same(await reports.list(), { data: [], count: 0, running: null });
  t.equal(await reports.read('run', 'html'), 'missing');
});

t.test('reports of all folders are listed, the newest first, and can be read in each format', async (t) => {
  const [data, other] = [temporaryFolder(t), temporaryFolder(t)];
  const reports = new Reports([data, other]);
  reportIn(data, '7day_2026-03-01', 1000);
  reportIn(other, 'harness-20260304T050607Z', 2000);
  const list = await reports.list();
  t.match(list, {
    count: 2,
    data: [
      {
        name: 'harness-20260304T050607Z',
        verdict: 'INCOMPLETE',
        observed: true,
        is_168_hour_verdict: false,
        begun: /^2026-/,
        statement: /This run lasted 2 h/,
      },
      { name: '7day_2026-03-01' },
    ],
  });
  for (const [format, beginning] of [
    ['html', '<!doctype html>'],
    ['json', '{'],
    ['markdown', '#'],
    ['junit', '<?xml'],
  ] as const) {
    const content = await reports.read('harness-20260304T050607Z', format);
    t.equal(String(content).slice(0, beginning.length).toLowerCase(), beginning, format);
  }
});

t.test('files that are not reports are not listed and do not block: damaged, half-written, a FIFO, a folder', async (t) => {
  const folder = temporaryFolder(t);
  const reports = new Reports([folder]);
  reportIn(folder, 'good', 1000);
  for (const [name, content] of [
    ['empty', ''],
    ['half', '{"verdict": "PASS", "sta'],
    ['unknown', '{"verdict": "maybe"}'],
    ['null', 'null'],
  ] as const) {
    mkdirSync(join(folder, 'reports', name));
    writeFileSync(join(folder, 'reports', name, 'report.json'), content);
  }
  mkdirSync(join(folder, 'reports/folder/report.json'), { recursive: true });
  mkdirSync(join(folder, 'reports/fifo'));
  execFileSync('mkfifo', [join(folder, 'reports/fifo/report.json'), join(folder, 'reports/fifo/report.html')]);
  writeFileSync(join(folder, 'reports/file'), '');
  t.same(
    (await reports.list())?.data.map(({ name }) => name),
    ['good'],
  );
  t.equal(await reports.read('fifo', 'html'), 'missing');
});

t.test('a rewritten report is read again, and a removed one disappears', async (t) => {
  const folder = temporaryFolder(t);
  const reports = new Reports([folder]);
  reportIn(folder, 'run', 1000);
  const file = join(folder, 'reports/run/report.json');
  t.match(await reports.list(), { data: [{ verdict: 'INCOMPLETE' }] });
  const document = JSON.parse(String(await reports.read('run', 'json')));
  writeFileSync(`${file}.new`, JSON.stringify({ ...document, verdict: 'FAIL' }));
  renameSync(`${file}.new`, file);
  t.match(await reports.list(), { data: [{ verdict: 'FAIL' }] });
  rmSync(join(folder, 'reports/run'), { recursive: true });
  t.match(await reports.list(), { count: 0 });
});

t.test('the run of `harness start` is shown until it has ended, also before its record begins', async (t) => {
  const folder = temporaryFolder(t);
  const reports = new Reports([folder]);
  const out = join(folder, 'reports/harness-20260304T050607Z');
  mkdirSync(join(folder, 'harness'));
  const request = join(folder, 'harness/current.json');
  for (const damaged of ['', '{}', '{"out": 1}', '{"out": "x", "requested": "never"}']) {
    writeFileSync(request, damaged);
    t.equal((await reports.list())?.running, null, damaged);
  }
  writeFileSync(request, JSON.stringify({ out, duration: '168h', duration_seconds: 604_800, requested: '2026-03-04T05:06:07.000Z' }));
  const running = { name: 'harness-20260304T050607Z', begun: '2026-03-04T05:06:07.000Z', planned_seconds: 604_800 };
  t.same((await reports.list())?.running, { ...running, recorded: null });
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, 'record.ndjson'), '{}\n');
  utimesSync(join(out, 'record.ndjson'), 1_772_600_000, 1_772_600_000);
  t.same((await reports.list())?.running, { ...running, recorded: '2026-03-04T04:53:20.000Z' });
  rmSync(request);
  t.equal((await reports.list())?.running, null);
});

t.test('while the disk hangs one read is in progress and requests time out; reports are served again afterwards', async (t) => {
  const folder = temporaryFolder(t);
  let begun = 0;
  let resume = (): void => undefined;
  const hanging = new Promise<void>((resolve) => {
    resume = resolve;
  });
  const reports = new Reports(
    [folder],
    async () => {
      begun += 1;
      await hanging;
      return Buffer.from('content');
    },
    0.01,
  );
  const answers = await Promise.all(Array.from({ length: 40 }, () => reports.read('run', 'html')));
  t.same(new Set(answers), new Set([null]));
  t.equal(begun, 1);
  resume();
  await until('the requests before have ended', async () => String(await reports.read('run', 'html')) === 'content');
  t.ok(begun <= 40);
});
