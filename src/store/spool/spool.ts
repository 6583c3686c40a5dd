import * as fs from 'node:fs';
import { join } from 'node:path';
import { type Alert, SEVERITIES, STATUSES } from '../../core/alerts/alert.ts';
import { makeFolder } from '../../core/files/data-folder.ts';
import { privateFolderInMemory, runtimeFolder } from '../../core/files/runtime-folder.ts';
import { spoolBesideDatabase, spoolInMemory, spoolInRuntimeFolder } from '../../core/files/spool-folder.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { METRICS } from '../../core/metrics.ts';
import { SHUTDOWN_OUTCOMES, type ShutdownRecord } from '../../core/shutdown/shutdown.ts';
import { type Columns, columnsOf } from '../samples/chunk.ts';
import type { Leftover } from '../thread/protocol.ts';

/**
 * Folder of the spool. It is on tmpfs where the machine has one, so that writing every sample costs no flash; the spool then survives the
 * process but not a power cut. Under systemd it is in `RUNTIME_DIRECTORY`; a checkout uses a private folder in /dev/shm named after its
 * data folder; otherwise it is beside the database.
 */
export function spoolFolder(dataPath: string, environment: NodeJS.ProcessEnv): string {
  const runtime = runtimeFolder(environment);
  if (runtime !== null) return spoolInRuntimeFolder(runtime);
  return privateFolderInMemory(spoolInMemory(dataPath, process.getuid?.() ?? 0)) ?? spoolBesideDatabase(dataPath);
}

const readText = (path: string): string => fs.readFileSync(path, 'utf8');

/** Numbers of the segment files, ascending. */
function segmentsIn(folder: string): number[] {
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .map((entry) => (entry.isFile() ? /^(\d{1,15})\.ndjson$/.exec(entry.name)?.[1] : undefined))
    .filter((number) => number !== undefined)
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Write-ahead buffer of everything that is published and not yet in the database: one JSON document per line, in segments. A line is
 * written before its record is published, so that SIGKILL loses no published record.
 */
export class Spool {
  readonly folder: string;
  #isOpen = false;
  /** Null also while the spool is open but its file could not be created. */
  #descriptor: number | null = null;
  #segment = 0;
  #bytes = 0;
  /** Lines of the segment, including those that could not be written. */
  #lines = 0;
  /** Line ends still to be written in place of lines that failed or were deleted, so that every later line keeps its number. */
  #owedNewlines = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  get segment(): number {
    return this.#segment;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Closes the segment and opens the next one. Its number is unique across restarts and clock steps. */
  begin(nowMs: number): number {
    this.end();
    this.#isOpen = true;
    this.#bytes = 0;
    this.#lines = 0;
    this.#owedNewlines = 0;
    this.#segment = Math.max(nowMs, this.#segment + 1);
    makeFolder(this.folder, 0o700);
    const last = segmentsIn(this.folder).at(-1) ?? 0;
    this.#segment = Math.max(this.#segment, last + 1);
    this.#descriptor = fs.openSync(this.#file(this.#segment), 'a', 0o600);
    return this.#segment;
  }

  /** Writes one line; throws when the file system does not accept it. The next line still gets the next number. */
  write(line: string): void {
    if (!this.#isOpen) throw new Error('the spool is not open');
    const before = this.#lines++;
    const descriptor = this.#reopenDeleted(before);
    const owedNewlines = this.#owedNewlines;
    const bytes = Buffer.from(`${'\n'.repeat(owedNewlines)}${line}\n`);
    this.#owedNewlines = owedNewlines + 1;
    const written = fs.writeSync(descriptor, bytes);
    this.#bytes += written;
    this.#owedNewlines -= Math.min(written, owedNewlines);
    if (written < bytes.length) throw new Error('not enough space for the line');
    this.#owedNewlines = 0;
  }

  /** Recreates the segment's file after it was deleted, or after creating it failed. */
  #reopenDeleted(linesBefore: number): number {
    if (this.#descriptor !== null && fs.fstatSync(this.#descriptor).nlink > 0) return this.#descriptor;
    this.#close();
    makeFolder(this.folder, 0o700);
    this.#descriptor = fs.openSync(this.#file(this.#segment), 'a', 0o600);
    this.#owedNewlines = linesBefore;
    return this.#descriptor;
  }

  /** Removes a segment that is in the database, or whose records were dropped. */
  remove(segment: number): void {
    fs.rmSync(this.#file(segment), { force: true });
  }

  /** Drops a segment's samples and keeps its alerts and shutdown requests. Returns the remaining size in bytes. */
  dropSamples(segment: number): number {
    const file = this.#file(segment);
    const lines = fs.readFileSync(file, 'utf8').split('\n').slice(0, -1);
    // Dropped lines become empty lines, because the line number is the record's sequence number.
    const kept = lines.map((line) => (isAlertOrShutdown(parseLine(line)) ? line : ''));
    const count = kept.findLastIndex((line) => line !== '') + 1;
    if (count === 0) {
      this.remove(segment);
      return 0;
    }
    const text = kept
      .slice(0, count)
      .map((line) => `${line}\n`)
      .join('');
    fs.writeFileSync(`${file}.new`, text, { mode: 0o600 });
    fs.renameSync(`${file}.new`, file);
    return text.length;
  }

  end(): void {
    this.#isOpen = false;
    this.#close();
  }

  /** Ends the spool and removes its folder, unless records in it wait for the next start. */
  close(): void {
    this.end();
    try {
      fs.rmdirSync(this.folder);
    } catch {
      // It holds segments, or was removed with RUNTIME_DIRECTORY.
    }
  }

  #close(): void {
    if (this.#descriptor !== null) fs.closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  /**
   * Contents of all segments before this one. Lines cut off by a kill and lines that do not parse are skipped; a torn line was never
   * published. A file that cannot be read stays in place and is reported to `onProblem`.
   */
  leftovers(onProblem: (path: string, error: Error) => void = () => undefined, read: (path: string) => string = readText): Leftover[] {
    if (!fs.existsSync(this.folder)) return [];
    const attempt = <T>(path: string, work: () => T): T[] => {
      try {
        return [work()];
      } catch (error) {
        onProblem(path, error as Error);
        return [];
      }
    };
    return attempt(this.folder, () => segmentsIn(this.folder))
      .flat()
      .filter((segment) => segment < this.#segment)
      .flatMap((segment) => attempt(this.#file(segment), () => parseSegment(segment, read(this.#file(segment)))));
  }

  #file(segment: number): string {
    return join(this.folder, `${segment}.ndjson`);
  }
}

/** A health status and its line number. */
interface Numbered {
  readonly status: HealthStatus;
  readonly sequence: number;
}

/** Parses a segment. Exported for tests with torn and invalid content. */
export function parseSegment(segment: number, text: string): Leftover {
  const alerts: { sequence: number; alert: Alert }[] = [];
  const shutdowns: ShutdownRecord[] = [];
  const statuses = new Map<string, Numbered[]>();
  for (const [index, line] of text.split('\n').slice(0, -1).entries()) {
    const document = parseLine(line);
    if (document === null) continue;
    const sequence = index + 1;
    if ('alert_id' in document) {
      alerts.push({ sequence, alert: document });
    } else if ('request_id' in document) {
      shutdowns.push(document);
    } else {
      const list = statuses.get(document.node_name) ?? [];
      list.push({ status: document, sequence });
      statuses.set(document.node_name, list);
    }
  }
  const samples = [...statuses].map(([node, list]) => ({ node, columns: toColumns(list) }));
  return { segment, bytes: text.length, alerts, shutdowns, samples };
}

function isAlertOrShutdown(document: Alert | HealthStatus | ShutdownRecord | null): boolean {
  return document !== null && ('alert_id' in document || 'request_id' in document);
}

function parseLine(line: string): Alert | HealthStatus | ShutdownRecord | null {
  try {
    const document = JSON.parse(line) as Partial<Alert & HealthStatus & ShutdownRecord> | null;
    if (typeof document !== 'object' || document === null || !isStorableTime(Date.parse(document.timestamp ?? ''))) return null;
    if (isAlert(document)) return document;
    if (typeof document.request_id === 'string') {
      return SHUTDOWN_OUTCOMES.includes(document.outcome as never) ? (document as ShutdownRecord) : null;
    }
    return typeof document.node_name === 'string' && STATUSES.includes(document.status as never) ? (document as HealthStatus) : null;
  } catch {
    return null;
  }
}

function isAlert(document: Partial<Alert>): document is Alert {
  const { alert_id, severity, metric, value, threshold, resolved } = document;
  return (
    typeof alert_id === 'string' &&
    typeof metric === 'string' &&
    typeof resolved === 'boolean' &&
    SEVERITIES.includes(severity as never) &&
    // JSON has neither NaN nor Infinity and encodes both as null.
    [value, threshold].every((number) => number === null || typeof number === 'number')
  );
}

/** Whether a time fits into an integer column. A node with a broken clock, or a malicious one, can send any value. */
export function isStorableTime(timestampMs: number): boolean {
  return Math.abs(timestampMs) <= 2 ** 51;
}

function toColumns(list: readonly Numbered[]): Columns {
  const columns = columnsOf(list.length);
  for (const [row, { status, sequence }] of list.entries()) setRow(columns, row, status, sequence);
  return columns;
}

/** Writes a status to a row of the columns, whose capacity must include that row. */
export function setRow(
  columns: Columns,
  row: number,
  status: HealthStatus,
  sequence: number,
  timestampMs: number = Date.parse(status.timestamp),
): void {
  columns.timestampMs[row] = Math.trunc(timestampMs); // The timestamp's text has whole milliseconds.
  METRICS.forEach((metric, m) => {
    (columns.metrics[m] as Float64Array)[row] = status[metric] ?? Number.NaN;
  });
  columns.status[row] = STATUSES.indexOf(status.status);
  columns.sequence[row] = sequence;
}
