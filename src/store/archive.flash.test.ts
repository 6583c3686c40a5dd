import { readFileSync, statSync } from 'node:fs';
import t from 'tap';
import { DAY_MS, HOUR_MS } from '../core/time.ts';
import { testArchive } from './testing/archive.ts';
import type { Row } from './testing/rows.ts';

// What a day costs the flash it is written to, told from SQLite's log: each commit appends its pages to it, and the device
// writes every block of 4096 bytes that they touch; each checkpoint writes the pages of the log to the database.

const NODE = 'a';
const START = Math.floor(Date.now() / DAY_MS - 2) * DAY_MS;
const BLOCK = 4096;
/** SQLite's default for wal_autocheckpoint. */
const FRAMES_A_CHECKPOINT = 1000;

let seed = 4711;
function random(): number {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return seed / 2 ** 31;
}

let cpu = 10;
let temperature = 48;
function minute(fromMs: number): Row[] {
  return Array.from({ length: 60 }, (_, i) => {
    cpu = random() < 0.02 ? random() * 100 : cpu * 0.8 + random() * 4;
    temperature += random() - 0.5;
    const values = [cpu, 42 + random() * 0.3, 61 + fromMs / 1e15, temperature].map((value) => Math.round(value * 100) / 100);
    return { timestampMs: fromMs + i * 1000 + Math.round(random() * 3), values, status: 'OK' };
  });
}

t.test('a day at 1 Hz, with an alert an hour, writes less than 20 MB', async (t) => {
  const opened = testArchive(t, START);
  const { archive } = opened;
  archive.setRate(NODE, 1);
  archive.db.exec('PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE)');
  const log = `${opened.path}-wal`;
  const ends: number[] = [];
  for (let at = START; at < START + DAY_MS; at += 60_000) {
    opened.add(NODE, minute(at));
    opened.nowMs = at + 60_000;
    opened.commit();
    ends.push(statSync(log).size);
    if (at % HOUR_MS !== 0) continue;
    const timestamp = new Date(at).toISOString();
    archive.saveAlert({
      alert_id: `a/cpu_percent/${at}`,
      severity: 'WARNING',
      metric: 'cpu_percent',
      value: 85,
      threshold: 80,
      timestamp,
      resolved: false,
    });
    ends.push(statSync(log).size);
  }
  const { page_size: pageSize } = archive.db.prepare('PRAGMA page_size').get() as { page_size: number };
  let blocks = 0;
  let written = 0;
  for (const end of ends) {
    if (end > written) blocks += Math.ceil(end / BLOCK) - Math.floor(written / BLOCK);
    written = end;
  }
  const content = readFileSync(log);
  let frames = 0;
  let pages = new Set<number>();
  for (let frame = 32; frame < content.length; frame += pageSize + 24) {
    pages.add(content.readUInt32BE(frame));
    frames += 1;
    if (frames % FRAMES_A_CHECKPOINT !== 0) continue;
    blocks += pages.size;
    pages = new Set();
  }
  blocks += pages.size;
  const megabytes = (blocks * BLOCK) / 1e6;
  t.ok(frames > 1440, 'every minute was written');
  t.ok(megabytes < 20, `${megabytes.toFixed(1)} MB`);
  t.comment(`${megabytes.toFixed(1)} MB a day`);
});
