import { appendFileSync, copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { begin, clocksAt, minute, oneOfEach } from '../record/testing/entries.ts';
import { RecordWriter } from '../record/writer.ts';
import type { ReportDocument } from './document.ts';
import { documentOf } from './from-record.ts';
import type { PageAssets } from './html.ts';
import { digestOf, REPORT_FILES, readableJson } from './render.ts';
import { type Verification, verifyRun } from './verify.ts';
import { writeDocument } from './write.ts';

const ASSETS: PageAssets = { script: 'void 0', style: 'p { margin: 0 }' };
const VERSION = '1.2.3';

async function report(folder: string, madeBy = VERSION): Promise<void> {
  const { document } = documentOf(folder, { madeMs: clocksAt(9000).wall, madeBy });
  await writeDocument(folder, document, ASSETS);
}

/** A run of some minutes with its report. */
async function run(t: Test, minutes = 12, runId = 'run-1'): Promise<string> {
  const folder = temporaryFolder(t);
  const writer = RecordWriter.create(folder, begin(runId));
  for (let n = 1; n <= minutes; n += 1) writer.append(minute(n));
  for (const entry of oneOfEach(minutes + 1)) writer.append(entry);
  writer.append({ type: 'end', ...clocksAt((minutes + 10) * 60), reason: 'stopped' });
  writer.close();
  await report(folder);
  return folder;
}

const verify = (folder: string, head: string | null = null, version = VERSION): Verification =>
  verifyRun(folder, { head, version, assets: ASSETS });
const altered = ({ document }: Verification): string =>
  document.findings
    .filter(({ kind }) => kind === 'altered')
    .map(({ file, text }) => `${file}: ${text}`)
    .join('\n');

function edit(folder: string, file: string, change: (text: string) => string): void {
  const before = readFileSync(join(folder, file), 'utf8');
  const after = change(before);
  if (before === after) throw new Error(`nothing was changed in ${file}`);
  writeFileSync(join(folder, file), after);
}

function editReport(folder: string, change: (report: { -readonly [K in keyof ReportDocument]: ReportDocument[K] }) => void): void {
  edit(folder, 'report.json', (text) => {
    const value = JSON.parse(text) as ReportDocument;
    change(value);
    return `${readableJson(value)}\n`;
  });
}

t.test('accepts an intact run', async (t) => {
  const folder = await run(t);
  const { document, exit, lines } = verify(folder);
  t.equal(exit, 0, lines.join('\n'));
  t.match(document, { result: 'intact', record: { entries: 24, torn_lines: 0 }, verdict: /^(FAIL|INCOMPLETE)$/ });
  t.same(
    document.findings.map(({ file, kind }) => [file, kind]),
    [RECORD_FILE, ...REPORT_FILES].map((file) => [file, 'good']),
  );
  t.match(lines.join('\n'), /24 entries from 2026-03-01T00:00:00.000Z to 2026-03-01T00:22:00.000Z.*the chain ends with [0-9a-f]{64}/);
  t.match(lines.join('\n'), /can also create a new record with a new chain/);
});

t.test('judges nothing without a record, without a report, or with a report of an earlier state', async (t) => {
  const folder = temporaryFolder(t);
  t.match(verify(folder), { exit: 2, lines: [/^open +record.ndjson: no record can be read .*; name the folder of a run/] });
  const writer = RecordWriter.create(folder, begin());
  writer.append(minute(1));
  t.match(verify(folder), { exit: 2, lines: [/^ok/, /^open +report.json: it is missing/, /^NOT JUDGED/] });
  await report(folder);
  t.equal(verify(folder).exit, 0);
  writer.append(minute(2), minute(3));
  t.match(verify(folder), { exit: 2, lines: [/^ok/, /^open +report.json: it agrees with the first 2 entries; 2 were added since/] });
  writer.close();
  rmSync(join(folder, 'junit.xml'));
  t.match(verify(folder).document.findings.at(-1), { kind: 'open', file: 'junit.xml', text: /missing/ });
});

t.test('detects a change of any byte of any file', async (t) => {
  const folder = await run(t, 3);
  const copy = temporaryFolder(t);
  for (const file of [RECORD_FILE, ...REPORT_FILES]) {
    const bytes = readFileSync(join(folder, file));
    cpSync(folder, copy, { recursive: true });
    const isFound = (changed: Buffer): boolean => {
      writeFileSync(join(copy, file), changed);
      return changed.equals(bytes) || verify(copy).exit !== 0;
    };
    const position = fc.nat(bytes.length - 1);
    const value = fc.integer({ min: 0, max: 127 });
    const property = fc.property(position, value, fc.constantFrom(0, 1), (at, byte, removed) =>
      isFound(Buffer.concat([bytes.subarray(0, at), Buffer.of(byte), bytes.subarray(at + removed)])),
    );
    t.doesNotThrow(() => fc.assert(property, { numRuns: runs(10, 150), seed: SEED }), file);
  }
});

t.test('detects a changed record', async (t) => {
  const folder = await run(t);
  edit(folder, RECORD_FILE, (text) => text.replace('"cause":"signal"', '"cause":"reboot"'));
  const found = verify(folder);
  t.equal(found.exit, 1);
  t.match(
    altered(found),
    /^record.ndjson: line 15: its hash is not .* changed after it was written; 14 entries before that line are good$/,
  );
  t.match(found.document.findings[1], { file: 'report.json', kind: 'open' });
});

t.test('detects a record that was truncated after the report', async (t) => {
  const folder = await run(t);
  edit(folder, RECORD_FILE, (text) => `${text.trimEnd().split('\n').slice(0, -3).join('\n')}\n`);
  t.match(verify(folder), { exit: 1 });
  t.match(altered(verify(folder)), /^report.json: it was made of 24 entries, and the record has 21: the record was truncated since$/);
});

t.test('detects a record that was replaced as a whole, with or without its report', async (t) => {
  const folder = await run(t);
  const noted = verify(folder).document.record.head;
  const other = await run(t, 12, 'run-2');
  copyFileSync(join(other, RECORD_FILE), join(folder, RECORD_FILE));
  t.match(
    altered(verify(folder)),
    /^report.json: entry 23 had the hash [0-9a-f]+ when it was written, and has [0-9a-f]+: the record was replaced$/,
  );
  for (const file of REPORT_FILES) copyFileSync(join(other, file), join(folder, file));
  t.equal(verify(folder).exit, 0, 'the folder alone does not show it');
  t.match(altered(verify(folder, noted)), /the noted hash .* is not in the chain: this is another record, or it was replaced/);
});

t.test('verifies a hash that was noted', async (t) => {
  const folder = await run(t);
  const middle = JSON.parse(readFileSync(join(folder, RECORD_FILE), 'utf8').split('\n')[9] as string) as { hash: string };
  t.match(verify(folder, middle.hash), {
    exit: 0,
    lines: [/./, /the noted hash is that of entry 9: nothing up to there was changed since/],
  });
  t.equal(verify(folder, 'f'.repeat(64)).exit, 1);
});

t.test('detects a report that does not follow from the record', async (t) => {
  const changes: readonly [string, RegExp, Parameters<typeof editReport>[1]][] = [
    ['verdict', /verdict is "PASS", and the record gives "/, (r) => Object.assign(r, { verdict: 'PASS' })],
    ['measured', /judgements\.\d\.measured\.value is 0\.5, and/, (r) => Object.assign(r.judgements[4]?.measured ?? {}, { value: 0.5 })],
    ['a word', /statement is "All is well", and/, (r) => Object.assign(r, { statement: 'All is well' })],
    ['a chart', /series\.memory_megabytes\.2 is 1, and/, (r) => Object.assign(r.series.memory_megabytes, { 2: 1 })],
    ['a note taken away', /notes\.0 is missing, and/, (r) => (r.notes as string[]).splice(0)],
    ['the record', /it states that it comes from collected files/, (r) => Object.assign(r, { record: null })],
    ['bytes', /record\.entries is|it was made of/, (r) => Object.assign(r.record ?? {}, { entries: 25 })],
    ['torn lines', /record\.torn_lines is 3, and the record gives 0/, (r) => Object.assign(r.record ?? {}, { torn_lines: 3 })],
    ['an unknown member', /it is not a report: .*well/, (r) => Object.assign(r, { well: true })],
  ];
  for (const [what, message, change] of changes) {
    const folder = await run(t, 4);
    editReport(folder, change);
    const found = verify(folder);
    t.equal(found.exit, 1, what);
    t.match(altered(found), message, what);
    t.match(altered(found), /report\.html: it belongs to a report\.json with the SHA-256/, `${what}: the others belong to another report`);
  }
  const folder = await run(t, 4);
  edit(folder, 'report.json', (text) => text.slice(0, -20));
  t.match(altered(verify(folder)), /^report.json: it is not JSON/);
});

t.test('detects pages whose content differs from report.json', async (t) => {
  const folder = await run(t);
  const digest = digestOf(readFileSync(join(folder, 'report.json')));
  for (const file of ['report.html', 'report.md', 'junit.xml']) {
    const before = readFileSync(join(folder, file), 'utf8');
    edit(folder, file, (text) => text.replace(/INCOMPLETE|FAIL|failures/, 'PASS'));
    t.equal(altered(verify(folder)), `${file}: it names this report.json, but its content differs`);
    edit(folder, file, (text) => text.replaceAll(digest, 'a'.repeat(64)));
    t.match(altered(verify(folder)), `${file}: it belongs to a report.json with the SHA-256 aaaa`);
    writeFileSync(join(folder, file), before);
  }
  t.equal(verify(folder).exit, 0);
});

t.test('compares a report of another version by its decisions, not by its wording', async (t) => {
  const folder = await run(t);
  const other = verify(folder, null, '2.0.0');
  t.equal(other.exit, 0);
  t.match(other.lines.join('\n'), /written by version 1\.2\.3: verdicts and numbers were compared, not the wording/);
  editReport(folder, (r) => Object.assign(r, { statement: 'worded otherwise' }));
  t.notMatch(altered(verify(folder, null, '2.0.0')), 'report.json: statement');
  editReport(folder, (r) => Object.assign(r.judgements[0] ?? {}, { verdict: 'PASS' }));
  t.match(altered(verify(folder, null, '2.0.0')), /report\.json: judgements\.0\.verdict is "PASS"/);
});

t.test('reports truncated lines', async (t) => {
  const folder = await run(t);
  appendFileSync(join(folder, RECORD_FILE), '{"type":"minute","boot":');
  t.match(verify(folder), {
    exit: 2,
    lines: [/^open +record.ndjson: truncated at its end, line 25: it was cut off after 24 bytes/, /^ok +report.json/],
  });
  const { writer } = RecordWriter.open(folder, () => clocksAt(1400));
  writer.append(minute(30));
  writer.close();
  await report(folder);
  t.match(verify(folder), { exit: 0, lines: [/26 entries .*; 1 truncated by SIGKILL or a power cut, and acknowledged/] });
});
