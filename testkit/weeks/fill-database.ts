import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Thresholds } from '../../src/core/alerts/alert.ts';
import { toHealthStatus } from '../../src/core/health-status.ts';
import type { Readings } from '../../src/core/metrics.ts';
import { DAY_MS, HOUR_MS } from '../../src/core/time/time.ts';
import { Archive } from '../../src/store/database/archive.ts';
import { Batch } from '../../src/store/spool/segment-recorder.ts';

export const DATABASE_FILE = 'edge-health.db';

const LIMIT = { warning: 90, critical: 95 };
const THRESHOLDS: Thresholds = { cpu_percent: LIMIT, memory_percent: LIMIT, disk_percent: LIMIT, temperature: LIMIT };
/** Raw samples are kept for 8 days; these end before the run. */
const [FROM_DAYS, TO_DAYS] = [7, 0.5];
const SAMPLES_PER_SEGMENT = 500;
/**
 * Share of the size limit, just below the point where the service starts to remove the oldest samples
 * (src/store/database/retention.ts, HEADROOM).
 */
const FILLED = 0.969;
/** A larger number would mean that nothing is being stored. */
const MAX_SEGMENTS = 20_000;

/** A random number generator with a fixed seed (mulberry32). */
function noise(): () => number {
  let state = 20260101;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Creates a database with samples of the preceding days, almost at its size limit, which a run of an hour would not reach by itself.
 * Returns the number of samples.
 */
export function fillDatabase(dataFolder: string, node: string, maxBytes: number): number {
  mkdirSync(dataFolder, { recursive: true });
  const path = join(dataFolder, DATABASE_FILE);
  let nowMs = Date.now() - FROM_DAYS * DAY_MS;
  const archive = new Archive({
    path,
    maxBytes,
    localNode: node,
    nowMs: () => nowMs,
    onQuarantined: (_, reason) => {
      throw new Error(`${path}: ${reason}`);
    },
  });
  archive.open();
  archive.setRate(node, SAMPLES_PER_SEGMENT / 60);
  const random = noise();
  // Steady values with all their digits, which take eight bytes each instead of one or two.
  const around = (value: number): number => value + 2 * random();
  let count = 0;
  // One dense minute in each quarter of an hour, so that the oldest one, which is removed first, is a small part of all samples.
  const stretchMs = HOUR_MS / 4;
  const stretches = Math.floor(((FROM_DAYS - TO_DAYS) * DAY_MS) / stretchMs);
  const fromMs = nowMs;
  for (let segment = 0; segment < MAX_SEGMENTS; segment += 1) {
    const beginMs = fromMs + (segment % stretches) * stretchMs + Math.floor(segment / stretches) * 60_000;
    const batch = new Batch();
    for (let i = 0; i < SAMPLES_PER_SEGMENT; i += 1) {
      const readings: Readings = { cpu_percent: around(12), memory_percent: around(40), disk_percent: around(30), temperature: around(45) };
      const timestampMs = beginMs + Math.floor((i * 60_000) / SAMPLES_PER_SEGMENT);
      batch.add(
        toHealthStatus({ interval: count, monotonicSeconds: 0, timestampMs, readings, disks: [] }, node, THRESHOLDS, []),
        timestampMs,
        i + 1,
      );
      count += 1;
    }
    nowMs = Math.max(nowMs, beginMs + 60_000);
    archive.append(beginMs, node, batch.take().columns);
    archive.commit(beginMs);
    if (bytesOf(archive.db) > maxBytes * FILLED) break;
  }
  archive.close();
  return count;
}

/** Size of the database in bytes, without free pages. */
function bytesOf(db: DatabaseSync): number {
  const sql = 'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size';
  return (db.prepare(sql).get() as { bytes: number }).bytes;
}
