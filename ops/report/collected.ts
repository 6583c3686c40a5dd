/** Reads what collect_metrics and collect_alerts wrote: the rows and alert changes of a period. */
import { join } from 'node:path';
import { SEVERITIES, type Severity } from '../../src/core/alerts/alert.ts';
import { parseCsvRecord } from '../../src/core/csv.ts';
import { METRICS, type Metric, type Readings } from '../../src/core/metrics.ts';
import { METRICS_FILE, numberOf } from '../../src/core/metrics-files.ts';
import { ALERTS_FILE, type AlertRecord, recordsIn } from '../collect/alert-files.ts';
import { datedFiles, linesOf, type ReadOptions, utcDay } from '../lib/files.ts';
import type { Period } from './period.ts';

interface Sum {
  rows: number;
  sum: number;
  min: number;
  max: number;
}

/** The values of one node over all rows of the period. */
export interface NodeSums {
  readonly node: string;
  readonly local: boolean;
  rows: number;
  stale: number;
  readonly metrics: Readonly<Record<Metric, Sum>>;
}

export interface CollectedRows {
  readonly files: number;
  rows: number;
  /** Lines that are not rows, including torn ones. */
  unreadable: number;
  /** Whether there are rows before the period, so that collection had started by then. */
  hasEarlier: boolean;
  /** Rows of this machine's node, in the order of files and lines. */
  readonly service: ServiceRow[];
  readonly nodes: Map<string, NodeSums>;
}

/** The text of a column; null if it is empty or if the file has no such column. */
type Cells = (column: string) => string | null;

const NEEDED = ['time', 'node_name', 'local', 'answered'];

/** The rows of a period. */
export async function readRows(folder: string, { fromMs, toMs }: Period, signal: AbortSignal): Promise<CollectedRows> {
  const [first, last] = [utcDay(fromMs), utcDay(toMs)];
  const all = await datedFiles(folder, METRICS_FILE);
  const files = all
    .filter(({ day }) => day >= first && day <= last)
    .sort((a, b) => (a.day === b.day ? numberOf(a.name) - numberOf(b.name) : a.day < b.day ? -1 : 1));
  const hasEarlier = all.some(({ day }) => day < first);
  const found: CollectedRows = { files: files.length, rows: 0, unreadable: 0, hasEarlier, service: [], nodes: new Map() };
  const torn = (): void => {
    found.unreadable += 1;
  };
  // Copies strings that are retained: a substring of a line would keep the block in memory from which it was read.
  const texts = new Map<string, string>();
  const detached = (text: string): string => {
    const known = texts.get(text) ?? Buffer.from(text).toString();
    texts.set(known, known);
    return known;
  };
  for (const { name } of files) {
    for await (const cells of rowsIn(join(folder, name), { torn, signal })) {
      const ms = Date.parse(cells?.('time') ?? '');
      const node = cells?.('node_name') ?? null;
      if (cells === null || Number.isNaN(ms) || node === null) found.unreadable += 1;
      else if (ms < fromMs) found.hasEarlier = true;
      else if (ms < toMs) {
        found.rows += 1;
        const readings = Object.fromEntries(METRICS.map((metric) => [metric, numberIn(cells, metric)])) as Readings;
        addToNode(found.nodes, detached(node), cells, readings);
        if (cells('local') === 'true') found.service.push(serviceRow(cells, { node: detached(node), ms, readings }, detached));
      }
    }
  }
  return found;
}

/** The rows of a file, each as a function from a column name to its text; null for each line that is not a row. */
async function* rowsIn(file: string, options: ReadOptions): AsyncGenerator<Cells | null> {
  let columns: ReadonlyMap<string, number> | null = null;
  for await (const lines of linesOf(file, options)) {
    for (const line of lines) {
      const record = parseCsvRecord(line);
      if (columns !== null) {
        const at: ReadonlyMap<string, number> = columns;
        yield record?.length === at.size ? (column) => record[at.get(column) ?? -1] || null : null;
      } else if (NEEDED.every((column) => record?.includes(column))) columns = new Map(record?.map((column, at) => [column, at]));
      else yield null;
    }
  }
}

function numberIn(cells: Cells, column: string): number | null {
  const text = cells(column);
  const value = text === null ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

/** A row of this machine's node; null values are unavailable. */
export type ServiceRow = Readonly<ReturnType<typeof serviceRow>>;

function serviceRow(
  cells: Cells,
  row: { readonly node: string; readonly ms: number; readonly readings: Readings },
  detached: (text: string) => string,
) {
  const text = (column: string): string | null => {
    const found = cells(column);
    return found === null ? null : detached(found);
  };
  const number = (column: string): number | null => numberIn(cells, column);
  return {
    ...row,
    answered: cells('answered') === 'true',
    reason: text('reason') ?? '',
    bootId: text('boot_id'),
    bootSeconds: number('boot_seconds'),
    monotonicSeconds: number('monotonic_seconds'),
    version: text('version'),
    started: text('service_started'),
    memoryBytes: number('service_memory_bytes'),
    cpuSeconds: number('service_cpu_seconds'),
    hertz: number('configured_hertz'),
    samples: number('samples'),
    /** Number of statuses sent to the ROS 2 graph. */
    published: number('published_statuses'),
    open: { WARNING: number('open_warning'), ERROR: number('open_error'), CRITICAL: number('open_critical') },
  };
}

function addToNode(nodes: Map<string, NodeSums>, node: string, cells: Cells, readings: Readings): void {
  if (cells('answered') !== 'true') return;
  let sums = nodes.get(node);
  if (!sums) {
    const empty = (): Sum => ({ rows: 0, sum: 0, min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY });
    const metrics = Object.fromEntries(METRICS.map((metric) => [metric, empty()])) as Record<Metric, Sum>;
    sums = { node, local: cells('local') === 'true', rows: 0, stale: 0, metrics };
    nodes.set(node, sums);
  }
  sums.rows += 1;
  if (cells('stale') === 'true') sums.stale += 1;
  for (const metric of METRICS) {
    const value = readings[metric];
    if (value === null) continue;
    const of = sums.metrics[metric];
    of.rows += 1;
    of.sum += value;
    of.min = Math.min(of.min, value);
    of.max = Math.max(of.max, value);
  }
}

export type CollectedAlerts = Readonly<Awaited<ReturnType<typeof readAlerts>>>;

/** Reads all files, because an episode that is still open may have started long before the period. Times are those of the nodes' clocks. */
export async function readAlerts(folder: string, node: string, { fromMs, toMs }: Period, signal: AbortSignal) {
  const files = (await datedFiles(folder, ALERTS_FILE)).map(({ name }) => name).sort();
  const last = new Map<string, AlertRecord>();
  const lastBefore = new Map<string, AlertRecord>();
  const changes: AlertRecord[] = [];
  let unreadable = 0;
  const torn = (): void => {
    unreadable += 1;
  };
  // Ordered by sequence, because clocks of nodes may be set back.
  const keepLatest = (of: Map<string, AlertRecord>, record: AlertRecord): void => {
    if ((of.get(record.alert_id)?.sequence ?? -1) < record.sequence) of.set(record.alert_id, record);
  };
  for (const name of files) {
    for await (const record of recordsIn(join(folder, name), { torn, signal })) {
      const ms = record === null ? Number.NaN : Date.parse(record.timestamp);
      if (record === null) unreadable += 1;
      else if (ms < toMs) {
        keepLatest(last, record);
        if (ms < fromMs) keepLatest(lastBefore, record);
        else if (record.node === node) changes.push(record);
      }
    }
  }
  const open = [...last.values()].filter(({ resolved }) => !resolved);
  const count = (severity: Severity): number => open.filter((record) => record.severity === severity).length;
  return {
    files: files.length,
    /** Lines that are not records, including torn ones. */
    unreadable,
    /** For this node: the last change of each episode that was open at the start of the period, and every change in the period. */
    openBefore: [...lastBefore.values()].filter((record) => !record.resolved && record.node === node),
    changes: changes.sort((a, b) => a.sequence - b.sequence),
    /** Open at the end of the period: the records of this node, and the number over all nodes by severity. */
    open: open.filter((record) => record.node === node),
    openOfAll: Object.fromEntries(SEVERITIES.map((severity) => [severity, count(severity)])) as Record<Severity, number>,
  };
}
