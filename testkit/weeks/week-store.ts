import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { judgingRules } from '../../src/app/judge.ts';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import { STATUSES } from '../../src/core/alerts/alert.ts';
import { toHealthStatus } from '../../src/core/health-status.ts';
import { type Readings, toHundredths } from '../../src/core/metrics.ts';
import { DAY_MS, HOUR_MS } from '../../src/core/time/time.ts';
import { Archive } from '../../src/store/database/archive.ts';
import { RAW_DAYS } from '../../src/store/database/retention.ts';
import { Batch } from '../../src/store/spool/segment-recorder.ts';
import { ProcessMeter } from '../machine/process-meter.ts';

const { thresholds: THRESHOLDS } = judgingRules(DEFAULT_CONFIG, DEFAULT_CONFIG.node_name);
const SEGMENT_SAMPLES = 60;
/** Before the last day, this many segments are written at once: the same rows, in fewer transactions. */
const SEGMENTS_AT_ONCE = 60;

export interface Filled {
  readonly samples: number;
  /** Bytes written to disk for the last day, in transactions of one minute each as in production. */
  readonly lastDayBytes: number;
}

/**
 * Makes the kernel write the wal-index now. The wal-index is a memory-mapped file. In production, the kernel writes it back between two
 * commits, which are a minute apart, so that it counts for each of them.
 */
function writeBackIndex(databasePath: string): void {
  const path = `${databasePath}-shm`;
  if (!existsSync(path)) return;
  const descriptor = openSync(path, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** Plausible readings from a fixed seed, so that two stores receive the same data: a daily cycle, bursts of load, a disk that fills. */
class SyntheticMachine {
  #state = 20260101;
  #load = 20;
  #memory = 45;
  #celsius = 50;

  at(timestampMs: number): Readings {
    const day = Math.sin((2 * Math.PI * (timestampMs % DAY_MS)) / DAY_MS);
    const aim = this.#random() < 0.01 ? 95 : 25 + 15 * day;
    this.#load += 0.2 * (aim - this.#load) + 6 * (this.#random() - 0.5);
    this.#memory += 0.001 * (50 - this.#memory) + 0.1 * (this.#random() - 0.5);
    this.#celsius += 0.02 * (42 + 0.4 * this.#load - this.#celsius) + 0.4 * (this.#random() - 0.5);
    const percent = (value: number): number => toHundredths(Math.min(100, Math.max(0, value)));
    return {
      cpu_percent: percent(this.#load),
      memory_percent: percent(this.#memory),
      disk_percent: percent(60 + ((timestampMs / 1000) % 1e6) / 1e5),
      temperature: toHundredths(Math.round(this.#celsius * 2) / 2),
    };
  }

  /** Mulberry32. */
  #random(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
}

interface SyntheticSample {
  readonly timestampMs: number;
  readonly readings: Readings;
}

/** One sample per second with up to 2 ms of timer delay; until `toMs`, or up to now if it is null. */
function* samples(fromMs: number, toMs: number | null): Generator<SyntheticSample> {
  const machine = new SyntheticMachine();
  for (let interval = 0; ; interval += 1) {
    const timestampMs = fromMs + interval * 1000 + ((interval * 7) % 3);
    if (timestampMs >= (toMs ?? Date.now())) return;
    yield { timestampMs, readings: machine.at(timestampMs) };
  }
}

/** Fills a data folder with samples up to now, with the code of the store and in the batches of production. */
export function fillDataFolder(folder: string, fromMs: number): Filled {
  mkdirSync(folder, { recursive: true });
  const node = DEFAULT_CONFIG.node_name;
  const path = join(folder, 'edge-health.db');
  let nowMs = fromMs;
  const archive = new Archive({
    path,
    maxBytes: DEFAULT_CONFIG.storage.max_megabytes * 1e6,
    localNode: node,
    nowMs: () => nowMs,
    onQuarantined: (_, reason) => {
      throw new Error(`${path}: ${reason}`);
    },
  });
  archive.open();
  archive.setRate(node, 1);
  const self = new ProcessMeter('self');
  const lastDayMs = Date.now() - DAY_MS;
  let beforeBytes = 0;
  let count = 0;
  let segment = fromMs;
  let batch = new Batch();
  const end = (commit: boolean): void => {
    if (batch.count > 0) archive.append(segment, node, batch.take().columns);
    if (commit) archive.commit(segment);
    batch = new Batch();
  };
  for (const { timestampMs, readings } of samples(fromMs, null)) {
    const sample = { interval: count, monotonicSeconds: timestampMs / 1000, timestampMs, readings, disks: [] };
    batch.add(toHealthStatus(sample, node, THRESHOLDS, []), timestampMs, batch.count + 1);
    nowMs = timestampMs;
    count += 1;
    if (batch.count < SEGMENT_SAMPLES) continue;
    const inLastDay = timestampMs >= lastDayMs;
    end(inLastDay || count % (SEGMENT_SAMPLES * SEGMENTS_AT_ONCE) === 0);
    if (inLastDay) writeBackIndex(path);
    if (inLastDay && beforeBytes === 0) beforeBytes = self.writtenBytes();
    segment = timestampMs;
  }
  end(true);
  const lastDayBytes = self.writtenBytes() - beforeBytes;
  archive.close();
  return { samples: count, lastDayBytes };
}

/** Writes the same samples as rows of one plain table, with the same retention; returns the open database. */
export function fillPlainTable(path: string, fromMs: number, toMs: number): { db: DatabaseSync; filled: Filled } {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE sample (timestamp_ms INTEGER PRIMARY KEY, cpu_percent REAL, memory_percent REAL, disk_percent REAL, temperature REAL, status INTEGER)`);
  const insert = db.prepare('INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?)');
  const removeOld = db.prepare('DELETE FROM sample WHERE timestamp_ms < ?');
  const self = new ProcessMeter('self');
  const lastDayMs = toMs - DAY_MS;
  let beforeBytes = 0;
  let count = 0;
  db.exec('BEGIN');
  for (const { timestampMs, readings } of samples(fromMs, toMs)) {
    const { status } = toHealthStatus({ interval: 0, monotonicSeconds: 0, timestampMs, readings, disks: [] }, '', THRESHOLDS, []);
    const { cpu_percent, memory_percent, disk_percent, temperature } = readings;
    insert.run(timestampMs, cpu_percent, memory_percent, disk_percent, temperature, STATUSES.indexOf(status));
    count += 1;
    if (count % (HOUR_MS / 1000) === 0) removeOld.run(timestampMs - RAW_DAYS * DAY_MS);
    const inLastDay = timestampMs >= lastDayMs;
    if (count % (inLastDay ? SEGMENT_SAMPLES : SEGMENT_SAMPLES * SEGMENTS_AT_ONCE) !== 0) continue;
    db.exec('COMMIT; BEGIN');
    if (inLastDay) writeBackIndex(path);
    if (inLastDay && beforeBytes === 0) beforeBytes = self.writtenBytes();
  }
  db.exec('COMMIT');
  return { db, filled: { samples: count, lastDayBytes: self.writtenBytes() - beforeBytes } };
}
