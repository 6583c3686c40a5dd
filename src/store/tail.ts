import * as fs from 'node:fs';
import { join } from 'node:path';
import { type Alert, SEVERITIES } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { METRICS } from '../core/metrics.ts';
import { STATUSES } from '../core/thresholds.ts';
import { type Columns, emptyColumns } from './chunk.ts';
import type { Leftover } from './protocol.ts';

/**
 * Where the tail lies: in memory (tmpfs) where the machine has one, so that writing every sample costs no flash; it outlives the
 * process, not a power cut. `RUNTIME_DIRECTORY` is systemd's; a checkout gets a private folder in /dev/shm named after
 * its data folder; else it lies beside the database.
 */
export function tailFolder(dataPath: string, environment: NodeJS.ProcessEnv): string {
  const runtime = environment['RUNTIME_DIRECTORY']?.split(':')[0];
  if (runtime) return join(runtime, 'tail');
  const name = nameOf(fs.realpathSync(dataPath));
  const inMemory = `/dev/shm/edge-health-${process.getuid?.() ?? 0}-${name}`;
  try {
    fs.mkdirSync(inMemory, { mode: 0o700, recursive: true });
    const stats = fs.lstatSync(inMemory);
    // Anybody can make folders in /dev/shm: one that is not ours alone is not used.
    if (stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0) return inMemory;
  } catch {
    // No tmpfs here, or somebody else's folder in our place.
  }
  return join(dataPath, 'tail');
}

/** A short name for a path: FNV-1a over 64 bits. (OpenSSL's hashes take 3 MB of memory when first used.) */
function nameOf(path: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(path)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0');
}

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
  #descriptor: number | null = null;
  #segment = 0;
  #bytes = 0;
  /** The last line was cut off by a full file system. */
  #torn = false;

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
    this.#bytes = 0;
    this.#torn = false;
    this.#segment = Math.max(nowMs, this.#segment + 1);
    fs.mkdirSync(this.folder, { mode: 0o700, recursive: true });
    const last = segmentsIn(this.folder).at(-1) ?? 0;
    this.#segment = Math.max(this.#segment, last + 1);
    this.#descriptor = fs.openSync(this.#file(this.#segment), 'a', 0o600);
    return this.#segment;
  }

  /** Writes one line; throws when the tail's file system is full. */
  write(line: string): void {
    if (this.#descriptor === null) throw new Error('the tail is not open');
    const bytes = Buffer.from(this.#torn ? `\n${line}\n` : `${line}\n`);
    this.#torn = true;
    const written = fs.writeSync(this.#descriptor, bytes);
    this.#bytes += written;
    if (written < bytes.length) throw new Error('no space for a whole line');
    this.#torn = false;
  }

  /** Removes a segment that is in the database, or given up. */
  remove(segment: number): void {
    fs.rmSync(this.#file(segment), { force: true });
  }

  /** Gives up a segment's samples; its alerts stay. Returns the bytes that are left of it. */
  keepAlerts(segment: number): number {
    const file = this.#file(segment);
    const { alerts } = parseSegment(segment, fs.readFileSync(file, 'utf8'));
    if (alerts.length === 0) {
      this.remove(segment);
      return 0;
    }
    const text = alerts.map((alert) => `${JSON.stringify(alert)}\n`).join('');
    fs.writeFileSync(`${file}.new`, text, { mode: 0o600 });
    fs.renameSync(`${file}.new`, file);
    return text.length;
  }

  end(): void {
    if (this.#descriptor !== null) fs.closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  /** What is left of the segments before this one. A line cut off by a kill, or not ours, is passed over; it was never published. */
  leftovers(): Leftover[] {
    if (!fs.existsSync(this.folder)) return [];
    return segmentsIn(this.folder)
      .filter((segment) => segment < this.#segment)
      .map((segment) => parseSegment(segment, fs.readFileSync(this.#file(segment), 'utf8')));
  }

  #file(segment: number): string {
    return join(this.folder, `${segment}.ndjson`);
  }
}

/** Turns a segment's text back into what was written. Exported for tests of torn and foreign content. */
export function parseSegment(segment: number, text: string): Leftover {
  const alerts: Alert[] = [];
  const statuses = new Map<string, HealthStatus[]>();
  for (const line of text.split('\n').slice(0, -1)) {
    const document = parseLine(line);
    if (document === null) continue;
    if ('alert_id' in document) {
      alerts.push(document);
    } else {
      const list = statuses.get(document.node_name) ?? [];
      list.push(document);
      statuses.set(document.node_name, list);
    }
  }
  const samples = [...statuses].map(([node, list]) => ({ node, columns: toColumns(list) }));
  return { segment, bytes: text.length, alerts, samples };
}

function parseLine(line: string): Alert | HealthStatus | null {
  try {
    const document = JSON.parse(line) as Partial<Alert & HealthStatus> | null;
    if (typeof document !== 'object' || document === null || !isStorableTime(Date.parse(document.timestamp ?? ''))) return null;
    if (isAlert(document)) return document;
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

function toColumns(list: readonly HealthStatus[]): Columns {
  const columns = emptyColumns(list.length);
  for (const [row, status] of list.entries()) setRow(columns, row, status);
  return { ...columns, count: list.length };
}

/** Puts a status into a row of the columns, which must have room for it. */
export function setRow(columns: Columns, row: number, status: HealthStatus, timestampMs: number = Date.parse(status.timestamp)): void {
  columns.timestampMs[row] = Math.trunc(timestampMs); // As the time stamp's text has it.
  METRICS.forEach((metric, m) => {
    (columns.metrics[m] as Float64Array)[row] = status[metric] ?? Number.NaN;
  });
  columns.status[row] = STATUSES.indexOf(status.status);
}
