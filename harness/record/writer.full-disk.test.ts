import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { RECORD_FILE, type RecordEntry } from './entries.ts';
import { readRecord } from './reader.ts';
import { begin, clocksAt, minute } from './testing/entries.ts';
import { RecordWriter } from './writer.ts';

const skip = whyNotMountable() ?? false;

const recordOf = (folder: string): { readonly state: string; readonly entries: RecordEntry[] } => {
  const entries: RecordEntry[] = [];
  const { state } = readRecord(folder, ({ hash: _, n: __, ...entry }) => entries.push(entry as RecordEntry));
  return { state, entries };
};

t.test('a full disk loses nothing: what could not be written is written later', { skip }, async (t) => {
  const { folder, disk } = ((): { folder: string; disk: SmallDisk } => {
    const small = new SmallDisk(t);
    return { folder: small.folder, disk: small };
  })();
  const writer = RecordWriter.create(folder, begin());
  const minutes = Array.from({ length: 40 }, (_, i) => minute(i + 1));
  writer.append(...minutes.slice(0, 3));
  t.equal(writer.problem, null);
  disk.fill();
  for (const entry of minutes.slice(3)) writer.append(entry);
  t.match(writer.problem, /record\.ndjson: the disk is full; free some space/);
  t.ok(writer.pending > 30, `${writer.pending} wait`);
  const file = readFileSync(join(folder, RECORD_FILE));
  t.equal(writer.bytes, file.length);
  const full = recordOf(folder);
  t.match(full, { state: file.at(-1) === 0x0a ? 'intact' : 'torn' });
  t.same(full.entries, [begin(), ...minutes].slice(0, full.entries.length), 'what was there is there');
  t.ok(full.entries.length >= 4);
  disk.free();
  t.ok(writer.flush());
  t.match(writer, { problem: null, pending: 0, entries: 41 });
  t.same(recordOf(folder), { state: 'intact', entries: [begin(), ...minutes] });
  writer.append(minute(41));
  writer.close();
  t.equal(recordOf(folder).entries.length, 42);
});

t.test('a record whose observer is killed while the disk is full is resumed with its content', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  const first = RecordWriter.create(disk.folder, begin());
  disk.fill();
  for (let n = 1; n <= 20; n += 1) first.append(minute(n));
  const before = readRecord(disk.folder);
  first.close();
  // While the disk is full nothing can be acknowledged; that happens as soon as there is space.
  const { torn, writer } = RecordWriter.open(disk.folder, () => clocksAt(1500));
  t.equal(torn, before.state === 'torn');
  if (torn) t.match(writer.problem, /full/);
  disk.free();
  writer.append(minute(30));
  t.equal(writer.problem, null);
  writer.close();
  t.match(readRecord(disk.folder), { state: 'intact', entries: before.entries + (torn ? 2 : 1), tornLines: torn ? 1 : 0 });
});

t.test('a record on a full disk is refused with the remedy, and created once there is space', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  disk.fill();
  t.throws(() => RecordWriter.create(disk.folder, begin()), { code: 'unwritable', message: /the disk is full; free some space/ });
  disk.free();
  RecordWriter.create(disk.folder, begin()).close();
  t.match(readRecord(disk.folder), { state: 'intact', entries: 1 });
});

t.test('a read-only file system is reported, and the record can still be read', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  const writer = RecordWriter.create(disk.folder, begin());
  writer.close();
  disk.makeReadOnly();
  t.throws(() => RecordWriter.open(disk.folder, () => clocksAt(9)), { code: 'unwritable', message: /the file system is read-only/ });
  t.match(readRecord(disk.folder), { state: 'intact' }, 'it can be read all the same');
});
