import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { recordSyncs } from '../../testkit/machine/disk-syncs.ts';
import { RECORD_FILE } from './entries.ts';
import { readRecord } from './reader.ts';
import { begin, clocksAt, minute, oneOfEach, resume } from './testing/entries.ts';
import { RecordWriter } from './writer.ts';

/** The recorder is killed this many writes after its start. */
const KILLED_AFTER = [1, 2, 7, 19, 60];
const program = fileURLToPath(new URL('./testing/recorder.ts', import.meta.url));
const refusal = (code: string, message: RegExp) => ({ name: 'RecordError', code, message });

t.test('a record can be created, closed and continued', async (t) => {
  const folder = join(temporaryFolder(t), 'made', 'if need be');
  const first = RecordWriter.create(folder, begin());
  first.append(minute(1), minute(2));
  t.match(first, { entries: 3, pending: 0, problem: null, bytes: fs.statSync(join(folder, RECORD_FILE)).size });
  first.append({ type: 'end', ...clocksAt(130), reason: 'stopped' });
  const { head } = first;
  first.close();
  const seen: string[] = [];
  const { reading, torn, writer } = RecordWriter.open(
    folder,
    () => clocksAt(200),
    ({ type }) => seen.push(type),
  );
  t.same(seen, ['begin', 'minute', 'minute', 'end']);
  t.match(reading, { state: 'intact', entries: 4, head, last: { type: 'end' } });
  t.match({ torn, entries: writer.entries, head: writer.head }, { torn: false, entries: 4, head });
  writer.append(resume(200));
  writer.close();
  t.match(readRecord(folder), { state: 'intact', entries: 5 });
  t.same(fs.readdirSync(folder).sort(), ['record.lock', RECORD_FILE].sort());
});

t.test('a record is on the disk before it has its name, and each entry before append returns', async (t) => {
  const folder = temporaryFolder(t);
  const syncs = await recordSyncs();
  const writer = RecordWriter.create(folder, begin());
  t.same(syncs(), [`sync ${RECORD_FILE}.new`, `rename ${RECORD_FILE}.new ${RECORD_FILE}`, `sync ${basename(folder)}`]);
  writer.append(minute(1), minute(2));
  t.same(syncs(), [`sync ${RECORD_FILE}`]);
  writer.close();
});

t.test('a refusal states the reason and the remedy', async (t) => {
  const folder = temporaryFolder(t);
  t.throws(() => RecordWriter.open(folder, () => clocksAt(0)), refusal('none', /no run is recorded there; begin one/));
  t.notOk(fs.existsSync(join(folder, 'record.lock')), 'a mistaken folder is left as it is');
  const writer = RecordWriter.create(folder, begin());
  for (const entry of oneOfEach()) writer.append(entry);
  const opened = (): unknown => RecordWriter.open(folder, () => clocksAt(900));
  t.throws(opened, refusal('in-use', /another edge-health harness records there/));
  t.throws(() => RecordWriter.create(folder, begin()), refusal('in-use', /./));
  writer.close();
  t.throws(() => RecordWriter.create(folder, begin()), refusal('exists', /a run is recorded there already; resume it, or choose another/));
  const file = join(folder, RECORD_FILE);
  const bytes = fs.readFileSync(file);
  const digit = bytes.lastIndexOf('"boot":1') + 8;
  bytes[digit] = (bytes[digit] as number) ^ 1;
  fs.writeFileSync(file, bytes);
  t.throws(opened, refusal('altered', /record\.ndjson, line 11: its hash is not .* begin a new run in another folder/));
  t.ok(fs.readFileSync(file).equals(bytes), 'and nothing is written to it');
  fs.writeFileSync(file, `${JSON.stringify({ ...begin(), format: 9 })}\n`);
  t.throws(opened, refusal('unsupported', /line 1: it has format 9; this version reads 1/));
  fs.writeFileSync(file, '{"type":"begin"');
  t.throws(opened, refusal('none', /no run is recorded/));
  fs.writeFileSync(file, '');
  RecordWriter.create(folder, begin()).close();
  t.match(readRecord(folder), { state: 'intact', entries: 1 }, 'an empty file is no record');
  t.throws(() => RecordWriter.create(join(file, 'below'), begin()), refusal('unwritable', /a part of the path is no folder/));
});

t.test('a record that is changed while it is written ends the run, and no existing content is lost', async (t) => {
  const changes: Readonly<Record<string, (file: string) => void>> = {
    'was removed': (file) => fs.rmSync(file),
    'was removed or replaced': (file) => {
      fs.copyFileSync(file, `${file}~`);
      fs.renameSync(`${file}~`, file);
    },
    'bytes, where': (file) => fs.appendFileSync(file, 'x'),
    'has 10 bytes, where': (file) => fs.truncateSync(file, 10),
  };
  for (const [what, change] of Object.entries(changes)) {
    const folder = temporaryFolder(t);
    const writer = RecordWriter.create(folder, begin());
    change(join(folder, RECORD_FILE));
    t.throws(() => writer.append(minute(1)), refusal('changed', new RegExp(`${what}.*begin a new one in another folder`)));
    writer.close();
  }
});

async function recordAndKill(folder: string, writes: number): Promise<number> {
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  let text = '';
  const begun = new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (text.split('\n').length > writes) resolve();
    });
    child.once('close', resolve);
  });
  await begun;
  child.kill('SIGKILL');
  const [, signal] = await closed;
  if (signal !== 'SIGKILL') throw new Error(`the recorder ended by itself: ${text.slice(-300)}`);
  const lines = text.split('\n').slice(0, -1); // The last line may be cut off.
  return Number(lines.at(-1)?.slice('entries '.length));
}

t.test('kill -9 at any moment loses nothing that was written, and the next run continues', async (t) => {
  const folder = join(temporaryFolder(t), 'run');
  for (const writes of KILLED_AFTER) {
    const reported = await recordAndKill(folder, writes);
    const reading = readRecord(folder);
    if (reading.state !== 'intact' && reading.state !== 'torn') t.fail(JSON.stringify(reading.problem));
    t.ok(reading.entries >= reported, `${reading.entries} entries, ${reported} reported`);
  }
  let resumed = 0;
  const reading = readRecord(folder, ({ type }) => {
    if (type === 'resume') resumed += 1;
  });
  t.equal(resumed, KILLED_AFTER.length - 1);
  t.ok(reading.entries > 60);
});

t.test('a lock is held as long as its process runs, and no longer', async (t) => {
  const folder = join(temporaryFolder(t), 'run');
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  child.kill('SIGSTOP');
  t.throws(() => RecordWriter.open(folder, () => clocksAt(900)), refusal('in-use', /another/));
  child.kill('SIGKILL');
  await closed;
  RecordWriter.open(folder, () => clocksAt(900)).writer.close();
  t.equal(readRecord(folder).state, 'intact');
});
