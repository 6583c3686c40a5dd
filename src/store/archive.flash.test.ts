import { readFileSync, statSync } from 'node:fs';
import t, { type Test } from 'tap';
import { DAY_MS, HOUR_MS } from '../core/time.ts';
import { change } from './testing/alerts.ts';
import { testArchive } from './testing/archive.ts';
import { type Row, toColumns } from './testing/rows.ts';

// What a day costs the flash it is written to, told from SQLite's log: each commit appends its pages to it, and the device
// writes every block of 4096 bytes that they touch; each checkpoint writes the pages of the log to the database.

const START = Math.floor(Date.now() / DAY_MS - 2) * DAY_MS;
const BLOCK = 4096;
/** SQLite's default for wal_autocheckpoint. */
const FRAMES_A_CHECKPOINT = 1000;

let seed = 4711;
function random(): number {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return seed / 2 ** 31;
}

/** A machine that idles with bursts. */
class Machine {
  #cpu = 10;
  #temperature = 48;

  /** `phaseMs`: when in each second it measures. */
  minute(fromMs: number, phaseMs: number): Row[] {
    return Array.from({ length: 60 }, (_, i) => {
      this.#cpu = random() < 0.02 ? random() * 100 : this.#cpu * 0.8 + random() * 4;
      this.#temperature += random() - 0.5;
      const values = [this.#cpu, 42 + random() * 0.3, 61 + fromMs / 1e15, this.#temperature].map((value) => Math.round(value * 100) / 100);
      return { timestampMs: fromMs + i * 1000 + phaseMs + Math.round(random() * 3), values, status: 'OK' };
    });
  }
}

/** Some hours of so many nodes at 1 Hz, with an alert an hour of each. */
function megabytes(t: Test, nodes: readonly string[], hours: number): number {
  const opened = testArchive(t, START);
  const { archive } = opened;
  for (const node of nodes) archive.setRate(node, 1);
  archive.db.exec('PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE)');
  const machines = nodes.map((node, i) => ({ node, machine: new Machine(), phaseMs: Math.floor((i * 997) / nodes.length) }));
  const log = `${opened.path}-wal`;
  const ends: number[] = [];
  for (let at = START; at < START + hours * HOUR_MS; at += 60_000) {
    for (const [i, { node, machine, phaseMs }] of machines.entries()) {
      const columns = toColumns(machine.minute(at, phaseMs));
      // They come in turn, now and then one before another.
      for (let row = 0; row < 60; row += 1) columns.order[row] = row * nodes.length + i + 1 + (nodes.length > 1 && random() < 0.1 ? 1 : 0);
      archive.append(at, node, columns);
    }
    opened.nowMs = at + 60_000;
    archive.commit(at);
    ends.push(statSync(log).size);
    if (at % HOUR_MS !== 0) continue;
    for (const node of nodes) {
      archive.saveAlert(change(`${node}/cpu_percent/${at}`, at), { segment: at, order: 10_000 });
      ends.push(statSync(log).size);
    }
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
  t.ok(frames > 60 * hours * nodes.length, 'every minute was written');
  return (blocks * BLOCK) / 1e6;
}

t.test('a day at 1 Hz, with an alert an hour, writes less than 20 MB', async (t) => {
  const aDay = megabytes(t, ['a'], 24);
  t.ok(aDay < 20, `${aDay.toFixed(1)} MB`);
});

t.test('each further node that is gathered writes as much', async (t) => {
  const nodes = ['a', ...Array.from({ length: 10 }, (_, i) => `/robot_${i}/health_monitor`)];
  const aQuarter = megabytes(t, nodes, 6);
  t.ok(aQuarter < (20 / 4) * nodes.length, `${aQuarter.toFixed(1)} MB in a quarter of a day`);
});
