import { isoUtc } from '../../src/core/time.ts';
import type { ServiceRow } from './collected-rows.ts';
import { isReboot, isSameBoot, secondsBetween, sleptBetween } from './timeline.ts';

export interface Restart {
  /** Of the first row of the new run. */
  readonly seen: string;
  readonly started: string;
  /** `reboot`: with the machine; `service`: alone; `upgrade`: alone, with another version. */
  readonly kind: 'reboot' | 'service' | 'upgrade';
  readonly version: string | null;
}

export interface ServiceFigures {
  readonly restarts: readonly Restart[];
  readonly boots: number;
  /** Samples while the machine was on and awake. */
  readonly samples: { readonly received: number; readonly expected: number; readonly missed: number; readonly lost: number };
  readonly memoryBytes: { readonly min: number; readonly median: number; readonly max: number } | null;
  /** Of one core, on average over the time that rows of one run cover; null: unknown. */
  readonly cpuPercent: number | null;
  readonly unanswered: readonly { readonly reason: string; readonly rows: number }[];
}

/** `rows` in order (timeline.ts). */
export function serviceFigures(rows: readonly ServiceRow[]): ServiceFigures {
  return {
    restarts: restarts(rows),
    boots: new Set(rows.flatMap(({ bootId }) => bootId ?? [])).size,
    samples: samples(rows),
    memoryBytes: memory(rows),
    cpuPercent: cpu(rows),
    unanswered: unanswered(rows),
  };
}

const isAnswer = ({ answered, started }: ServiceRow): boolean => answered && started !== null;

/** Answers in succession, with the one before. */
function answers(rows: readonly ServiceRow[]): (readonly [ServiceRow, ServiceRow])[] {
  const answered = rows.filter(isAnswer);
  return answered.slice(1).map((row, i) => [answered[i] as ServiceRow, row] as const);
}

/** A service's start time is told by its own clock at its start, and stays what it was when clocks are set. */
function restarts(rows: readonly ServiceRow[]): Restart[] {
  return answers(rows)
    .filter(([before, after]) => before.started !== after.started)
    .map(([before, after]) => ({
      seen: isoUtc(after.ms),
      started: after.started as string,
      kind: isReboot(before, after) ? 'reboot' : before.version !== after.version ? 'upgrade' : 'service',
      version: after.version,
    }));
}

/**
 * Received: growth of the service's counter; of a new run all that it has, and of the run before it nothing after its last row, so
 * that a restart costs up to a minute of samples that were taken. Expected: the configured rate times the time awake between the
 * first and the last row of each boot.
 */
function samples(rows: readonly ServiceRow[]): ServiceFigures['samples'] {
  let [received, expected, missed, lost] = [0, 0, 0, 0];
  let hertz = rows.find((row) => row.hertz !== null)?.hertz ?? 0;
  for (const [i, after] of rows.entries()) {
    const before = rows[i - 1];
    hertz = after.hertz ?? hertz;
    if (before && isSameBoot(before, after)) expected += hertz * (secondsBetween(before, after) - sleptBetween(before, after));
  }
  for (const [before, after] of answers(rows)) {
    if (!isSameBoot(before, after)) continue;
    const isSameRun = before.started === after.started;
    const grown = (of: (row: ServiceRow) => number | null): number => Math.max(0, (of(after) ?? 0) - (isSameRun ? (of(before) ?? 0) : 0));
    received += grown((row) => row.samples);
    missed += grown((row) => row.missed);
    lost += grown((row) => row.samplesLost);
  }
  return { received, expected: Math.round(expected), missed, lost };
}

function memory(rows: readonly ServiceRow[]): ServiceFigures['memoryBytes'] {
  const bytes = rows.flatMap(({ memoryBytes }) => (memoryBytes === null ? [] : [memoryBytes])).sort((a, b) => a - b);
  const [upper, lower] = [bytes[Math.floor(bytes.length / 2)], bytes[Math.floor((bytes.length - 1) / 2)]];
  if (upper === undefined || lower === undefined) return null;
  return { min: bytes[0] as number, median: Math.round((upper + lower) / 2), max: bytes.at(-1) as number };
}

function cpu(rows: readonly ServiceRow[]): number | null {
  let [used, seconds] = [0, 0];
  for (const [before, after] of answers(rows)) {
    if (before.started !== after.started || before.cpuSeconds === null || after.cpuSeconds === null) continue;
    used += after.cpuSeconds - before.cpuSeconds;
    seconds += secondsBetween(before, after) - sleptBetween(before, after);
  }
  return seconds > 0 ? Math.round((1e5 * used) / seconds) / 1e3 : null;
}

function unanswered(rows: readonly ServiceRow[]): ServiceFigures['unanswered'] {
  const byReason = Map.groupBy(
    rows.filter(({ answered }) => !answered),
    ({ reason }) => reason,
  );
  return [...byReason].map(([reason, of]) => ({ reason, rows: of.length })).sort((a, b) => b.rows - a.rows);
}
