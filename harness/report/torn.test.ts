import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { week } from '../../testkit/weeks/weeks.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { readRecord } from '../record/reader.ts';
import { documentOf } from './from-record.ts';
import { recorded } from './testing/recorded.ts';

t.test('a record torn at any of its last 200 bytes gives the report of its intact part', async (t) => {
  const folder = temporaryFolder(t);
  recorded(folder, week({ hours: 0.5 }));
  const file = join(folder, RECORD_FILE);
  const bytes = readFileSync(file);
  const options = { madeMs: Date.parse('2026-04-01T00:00:00.000Z'), madeBy: '1.2.3' };
  const reported = (length: number): string => {
    writeFileSync(file, bytes.subarray(0, length));
    return JSON.stringify(documentOf(folder, options).document);
  };
  const intact = new Map<number, string>();
  for (let length = bytes.length - 200; length <= bytes.length; length += 1) {
    const whole = bytes.lastIndexOf(0x0a, length - 1) + 1;
    const expected = intact.get(whole) ?? reported(whole);
    intact.set(whole, expected);
    if (reported(length) !== expected) t.fail(`cut after ${length} of ${bytes.length} bytes`);
  }
  t.ok(intact.size > 1, 'the cuts cross an entry');
});

t.test('a day at 1 Hz, received by topic and event stream, takes less than a seventh of 50 MB', async (t) => {
  const folder = temporaryFolder(t);
  recorded(folder, week({ hours: 24 }));
  let statuses = 0;
  const { bytes, state } = readRecord(folder, (entry) => {
    if (entry.type !== 'minute') return;
    for (const channel of [entry.topic, entry.events]) statuses += channel?.first == null ? 0 : channel.steps.length + 1;
  });
  t.equal(state, 'intact');
  t.ok(statuses >= 2 * 86_400, `${statuses} statuses`);
  t.ok(7 * bytes < 50e6, `${(bytes / 1e6).toFixed(1)} MB`);
  t.ok(7 * bytes > 5e6);
});
