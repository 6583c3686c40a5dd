import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { week } from '../../testkit/weeks/weeks.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { readRecord } from '../record/reader.ts';
import { RecordWriter } from '../record/writer.ts';
import { documentOf } from './from-record.ts';

function write(folder: string, hours: number): void {
  const [begin, ...entries] = week({ hours });
  if (begin?.type !== 'begin') throw new Error('no begin');
  const writer = RecordWriter.create(folder, begin);
  for (let from = 0; from < entries.length; from += 500) writer.append(...entries.slice(from, from + 500));
  writer.close();
}

t.test('torn at every byte of its last 200 a record says what its intact part says', async (t) => {
  const folder = temporaryFolder(t);
  write(folder, 0.5);
  const file = join(folder, RECORD_FILE);
  const bytes = readFileSync(file);
  const options = { madeMs: Date.parse('2026-04-01T00:00:00.000Z'), madeBy: '1.2.3' };
  const said = (length: number): string => {
    writeFileSync(file, bytes.subarray(0, length));
    return JSON.stringify(documentOf(folder, options).document);
  };
  const intact = new Map<number, string>();
  for (let length = bytes.length - 200; length <= bytes.length; length += 1) {
    const whole = bytes.lastIndexOf(0x0a, length - 1) + 1;
    const due = intact.get(whole) ?? said(whole);
    intact.set(whole, due);
    if (said(length) !== due) t.fail(`cut after ${length} of ${bytes.length} bytes`);
  }
  t.ok(intact.size > 1, 'an entry lies within');
});

t.test('a day at 1 Hz, received by topic and event stream, takes less than a seventh of 50 MB', async (t) => {
  const folder = temporaryFolder(t);
  write(folder, 24);
  let statuses = 0;
  const { bytes, state } = readRecord(folder, (entry) => {
    if (entry.type !== 'minute') return;
    for (const way of [entry.topic, entry.events]) statuses += way?.first == null ? 0 : way.steps.length + 1;
  });
  t.equal(state, 'intact');
  t.ok(statuses >= 2 * 86_400, `${statuses} statuses`);
  t.ok(7 * bytes < 50e6, `${(bytes / 1e6).toFixed(1)} MB`);
  t.ok(7 * bytes > 5e6);
});
