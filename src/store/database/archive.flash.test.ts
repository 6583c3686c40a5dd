import { readFileSync, statSync } from 'node:fs';
import t, { type Test } from 'tap';
import { DAY_MS, HOUR_MS } from '../../core/time/time.ts';
import { ALL, change } from '../testing/alerts.ts';
import { type TestArchive, testArchive } from '../testing/archive.ts';
import { type Row, toColumns } from '../testing/rows.ts';

// Bytes per day written to flash, computed from the write-ahead log: each commit appends its pages to the log, and the device writes
// every block of 4096 bytes that they touch; each checkpoint writes the blocks of the pages in the log to the database.

const START = Math.floor(Date.now() / DAY_MS - 2) * DAY_MS;
const BLOCK = 4096;
/** SQLite's default for wal_autocheckpoint. */
const FRAMES_A_CHECKPOINT = 1000;

let seed = 4711;
function random(): number {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return seed / 2 ** 31;
}

/** A machine that idles with bursts of load. */
class Machine {
  #cpu = 10;
  #temperature = 48;

  /** `phaseMs`: offset of the samples within each second. */
  minute(fromMs: number, phaseMs: number): Row[] {
    return Array.from({ length: 60 }, (_, i) => {
      this.#cpu = random() < 0.02 ? random() * 100 : this.#cpu * 0.8 + random() * 4;
      this.#temperature += random() - 0.5;
      const values = [this.#cpu, 42 + random() * 0.3, 61 + fromMs / 1e15, this.#temperature].map((value) => Math.round(value * 100) / 100);
      return { timestampMs: fromMs + i * 1000 + phaseMs + Math.round(random() * 3), values, status: 'OK' };
    });
  }
}

/** Counts the bytes written from now on; `committed` must be called after each commit. */
function meter(opened: TestArchive): { readonly committed: () => void; readonly megabytes: () => number; readonly frames: () => number } {
  const { archive, path } = opened;
  archive.db.exec('PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE)');
  const { page_size: pageSize } = archive.db.prepare('PRAGMA page_size').get() as { page_size: number };
  const ends: number[] = [];
  const frames = (): number => Math.floor((statSync(`${path}-wal`).size - 32) / (pageSize + 24));
  const megabytes = (): number => {
    let blocks = 0;
    let written = 0;
    for (const end of ends) {
      if (end > written) blocks += Math.ceil(end / BLOCK) - Math.floor(written / BLOCK);
      written = end;
    }
    const content = readFileSync(`${path}-wal`);
    let touched = new Set<number>();
    for (let frame = 0; frame < frames(); frame += 1) {
      touched.add(Math.floor(((content.readUInt32BE(32 + frame * (pageSize + 24)) - 1) * pageSize) / BLOCK));
      if ((frame + 1) % FRAMES_A_CHECKPOINT !== 0) continue;
      blocks += touched.size;
      touched = new Set();
    }
    return ((blocks + touched.size) * BLOCK) / 1e6;
  };
  return { committed: () => ends.push(statSync(`${path}-wal`).size), megabytes, frames };
}

/** Hours of samples of several nodes at 1 Hz, the first of which is local, with one alert per hour and node. */
function megabytes(t: Test, nodes: readonly string[], hours: number): number {
  const opened = testArchive(t, START);
  opened.localNode = nodes[0] as string;
  opened.restart();
  const { archive } = opened;
  for (const node of nodes) archive.setRate(node, 1);
  const written = meter(opened);
  const machines = nodes.map((node, i) => ({ node, machine: new Machine(), phaseMs: Math.floor((i * 997) / nodes.length) }));
  for (let at = START; at < START + hours * HOUR_MS; at += 60_000) {
    for (const [i, { node, machine, phaseMs }] of machines.entries()) {
      const columns = toColumns(machine.minute(at, phaseMs));
      // The nodes arrive in turn, with occasional swaps.
      for (let row = 0; row < 60; row += 1)
        columns.sequence[row] = row * nodes.length + i + 1 + (nodes.length > 1 && random() < 0.1 ? 1 : 0);
      archive.append(at, node, columns);
    }
    opened.nowMs = at + 60_000;
    archive.commit(at);
    written.committed();
    if (at % HOUR_MS !== 0) continue;
    for (const node of nodes) {
      archive.saveAlert(change(`${node}/cpu_percent/${at}`, at), { segment: at, sequence: 10_000 });
      written.committed();
    }
  }
  t.equal(archive.samples.lastSegment(), START + hours * HOUR_MS - 60_000, 'every minute was written');
  return written.megabytes();
}

t.test('a day at 1 Hz, with an alert an hour, writes less than 20 MB', async (t) => {
  const aDay = megabytes(t, ['a'], 24);
  t.ok(aDay < 20, `${aDay.toFixed(1)} MB`);
});

const robots = (count: number): string[] => ['a', ...Array.from({ length: count }, (_, i) => `/robot_${i}/health_monitor`)];

t.test('remote nodes share the pages they write to: ten write no more than 5 MB each in a day, 300 no more than 2', async (t) => {
  const aQuarter = megabytes(t, robots(10), 6);
  t.ok(aQuarter * 4 < 20 + 10 * 5, `${(aQuarter * 4).toFixed(1)} MB a day`);
  const twoHours = megabytes(t, robots(300), 2);
  t.ok(twoHours * 12 < 600, `${(twoHours * 12).toFixed(0)} MB a day`);
});

/**
 * An archive of the node `a` that receives changes of remote alerts every minute, each about a different alert. Returns the bytes written
 * in each minute.
 */
function alertStorm(t: Test, minutes: number, changesAMinute: number) {
  const opened = testArchive(t, START);
  opened.localNode = 'a';
  opened.restart();
  const { archive } = opened;
  const written = meter(opened);
  const machine = new Machine();
  let n = 0;
  for (let minute = 0; minute < minutes; minute += 1) {
    const at = START + minute * 60_000;
    opened.nowMs = at + 60_000;
    archive.append(at, 'a', toColumns(machine.minute(at, 0)));
    for (let i = 0; i < changesAMinute; i += 1) {
      n += 1;
      // The worst case: no two changes share a page.
      const scattered = ((n * 2_654_435_761) % 2 ** 32).toString(36);
      const news = change(`${scattered}/battery/${'x'.repeat(200)}${n}`, at - (n % 1000) * 86_400, { metric: 'battery' });
      if (!archive.saveAlert(news, { segment: at, sequence: i + 1 })) t.fail('news');
    }
    archive.commit(at);
    written.committed();
  }
  return { archive, megabytes: written.megabytes(), count: n };
}

t.test('413 changes of forged alerts are written in one commit and cost no more than a few local ones', async (t) => {
  const { archive, megabytes: made } = alertStorm(t, 1, 413);
  const stored = archive.db.prepare('SELECT count(*) AS count FROM alert_change').get() as { count: number };
  t.equal(stored.count, 413);
  t.ok(made < 7, `${made.toFixed(2)} MB`);
  t.equal(archive.alertsNotStored, 0);
});

t.test('changes of remote alerts write no more per day than this machine itself', async (t) => {
  // The highest accepted rate of all remote nodes: five per second. More minutes write no more, as the last ones show.
  const { archive, megabytes: aDay, count } = alertStorm(t, 16, 300);
  const own = alertStorm(t, 16, 0).megabytes;
  t.ok(aDay - own < 25, `${(aDay - own).toFixed(1)} MB`);
  const stored = archive.db.prepare('SELECT count(*) AS count FROM alert_change').get() as { count: number };
  t.ok(stored.count > 400 && stored.count < count / 2, `${stored.count} of ${count} stored`);
  t.ok(archive.alertsNotStored > count / 2, 'the others are counted');
  const shown = archive.alerts.list({ ...ALL, nowMs: START + HOUR_MS, limit: 20_000 }).alerts;
  t.ok(shown.length > stored.count, `${shown.length} of the open ones are shown`);
  t.ok(archive.saveAlert(change('a/cpu_percent/1', START), { segment: START + HOUR_MS, sequence: 1 }), 'a local alert is new');
  t.ok(archive.db.prepare("SELECT 1 FROM episode WHERE alert_id = 'a/cpu_percent/1'").get(), 'and written at once');
});
