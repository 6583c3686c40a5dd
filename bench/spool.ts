/**
 * Cost of a record in the spool, which is a file, compared with the same record in SQLite: both are in tmpfs,
 * where a SIGKILL loses neither.
 */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Spool } from '../src/store/spool/spool.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { median, pause } from './support/statistics.ts';

const BATCHES = 50;
const RECORDS_PER_BATCH = 200;
const SPACED_RECORDS = 50;
const SPACING_SECONDS = 0.2;

const LINE = JSON.stringify({
  ...{ cpu_percent: 12.34, memory_percent: 45.67, disk_percent: 56.78, temperature: 48.5 },
  ...{ status: 'OK', node_name: 'health_monitor', timestamp: '2026-03-04T05:06:07.089Z' },
});

/** CPU of this process per call, in microseconds. */
function cpuOf(calls: number, call: () => void): number {
  const before = process.cpuUsage();
  for (let n = 0; n < calls; n += 1) call();
  const { system, user } = process.cpuUsage(before);
  return (user + system) / calls;
}

await benchmark('spool', async ({ cleanup, progress }): Promise<Outcome> => {
  const folder = cleanup.folderInMemory();
  const spool = new Spool(mkdtempSync(join(folder, 'spool-')));
  spool.begin(1);
  const beforeDatabase = process.memoryUsage.rss();
  const database = new DatabaseSync(join(folder, 'spool.db'));
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE record (sequence INTEGER PRIMARY KEY, line TEXT)');
  const insert = database.prepare('INSERT INTO record (line) VALUES (?)');
  const writeToSpool = (): void => void spool.write(LINE);
  const insertIntoDatabase = (): void => void insert.run(LINE);
  for (const write of [writeToSpool, insertIntoDatabase]) cpuOf(RECORDS_PER_BATCH, write);
  const megabytes = (process.memoryUsage.rss() - beforeDatabase) / 1e6;

  progress(`${BATCHES} batches of ${RECORDS_PER_BATCH} records, alternating`);
  const dense: [number[], number[]] = [[], []];
  for (let n = 0; n < BATCHES; n += 1) {
    dense[0].push(cpuOf(RECORDS_PER_BATCH, writeToSpool));
    dense[1].push(cpuOf(RECORDS_PER_BATCH, insertIntoDatabase));
  }
  progress(`a record every ${SPACING_SECONDS} s`);
  const spaced: [number[], number[]] = [[], []];
  for (let n = 0; n < SPACED_RECORDS; n += 1) {
    for (const [i, write] of [writeToSpool, insertIntoDatabase].entries()) {
      await pause(SPACING_SECONDS);
      spaced[i]?.push(cpuOf(1, write));
    }
  }
  spool.end();
  database.close();
  const name = 'SQLite';
  return {
    rows: [
      {
        figure: 'CPU of one record, one after the other',
        unit: 'µs',
        value: median(dense[0]),
        baseline: { name, value: median(dense[1]) },
      },
      {
        figure: `CPU of one record every ${SPACING_SECONDS} s: caches gone cold`,
        unit: 'µs',
        value: median(spaced[0]),
        baseline: { name, value: median(spaced[1]) },
      },
    ],
    notes: [
      `Both write a health status as JSON, ${BATCHES} batches of ${RECORDS_PER_BATCH}, then ${SPACED_RECORDS} with a pause before each. SQLite: node:sqlite with a write-ahead log, synchronous OFF, a prepared statement and one record a transaction. Its connection added ${megabytes.toFixed(1)} MB of resident memory.`,
    ],
  };
});
