import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS, MINUTE_MS } from '../../../src/core/time/time.ts';
import { HEADER, metricsRows } from '../../collect/metrics-rows.ts';
import type { CollectedStatus } from '../../collect/observation.ts';
import { statusWith } from '../../collect/testing/status.ts';
import { utcDay } from '../../lib/files.ts';

export const END = Date.parse('2026-03-08T00:00:00.000Z');
export const START = END - 7 * DAY_MS;
const BOOTED = START - 1000 * 1000;

/** One row per minute of a week, as reported when nothing happens. */
export interface Minute {
  /** Real time, which the wall clock shows unless it was set. */
  ms: number;
  wallOffsetMs: number;
  bootId: string;
  bootedMs: number;
  sleptSeconds: number;
  answered: boolean;
  started: string;
  status: Partial<CollectedStatus>;
  samples: number;
  /** Samples that were not passed to the ROS 2 graph; null: the service is not on it. */
  unpublished: number | null;
  cpuSeconds: number;
  memoryBytes: number;
}

export function perfectWeek(): Minute[] {
  return Array.from({ length: 10_080 }, (_, i) => ({
    ms: START + i * MINUTE_MS + 50,
    wallOffsetMs: 0,
    bootId: 'boot/1',
    bootedMs: BOOTED,
    sleptSeconds: 0,
    answered: true,
    started: '2026-02-28T00:00:00.000Z',
    status: {},
    samples: 5000 + 60 * i,
    unpublished: 0,
    cpuSeconds: 10 + 0.6 * i,
    memoryBytes: 60_000_000 + (i % 11) * 100_000,
  }));
}

export function rowOf(minute: Minute): { readonly ms: number; readonly row: string } {
  const ms = minute.ms + minute.wallOffsetMs;
  const bootSeconds = (minute.ms - minute.bootedMs) / 1000;
  const status = statusWith({
    started: minute.started,
    publish: { configured_hertz: 1, measured_hertz: 1, samples: minute.samples, missed: 0 },
    process: { resident_memory_bytes: minute.memoryBytes, cpu_seconds: minute.cpuSeconds },
    ros: { published: minute.unpublished === null ? null : { health_status: minute.samples - minute.unpublished } },
    ...minute.status,
  });
  const readings = { cpu_percent: 20, memory_percent: 40, disk_percent: 50, temperature: null };
  const [row = ''] = metricsRows(
    {
      wallMs: ms,
      bootId: minute.bootId,
      bootSeconds,
      monotonicSeconds: bootSeconds - minute.sleptSeconds,
      status: minute.answered ? status : null,
      values: new Map([['unit_7', { status: 'OK', sampleTime: null, readings }]]),
      reason: minute.answered ? null : 'ECONNREFUSED',
    },
    'unit_7',
  );
  return { ms, row };
}

const perfectMinutes = perfectWeek();
const perfectRows: ReturnType<typeof rowOf>[] = [];

/** A cache of `rowOf`, which takes most of the time of a test: a minute that no test changed has the same row in every week. */
function cachedRowOf(minute: Minute): ReturnType<typeof rowOf> {
  const index = Math.floor((minute.ms - START) / MINUTE_MS);
  const perfect = perfectMinutes[index];
  if (!perfect || !isEqual(minute, perfect)) return rowOf(minute);
  perfectRows[index] ??= rowOf(perfect);
  return perfectRows[index];
}

function isEqual(one: Minute, other: Minute): boolean {
  const { status, ...values } = one;
  return Object.keys(status).length === 0 && Object.entries(values).every(([name, value]) => other[name as keyof Minute] === value);
}

/** Writes rows as collect_metrics does: each into the file of its own day. */
export function writeWeek(data: string, minutes: readonly Minute[]): void {
  mkdirSync(join(data, 'metrics'), { recursive: true });
  const days = Map.groupBy(minutes.map(cachedRowOf), ({ ms }) => utcDay(ms));
  for (const [day, rows] of days) writeFileSync(join(data, 'metrics', `metrics_${day}.csv`), HEADER + rows.map(({ row }) => row).join(''));
}
