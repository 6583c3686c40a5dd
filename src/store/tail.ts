import * as fs from 'node:fs';
import { join } from 'node:path';
import { type Alert, SEVERITIES } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { METRICS } from '../core/metrics.ts';
import { SHUTDOWN_OUTCOMES, type ShutdownRecord } from '../core/shutdown-record.ts';
import { STATUSES } from '../core/thresholds.ts';
import { makeFolder } from '../system/data-folder.ts';
import { type Columns, emptyColumns } from './chunk.ts';
import type { Leftover } from './protocol.ts';
import { tailBesideDatabase, tailInMemory, tailInRuntimeFolder } from './tail-folder.ts';

/**
 * Where the tail lies: in memory (tmpfs) where the machine has one, so that writing every sample costs no flash; it outlives the
 * process, not a power cut. `RUNTIME_DIRECTORY` is systemd's; a checkout gets a private folder in /dev/shm named after
 * its data folder; else it lies beside the database.
 */
export function tailFolder(dataPath: string, environment: NodeJS.ProcessEnv): string {
  const runtime = environment['RUNTIME_DIRECTORY']?.split(':')[0];
  if (runtime) return tailInRuntimeFolder(runtime);
  const inMemory = tailInMemory(dataPath, process.getuid?.() ?? 0);
  try {
    fs.mkdirSync(inMemory, { mode: 0o700, recursive: true });
    const stats = fs.lstatSync(inMemory);
    // Anybody can make folders in /dev/shm: one that is not ours alone is not used.
    if (stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0) return inMemory;
  } catch {
    // No tmpfs here, or somebody else's folder in our place.
  }
  return tailBesideDatabase(dataPath);
}

const readText = (path: string): string => fs.readFileSync(path, 'utf8');

/** The segments' files in the order in which they were begun. */
function segmentsIn(folder: string): number[] {
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .map((entry) => (entry.isFile() ? /^(\d{1,15})\.ndjson$/.exec(entry.name)?.[1] : undefined))
    .filter((number) => number !== undefined)
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * What was published but is not in the database yet, one JSON document a line, in segments. Each line is written before it
 * is published, so that a killed process loses nothing that anybody has seen.
 */
export class Tail {
  readonly folder: string;
  #isOpen = false;
  /** Null also while it is open and its file could not be. */
  #descriptor: number | null = null;
  #segment = 0;
  #bytes = 0;
  /** Lines of the segment, those that could not be written included. */
  #lines = 0;
  /** Ends of lines that are still to be written, where lines could not be or were deleted: each keeps its number. */
  #owed = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  get segment(): number {
    return this.#segment;
  }

  /** Bytes written to the segment so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Ends the segment and begins the next, whose number is unique over restarts and clock steps. */
  begin(nowMs: number): number {
    this.end();
    this.#isOpen = true;
    this.#bytes = 0;
    this.#lines = 0;
    this.#owed = 0;
    this.#segment = Math.max(nowMs, this.#segment + 1);
    makeFolder(this.folder, 0o700);
    const last = segmentsIn(this.folder).at(-1) ?? 0;
    this.#segment = Math.max(this.#segment, last + 1);
    this.#descriptor = fs.openSync(this.#file(this.#segment), 'a', 0o600);
    return this.#segment;
  }

  /** Writes one line; throws when the tail's file system does not take it. The line after it has the next number all the same. */
  write(line: string): void {
    if (!this.#isOpen) throw new Error('the tail is not open');
    const before = this.#lines++;
    const descriptor = this.#openAgain(before);
    const owed = this.#owed;
    const bytes = Buffer.from(`${'\n'.repeat(owed)}${line}\n`);
    this.#owed = owed + 1;
    const written = fs.writeSync(descriptor, bytes);
    this.#bytes += written;
    this.#owed -= Math.min(written, owed);
    if (written < bytes.length) throw new Error('no space for a whole line');
    this.#owed = 0;
  }

  /** The segment's file, begun anew where somebody deleted it, or where it could not be begun. */
  #openAgain(linesBefore: number): number {
    if (this.#descriptor !== null && fs.fstatSync(this.#descriptor).nlink > 0) return this.#descriptor;
    this.#close();
    makeFolder(this.folder, 0o700);
    this.#descriptor = fs.openSync(this.#file(this.#segment), 'a', 0o600);
    this.#owed = linesBefore;
    return this.#descriptor;
  }

  /** Removes a segment that is in the database, or given up. */
  remove(segment: number): void {
    fs.rmSync(this.#file(segment), { force: true });
  }

  /** Gives up a segment's samples; alerts and requests of a shutdown stay. Returns the bytes that are left of it. */
  keepRare(segment: number): number {
    const file = this.#file(segment);
    const lines = fs.readFileSync(file, 'utf8').split('\n').slice(0, -1);
    // Empty lines in place of the others: the number of a line tells when it came.
    const kept = lines.map((line) => (isRare(parseLine(line)) ? line : ''));
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

  #close(): void {
    if (this.#descriptor !== null) fs.closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  /**
   * What is left of the segments before this one. A line cut off by a kill, or not ours, is passed over; it was never published. What
   * cannot be read stays for another time, and `onProblem` is told of it.
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

/** A status with the number of its line. */
interface Numbered {
  readonly status: HealthStatus;
  readonly order: number;
}

/** Turns a segment's text back into what was written. Exported for tests of torn and foreign content. */
export function parseSegment(segment: number, text: string): Leftover {
  const alerts: { order: number; alert: Alert }[] = [];
  const shutdowns: ShutdownRecord[] = [];
  const statuses = new Map<string, Numbered[]>();
  for (const [index, line] of text.split('\n').slice(0, -1).entries()) {
    const document = parseLine(line);
    if (document === null) continue;
    const order = index + 1;
    if ('alert_id' in document) {
      alerts.push({ order, alert: document });
    } else if ('request_id' in document) {
      shutdowns.push(document);
    } else {
      const list = statuses.get(document.node_name) ?? [];
      list.push({ status: document, order });
      statuses.set(document.node_name, list);
    }
  }
  const samples = [...statuses].map(([node, list]) => ({ node, columns: toColumns(list) }));
  return { segment, bytes: text.length, alerts, shutdowns, samples };
}

function isRare(document: Alert | HealthStatus | ShutdownRecord | null): boolean {
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
    // JSON has no NaN and no infinity: they are null in it.
    [value, threshold].every((number) => number === null || typeof number === 'number')
  );
}

/** Whether a time fits into the database's integers. A node with a broken clock, or with ill intent, can send any. */
export function isStorableTime(timestampMs: number): boolean {
  return Math.abs(timestampMs) <= 2 ** 51;
}

function toColumns(list: readonly Numbered[]): Columns {
  const columns = emptyColumns(list.length);
  for (const [row, { status, order }] of list.entries()) setRow(columns, row, status, order);
  return { ...columns, count: list.length };
}

/** Puts a status into a row of the columns, which must have room for it. */
export function setRow(
  columns: Columns,
  row: number,
  status: HealthStatus,
  order: number,
  timestampMs: number = Date.parse(status.timestamp),
): void {
  columns.timestampMs[row] = Math.trunc(timestampMs); // As the time stamp's text has it.
  METRICS.forEach((metric, m) => {
    (columns.metrics[m] as Float64Array)[row] = status[metric] ?? Number.NaN;
  });
  columns.status[row] = STATUSES.indexOf(status.status);
  columns.order[row] = order;
}
