import type { Clocked, MinuteEntry, RecordEntry, ServiceReading, Target, Watcher } from '../../harness/record/entries.ts';
import type { Holding } from '../../harness/watch/holding.ts';
import type { AlertRecord } from '../collect/alert-files.ts';
import type { Period } from './period.ts';
import { later, NEAR_SECONDS, type PlacedRow } from './timeline.ts';

export interface Collected {
  readonly period: Period;
  /** In order; at least one. */
  readonly rows: readonly PlacedRow[];
  /** Looks at the rows themselves, by the index of the row after which each ends. */
  readonly looks: ReadonlyMap<number, Holding>;
  readonly openBefore: readonly AlertRecord[];
  readonly changes: readonly AlertRecord[];
  readonly version: string;
  readonly configuredHertz: number;
}

/**
 * What was collected as a watcher would have recorded it, had it looked once a minute and heard nothing: rows are minutes, and where
 * nobody can tell what was between two of them the watcher was away. So the week is judged by the same engine as one that was watched.
 */
export function* asRecord(collected: Collected): Generator<RecordEntry> {
  const { changes, looks, openBefore, period, rows } = collected;
  const first = rows[0] as PlacedRow;
  const watching = watchingOf(collected);
  const sinceBegin = Math.max(0, (first.ms - period.fromMs) / 1000);
  const begin = { ...later(first.clocks, -sinceBegin), wall: period.fromMs };
  const seen = ranSince(first, period.fromMs) || sinceBegin <= NEAR_SECONDS;
  // Before its boot the machine was in another one.
  const bootId = begin.boot >= 0 ? first.boot : '';
  yield { type: 'begin', ...begin, format: 1, run: 'collected', boot_id: bootId, planned_seconds: lengthOf(period), ...watching };
  for (const alert of openBefore) yield alertEntry(alert, begin);
  if (!seen) yield { type: 'resume', ...first.clocks, boot_id: first.boot, ...watching };

  let clocks: Clocked = seen ? begin : first.clocks;
  let answer: PlacedRow | null = null;
  let nextChange = 0;
  for (const [i, row] of rows.entries()) {
    // Alerts between the row before and this one, by the wall clock, which is all that they tell.
    for (; nextChange < changes.length && Date.parse((changes[nextChange] as AlertRecord).timestamp) < row.ms; nextChange += 1)
      yield alertBetween(changes[nextChange] as AlertRecord, clocks, row.fresh ? null : row.clocks);
    if (row.fresh && i > 0) yield { type: 'resume', ...row.clocks, boot_id: row.boot, ...watching };
    if (row.answered && row.started !== null && row.started !== answer?.started) yield serviceEntry(row, answer);
    if (row.answered) answer = row;
    yield minute(row.clocks, row);
    const look = looks.get(i);
    if (look) yield { type: 'holding', ...row.clocks, ...look };
    clocks = row.clocks;
  }
  const last = rows.at(-1) as PlacedRow;
  for (const alert of changes.slice(nextChange)) yield alertBetween(alert, last.clocks, null);
  const untilEnd = (period.toMs - last.ms) / 1000 + shortfall(first, last, period);
  // Its reading is known by the last row.
  if (untilEnd > 0 && untilEnd <= NEAR_SECONDS) yield minute(later(last.clocks, untilEnd), null);
}

/** Smaller differences between wall clock and boot-time clock are their grain, or come of a wall clock that was slewed. */
const SLEWED_SECONDS = 5;

/** By how much less the boot-time clock went than the wall clock did, which tells the period. */
function shortfall(first: PlacedRow, last: PlacedRow, { fromMs, toMs }: Period): number {
  if (first.boot !== last.boot) return 0;
  const outside = (Math.max(0, first.ms - fromMs) + Math.max(0, toMs - last.ms)) / 1000;
  const seconds = lengthOf({ fromMs, toMs }) - outside - (last.clocks.boot - first.clocks.boot);
  return seconds > 0 && seconds <= SLEWED_SECONDS ? seconds : 0;
}

export function lengthOf({ fromMs, toMs }: Period): number {
  return (toMs - fromMs) / 1000;
}

/** Whether the run of the service that a row tells of had begun by then, and the machine with it. */
function ranSince({ answered, clocks, ms, started }: PlacedRow, sinceMs: number): boolean {
  return answered && started !== null && Date.parse(started) <= sinceMs && clocks.boot - (ms - sinceMs) / 1000 >= 0;
}

function watchingOf({ configuredHertz, rows, version }: Collected): { readonly target: Target; readonly watcher: Watcher } {
  const { node, hertz, version: serviceVersion } = rows.findLast(({ answered }) => answered) ?? (rows[0] as PlacedRow);
  return {
    target: {
      kind: 'url',
      url: '',
      unit: null,
      node_name: node,
      version: serviceVersion ?? '',
      configured_hertz: hertz ?? configuredHertz,
      service_transport: 'off',
      data_folder: null,
    },
    watcher: { version, transport: 'off', reason: 'nobody watched', machine: null },
  };
}

function minute(clocks: Clocked, row: PlacedRow | null): MinuteEntry {
  const { cpu_percent = null, disk_percent = null, memory_percent = null, temperature = null } = row?.readings ?? {};
  return {
    type: 'minute',
    ...clocks,
    topic: null,
    events: null,
    stalled_seconds: 0,
    service: row && readingOf(row),
    host: { cpu: cpu_percent, memory: memory_percent, disk: disk_percent, celsius: temperature },
    watcher: { cpu_seconds: 0, resident_bytes: 0 },
  };
}

/** Null: no answer, or one of a service that is too old to tell what it takes. */
function readingOf(row: PlacedRow): ServiceReading | null {
  const { answered, cpuSeconds, hertz, memoryBytes, missed, open, samples, samplesLost, started } = row;
  if (!answered || started === null || cpuSeconds === null || memoryBytes === null) return null;
  return {
    started,
    samples: samples ?? 0,
    missed: missed ?? 0,
    published: null,
    samples_lost: samplesLost ?? 0,
    resident_bytes: [memoryBytes],
    cpu_seconds: cpuSeconds,
    cpu_from: 'status',
    group: null,
    open_files: null,
    open_alerts: { WARNING: open.WARNING ?? 0, ERROR: open.ERROR ?? 0, CRITICAL: open.CRITICAL ?? 0 },
    configured_hertz: hertz ?? 1,
    database_bytes: 0,
  };
}

/** A run of the service that was not seen before. Why the one before ended is not collected, but for a reboot and an upgrade. */
function serviceEntry({ boot, clocks, started, version }: PlacedRow, before: PlacedRow | null): RecordEntry {
  const run = {
    type: 'service',
    ...clocks,
    started: started ?? '',
    version: version ?? '',
    pid: null,
    invocation: null,
    unseen: 0,
  } as const;
  if (before === null) return { ...run, cause: 'first', detail: '' };
  if (before.boot !== boot) return { ...run, cause: 'reboot', detail: '' };
  if (before.version !== version) return { ...run, cause: 'upgrade', detail: '' };
  return { ...run, cause: 'unknown', detail: 'what ended the run before is not collected' };
}

function alertEntry({ alert_id, metric, resolved, severity, timestamp }: AlertRecord, clocks: Clocked): RecordEntry {
  return { type: 'alert', ...clocks, by: 'events', alert_id, severity, metric, timestamp, resolved };
}

/** `until`: the row after it, if it is of the same stretch. */
function alertBetween(alert: AlertRecord, from: Clocked, until: Clocked | null): RecordEntry {
  const seconds = Math.max(0, (Date.parse(alert.timestamp) - from.wall) / 1000);
  return alertEntry(alert, until === null ? from : later(from, Math.min(seconds, until.boot - from.boot)));
}
