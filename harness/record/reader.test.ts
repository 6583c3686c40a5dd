import { appendFileSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { type SealedEntry, seal } from './chain.ts';
import { RECORD_FILE, type RecordEntry } from './entries.ts';
import { MAX_LINE_BYTES, type RecordReading, readRecord } from './reader.ts';
import { begin, clocksAt, minute, oneOfEach } from './testing/entries.ts';
import { RecordWriter } from './writer.ts';

fc.configureGlobal({ seed: SEED });

function recorded(t: Test, entries: readonly RecordEntry[]): { readonly folder: string; readonly bytes: Buffer } {
  const folder = temporaryFolder(t);
  const writer = RecordWriter.create(folder, begin());
  for (const entry of entries) writer.append(entry);
  writer.close();
  return { folder, bytes: readFileSync(join(folder, RECORD_FILE)) };
}

function readAll(folder: string): { readonly reading: RecordReading; readonly entries: SealedEntry[] } {
  const entries: SealedEntry[] = [];
  const reading = readRecord(folder, (entry) => entries.push(entry));
  return { reading, entries };
}

function readBytes(folder: string, bytes: Buffer): RecordReading {
  writeFileSync(join(folder, RECORD_FILE), bytes);
  return readRecord(folder);
}

const bare = ({ hash: _, n: __, ...entry }: SealedEntry): unknown => entry;

t.test('reads back what was written', async (t) => {
  const { folder, bytes } = recorded(t, oneOfEach());
  const { entries, reading } = readAll(folder);
  t.same(entries.map(bare), [begin(), ...oneOfEach()]);
  t.same(
    entries.map(({ n }) => n),
    entries.map((_, i) => i),
  );
  t.match(reading, { state: 'intact', problem: null, entries: 11, bytes: bytes.length, tornLines: 0, tornEnd: null });
  t.equal(reading.head, entries.at(-1)?.hash);
  t.same(reading.begin, entries[0]);
  t.same(reading.last, entries.at(-1));
});

t.test('the hash chain can be verified with a few lines of any language', async (t) => {
  const { bytes, folder } = recorded(t, oneOfEach());
  const { createHash } = await import('node:crypto');
  let previous = 'run-1';
  for (const line of bytes.toString('utf8').trimEnd().split('\n')) {
    const [, text, hash] = /^(.*),"hash":"([0-9a-f]{64})"\}$/.exec(line) as unknown as [string, string, string];
    t.equal(createHash('sha256').update(`${previous}${text}}`).digest('hex'), hash);
    previous = hash;
  }
  t.equal(readRecord(folder).head, previous);
});

t.test('blocks may end anywhere in a line, even within a character', async (t) => {
  const folder = temporaryFolder(t);
  const writer = RecordWriter.create(folder, begin());
  const texts = Array.from({ length: 300 }, (_, i) => 'é€😀'.repeat(100 + i));
  writer.append(...texts.map((text, i): RecordEntry => ({ type: 'note', ...clocksAt(i), text })));
  writer.close();
  const { entries, reading } = readAll(folder);
  t.equal(reading.state, 'intact');
  t.ok(reading.bytes > 500_000, 'several blocks');
  t.same(
    entries.slice(1).map((entry) => entry.type === 'note' && entry.text),
    texts,
  );
});

t.test('a folder without a record is reported as such', async (t) => {
  const folder = temporaryFolder(t);
  t.match(readRecord(folder), { state: 'none', entries: 0, bytes: 0, head: '', begin: null, last: null });
  t.match(readBytes(folder, Buffer.alloc(0)), { state: 'none', entries: 0 });
  t.match(readBytes(folder, Buffer.from('{"type":"begin","boot":12')), { state: 'none', entries: 0, problem: { line: 1 } });
  t.throws(() => readRecord(join(folder, RECORD_FILE)), { code: 'ENOTDIR' });
});

t.test('refuses a record of another format, and a file that is not a record', async (t) => {
  const folder = temporaryFolder(t);
  const { line } = seal({ ...begin(), format: 2 as 1 }, 0, 'run-1');
  t.match(readBytes(folder, line), { state: 'unsupported', problem: { line: 1, what: /format 2; this version reads 1/ } });
  for (const text of ['hello\n', '{}\n', 'null\n', '[]\n', '7\n', '{"type":"begin","format":1}\n', '\n'])
    t.match(readBytes(folder, Buffer.from(text)), { state: 'altered', problem: { line: 1 } }, JSON.stringify(text));
  const minuteFirst = seal(minute(1), 0, 'run-1').line;
  t.match(readBytes(folder, minuteFirst), { state: 'altered', problem: { line: 1, what: 'it is not the begin of a record' } });
});

t.test('refuses an entry with a valid hash and a wrong shape', async (t) => {
  const folder = temporaryFolder(t);
  const first = seal(begin(), 0, 'run-1');
  const problemOf = (entry: unknown): string | undefined => {
    const second = seal(entry as RecordEntry, 1, first.hash);
    const reading = readBytes(folder, Buffer.concat([first.line, second.line]));
    t.equal(reading.entries, reading.state === 'intact' ? 2 : 1);
    return reading.problem?.what;
  };
  const good = minute(1);
  t.equal(problemOf(good), undefined);
  t.equal(problemOf({ ...good, later: 'members that this version does not know are ignored' }), undefined);
  t.equal(problemOf({ ...good, type: 'hour' }), 'its type is "hour", which this version does not know');
  t.equal(problemOf({ ...good, boot: '12' }), 'boot is "12", not a number');
  t.equal(problemOf({ ...good, wall: Number.NaN }), 'wall is null, not a number');
  t.equal(problemOf({ ...good, stalled_seconds: -1 }), 'stalled_seconds is -1, not 0 or more');
  t.equal(
    problemOf({ ...good, topic: { first: 1, steps: [1000.5], slowest_ms: null, fastest_ms: null } }),
    'steps is 1000.5, not a whole number',
  );
  t.equal(
    problemOf({ ...good, topic: { first: null, steps: [1], slowest_ms: null, fastest_ms: null } }),
    'steps is 1, not empty, as first is null',
  );
  t.equal(problemOf({ ...good, events: undefined }), 'events is missing, not an object');
  t.equal(problemOf({ ...good, service: { ...good.service, samples: undefined } }), 'samples is missing, not a count');
  t.equal(problemOf({ ...good, service: { ...good.service, open_files: undefined } }), 'open_files is missing, not a count');
  t.equal(
    problemOf({ type: 'open', ...clocksAt(1), open: [{ alert_id: 'a', metric: 'm' }] }),
    'severity is missing, not one of WARNING, ERROR, CRITICAL',
  );
  t.equal(problemOf({ ...good, service: { ...good.service, samples: 1.5 } }), 'samples is 1.5, not a count');
  t.equal(
    problemOf({ ...good, service: { ...good.service, cpu_from: 'guess' } }),
    'cpu_from is "guess", not one of group, process, status',
  );
  t.match(problemOf({ ...good, service: { ...good.service, resident_bytes: 5 } }), /resident_bytes is 5, not a list/);
  t.equal(problemOf({ type: 'end', ...clocksAt(1), reason: 'tired' }), 'reason is "tired", not one of complete, stopped');
  t.equal(problemOf({ ...begin() }), 'a begin can only be the first entry');
  t.equal(
    problemOf({ type: 'torn', ...clocksAt(1), bytes: 3, sha256: 'ab' }),
    'it acknowledges a line that was cut off, and there is none',
  );
});

t.test('a line longer than any entry does not fill memory', async (t) => {
  const { folder, bytes } = recorded(t, []);
  const long = Buffer.alloc(MAX_LINE_BYTES + 300_000, 'x');
  t.match(readBytes(folder, Buffer.concat([bytes, long])), { state: 'altered', problem: { line: 2 }, entries: 1 });
});

t.test('detects every change of a byte', async (t) => {
  const { folder, bytes } = recorded(t, oneOfEach());
  const any = fc.record({ at: fc.nat(bytes.length - 1), value: fc.integer({ min: 0, max: 255 }) });
  const found = (changed: Buffer): boolean => changed.equals(bytes) || readBytes(folder, changed).state !== 'intact';
  fc.assert(
    fc.property(any, ({ at, value }) => {
      const changed = Buffer.from(bytes);
      changed[at] = value;
      return found(changed);
    }),
    { numRuns: 400 },
  );
  fc.assert(
    fc.property(any, ({ at }) => found(Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]))),
    { numRuns: 400 },
  );
  fc.assert(
    fc.property(any, ({ at, value }) => found(Buffer.concat([bytes.subarray(0, at), Buffer.of(value), bytes.subarray(at)]))),
    { numRuns: 400 },
  );
  t.notOk(readBytes(folder, Buffer.concat([bytes, Buffer.of(0x0a)])).state === 'intact', 'nor an empty line at the end');
});

t.test('returns neither the changed line nor any line after it', async (t) => {
  const { folder, bytes } = recorded(t, oneOfEach());
  const lines = bytes.toString('utf8').trimEnd().split('\n');
  for (const [at, line] of lines.entries()) {
    const changed = lines.with(at, line.replace('"boot":', '"boot":1')).join('\n');
    writeFileSync(join(folder, RECORD_FILE), `${changed}\n`);
    const { entries, reading } = readAll(folder);
    t.match(reading, {
      state: 'altered',
      entries: at,
      problem: { line: at + 1, what: 'its hash is not that of its text and the entry before' },
    });
    t.equal(entries.length, at);
  }
});

t.test('detects lines that were swapped, removed, duplicated or taken from another run', async (t) => {
  const { folder, bytes } = recorded(t, [...oneOfEach(), ...oneOfEach(10)]);
  const lines = bytes.toString('utf8').trimEnd().split('\n');
  const state = (changed: readonly string[]): string => readBytes(folder, Buffer.from(`${changed.join('\n')}\n`)).state;
  t.equal(state(lines), 'intact');
  const place = fc.nat(lines.length - 1);
  fc.assert(
    fc.property(place, place, (a, b) => {
      const swapped = lines.with(a, lines[b] as string).with(b, lines[a] as string);
      return a === b || state(swapped) === 'altered';
    }),
  );
  for (const at of lines.keys()) {
    t.equal(state(lines.toSpliced(at, 0, lines[at] as string)), 'altered', `line ${at + 1} repeated`);
    // A record without its last line is one that ended earlier: only a report, or a hash noted elsewhere, reveals that.
    if (at < lines.length - 1) t.equal(state(lines.toSpliced(at, 1)), 'altered', `line ${at + 1} removed`);
  }
  const other = temporaryFolder(t);
  const writer = RecordWriter.create(other, begin('run-2'));
  for (const entry of oneOfEach()) writer.append(entry);
  writer.close();
  const ofOtherRun = readFileSync(join(other, RECORD_FILE), 'utf8').trimEnd().split('\n');
  for (const at of ofOtherRun.keys()) t.equal(state(lines.with(at, ofOtherRun[at] as string)), 'altered', `line ${at + 1} of another run`);
});

t.test('a record torn at any of its last 200 bytes can be resumed, torn again there, and resumed again', async (t) => {
  const { folder, bytes } = recorded(t, [...oneOfEach(), minute(11)]);
  const lineStarts = [...bytes.keys()].filter((at) => at === 0 || bytes[at - 1] === 0x0a);
  for (let end = bytes.length - 200; end <= bytes.length; end += 1) {
    const torn = temporaryFolder(t);
    mkdirSync(torn, { recursive: true });
    copyFileSync(join(folder, RECORD_FILE), join(torn, RECORD_FILE));
    const cut = readBytes(torn, bytes.subarray(0, end));
    const good = end === bytes.length ? end : (lineStarts.findLast((at) => at <= end) as number);
    if (cut.bytes !== good || cut.state !== (good === end ? 'intact' : 'torn')) t.fail(`cut at ${end}: ${JSON.stringify(cut)}`);
    const intact = readBytes(temporaryFolder(t), bytes.subarray(0, good));
    t.match(
      { ...cut, tornEnd: null, state: '', problem: null },
      { ...intact, state: '', problem: null },
      `as the intact prefix, cut at ${end}`,
    );

    const { writer, reading, torn: wasTorn } = RecordWriter.open(torn, () => clocksAt(700));
    t.equal(wasTorn, good !== end);
    t.equal(reading.bytes, good);
    writer.append(minute(12));
    writer.close();
    const after = readRecord(torn);
    t.match(after, { state: 'intact', entries: cut.entries + (wasTorn ? 2 : 1), tornLines: wasTorn ? 1 : 0 });
    t.ok(readFileSync(join(torn, RECORD_FILE)).subarray(0, end).equals(bytes.subarray(0, end)), 'what was there stays there');
  }
});

t.test('an acknowledgement may itself be cut off anywhere', async (t) => {
  const { bytes, folder } = recorded(t, oneOfEach());
  const end = bytes.length - 50;
  readBytes(folder, bytes.subarray(0, end));
  RecordWriter.open(folder, () => clocksAt(700)).writer.close();
  const acknowledged = readFileSync(join(folder, RECORD_FILE));
  for (let cut = end; cut <= acknowledged.length; cut += 1) {
    const before = readBytes(folder, acknowledged.subarray(0, cut));
    const { writer } = RecordWriter.open(folder, () => clocksAt(800));
    writer.append(minute(12));
    writer.close();
    const after = readRecord(folder);
    if (before.state !== (cut === acknowledged.length ? 'intact' : 'torn') || after.state !== 'intact' || after.tornLines !== 1)
      t.fail(`cut at ${cut}: ${JSON.stringify({ before, after })}`);
  }
  t.pass('each can be resumed');
});

t.test('a power cut may leave zeros in a line, with or without its end', async (t) => {
  const { bytes, folder } = recorded(t, oneOfEach());
  const lastStart = bytes.lastIndexOf(0x0a, bytes.length - 2) + 1;
  for (const [what, ending] of [
    ['all zeros', Buffer.alloc(900)],
    ['its second half', Buffer.concat([Buffer.alloc(300), bytes.subarray(lastStart + 300)])],
    ['its first half', Buffer.concat([bytes.subarray(lastStart, lastStart + 100), Buffer.alloc(300)])],
  ] as const) {
    const torn = readBytes(folder, Buffer.concat([bytes.subarray(0, lastStart), ending]));
    t.match(torn, { state: 'torn', entries: 10, bytes: lastStart }, what);
    const { writer } = RecordWriter.open(folder, () => clocksAt(800));
    writer.append(minute(12));
    writer.close();
    t.match(readRecord(folder), { state: 'intact', entries: 12, tornLines: 1 }, what);
  }
});

t.test('a torn line may be acknowledged, but neither replaced nor skipped', async (t) => {
  const { bytes, folder } = recorded(t, oneOfEach());
  readBytes(folder, bytes.subarray(0, -20));
  RecordWriter.open(folder, () => clocksAt(700)).writer.close();
  const acknowledged = readFileSync(join(folder, RECORD_FILE));
  for (let at = bytes.length - 300; at < bytes.length - 20; at += 7) {
    const changed = Buffer.from(acknowledged);
    changed[at] = (changed[at] as number) ^ 1;
    t.equal(readBytes(folder, changed).state, 'altered', `byte ${at} of the torn line`);
  }
  const start = bytes.lastIndexOf(0x0a, bytes.length - 2) + 1;
  const mark = acknowledged.indexOf('\u0018\n');
  t.equal(readBytes(folder, Buffer.concat([acknowledged.subarray(0, start), acknowledged.subarray(mark + 2)])).state, 'altered');
  // A line marked as void in the middle of a record, without an acknowledgement.
  const second = bytes.indexOf(0x0a) + 1;
  const forged = Buffer.concat([bytes.subarray(0, second), Buffer.from('{"type":"minute"\u0018\n'), bytes.subarray(second)]);
  t.match(readBytes(folder, forged), { state: 'altered', problem: { line: 3 } });
  appendFileSync(join(folder, RECORD_FILE), 'x');
  t.equal(readRecord(folder).state, 'altered', 'a torn end does not change that');
});
