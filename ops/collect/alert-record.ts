import { type Alert, nodeOfAlertId } from '../../src/core/alert.ts';
import { DAY_MS, isoUtc } from '../../src/core/time.ts';
import { utcDay } from '../lib/dated-files.ts';

/** `alerts_2026-03-04.ndjson`. */
export const ALERTS_FILE = /^alerts_(\d{4}-\d{2}-\d{2})\.ndjson$/;

/** One line of a file of alerts: a change of an episode. */
export interface AlertRecord extends Alert {
  readonly node: string;
  /** When the episode began; null: that was before the first change collected. */
  readonly began: string | null;
  /** From then to this change; null where that is not known or a clock was set back between. */
  readonly duration_seconds: number | null;
  /** Of all changes collected, in the order in which the service recorded them; grows from line to line. */
  readonly sequence: number;
  readonly collected: string;
  /** In the last line of what was collected in one go: the service's place after it, at which the next goes on. */
  readonly place?: string;
  /** Collected when the files had changes already that may come again: after another database was put in place. */
  readonly replay?: true;
}

/** Two changes are the same exactly when this is. */
export function changeKey({ alert_id, resolved, severity, timestamp }: Alert): string {
  return JSON.stringify([alert_id, timestamp, severity, resolved]);
}

/** Null: the line is none of ours. */
export function parseAlertRecord(line: string): AlertRecord | null {
  let record: Partial<AlertRecord> | null;
  try {
    record = JSON.parse(line) as Partial<AlertRecord> | null;
  } catch {
    return null;
  }
  const isOurs =
    typeof record?.alert_id === 'string' &&
    typeof record.timestamp === 'string' &&
    typeof record.severity === 'string' &&
    typeof record.resolved === 'boolean' &&
    Number.isSafeInteger(record.sequence);
  return isOurs ? (record as AlertRecord) : null;
}

export interface RecordOptions {
  readonly sequence: number;
  readonly began: string | null;
  readonly collectedMs: number;
  readonly place: string | null;
  readonly replay: boolean;
}

export function alertRecord(alert: Alert, { began, collectedMs, place, replay, sequence }: RecordOptions): AlertRecord {
  const seconds = began === null ? null : (Date.parse(alert.timestamp) - Date.parse(began)) / 1000;
  return {
    ...alert,
    node: nodeOfAlertId(alert.alert_id),
    began,
    duration_seconds: seconds === null || !(seconds >= 0) ? null : seconds,
    sequence,
    collected: isoUtc(collectedMs),
    ...(place === null ? {} : { place }),
    ...(replay ? { replay } : {}),
  };
}

/**
 * The file of a change: of the UTC day on which it happened, by the clock of its node. A change that says it is of the future, or
 * older than what is kept, goes to the file of the day on which it is collected: a wrong clock makes no files of its own.
 */
export function fileOfChange({ timestamp }: Alert, nowMs: number, keepDays: number): string {
  const ms = Date.parse(timestamp);
  const isPlausible = ms >= nowMs - keepDays * DAY_MS && ms <= nowMs + DAY_MS;
  return `alerts_${utcDay(isPlausible ? ms : nowMs)}.ndjson`;
}
