/** The rows of metrics/: their columns, and the file of a day to which they are appended. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cell, csvRecord } from '../../src/core/csv.ts';
import { METRICS } from '../../src/core/metrics.ts';
import { METRICS_FILE, numberOf } from '../../src/core/metrics-files.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { type Appended, appendLines, datedFiles, makeFolder, utcDay } from '../lib/files.ts';
import type { CollectedStatus, NodeValues, Observation } from './observation.ts';

type Node = CollectedStatus['nodes'][number];

interface Source {
  readonly observed: Observation;
  readonly name: string;
  readonly node: Node | null;
  readonly values: NodeValues | null;
}

type Column = (source: Source) => Cell | undefined;

const ofStatus =
  (cell: (status: CollectedStatus) => Cell | undefined): Column =>
  ({ observed: { status } }) =>
    status === null ? null : cell(status);

/** Columns in the row of every node. */
const NODE_COLUMNS: Readonly<Record<string, Column>> = {
  time: ({ observed }) => isoUtc(observed.wallMs),
  boot_seconds: ({ observed }) => observed.bootSeconds,
  node_name: ({ name }) => name,
  local: ({ node }) => node?.local ?? true,
  answered: ({ observed }) => observed.status !== null,
  reason: ({ observed }) => observed.reason,
  status: ({ node, values }) => values?.status ?? node?.status,
  stale: ({ node }) => node?.stale,
  age_seconds: ({ node }) => node?.age_seconds,
  period_seconds: ({ node }) => node?.period_seconds,
  sample_time: ({ node, values }) => values?.sampleTime ?? node?.timestamp,
  ...Object.fromEntries(METRICS.map((metric): [string, Column] => [metric, ({ values }) => values?.readings[metric]])),
};

/** Columns about this machine and its service. They are only in the row of its own node: 300 nodes would fill the disk with repetitions. */
const SERVICE_COLUMNS: Readonly<Record<string, Column>> = {
  boot_id: ({ observed }) => observed.bootId,
  monotonic_seconds: ({ observed }) => observed.monotonicSeconds,
  version: ofStatus(({ version }) => version),
  service_started: ofStatus(({ started }) => started),
  service_uptime_seconds: ofStatus(({ uptime_seconds }) => uptime_seconds),
  service_memory_bytes: ofStatus(({ process }) => process.resident_memory_bytes),
  service_cpu_seconds: ofStatus(({ process }) => process.cpu_seconds),
  configured_hertz: ofStatus(({ publish }) => publish.configured_hertz),
  measured_hertz: ofStatus(({ publish }) => publish.measured_hertz),
  samples: ofStatus(({ publish }) => publish.samples),
  missed_samples: ofStatus(({ publish }) => publish.missed),
  published_statuses: ofStatus(({ ros }) => ros.published?.health_status),
  remote_statuses: ofStatus(({ remote }) => remote?.statuses),
  open_warning: ofStatus(({ open_alerts }) => open_alerts.WARNING),
  open_error: ofStatus(({ open_alerts }) => open_alerts.ERROR),
  open_critical: ofStatus(({ open_alerts }) => open_alerts.CRITICAL),
  storage_state: ofStatus(({ storage }) => storage.state),
  storage_bytes: ofStatus(({ storage }) => storage.size_bytes),
  samples_pending: ofStatus(({ storage }) => storage.samples_pending),
  samples_lost: ofStatus(({ storage }) => storage.samples_lost),
  undervoltage: ofStatus(({ power }) => power.undervoltage),
  undervoltage_events: ofStatus(({ power }) => power.undervoltage_events),
  throttle_events: ofStatus(({ power }) => power.throttle_events),
};

export const COLUMNS: readonly string[] = [...Object.keys(NODE_COLUMNS), ...Object.keys(SERVICE_COLUMNS)];

/** First line of every file. A file with a different header is not appended to. */
export const HEADER = csvRecord(COLUMNS);

const NODE_CELLS = Object.values(NODE_COLUMNS);
const SERVICE_CELLS = Object.values(SERVICE_COLUMNS);
const NO_SERVICE_CELLS: readonly null[] = SERVICE_CELLS.map(() => null);

/** One record per node; without a response, only that of `ownNode`. */
export function metricsRows(observed: Observation, ownNode: string): string[] {
  const { status, values } = observed;
  if (status === null) return [row({ observed, name: ownNode, node: null, values: null })];
  return status.nodes.map((node) => row({ observed, name: node.node_name, node, values: values.get(node.node_name) ?? null }));
}

function row(source: Source): string {
  const cells = NODE_CELLS.map((cell) => cell(source) ?? null);
  const isOwn = source.node?.local ?? true;
  return csvRecord([...cells, ...(isOwn ? SERVICE_CELLS.map((cell) => cell(source) ?? null) : NO_SERVICE_CELLS)]);
}

export interface Written extends Appended {
  readonly file: string;
  /** Whether the file is new. */
  readonly isNew: boolean;
}

/** Appends records to the file of the UTC day of `ms`. Throws file system errors. */
export async function appendMetrics(folder: string, header: string, records: string, ms: number): Promise<Written> {
  await makeFolder(folder);
  const { name, isNew } = await fileOfDay(folder, utcDay(ms), header);
  return { ...(await appendLines(join(folder, name), records, { head: header })), file: name, isNew };
}

/** The last file of the day if it has this header, otherwise the next one. The order of the numbers is the order of writing. */
async function fileOfDay(folder: string, day: string, header: string): Promise<{ readonly name: string; readonly isNew: boolean }> {
  const files = (await datedFiles(folder, METRICS_FILE)).filter((file) => file.day === day);
  const last = Math.max(0, ...files.map(({ name }) => numberOf(name)));
  const isNew = last === 0 || !(await canContinue(join(folder, nameOf(day, last)), header));
  return { name: nameOf(day, isNew ? last + 1 : last), isNew };
}

function nameOf(day: string, number: number): string {
  return number === 1 ? `metrics_${day}.csv` : `metrics_${day}.${number}.csv`;
}

/** Whether a file begins with this header, or contains only a torn part of it. */
async function canContinue(file: string, header: string): Promise<boolean> {
  const wanted = Buffer.from(header);
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(wanted.length), 0, wanted.length, 0);
    return wanted.subarray(0, bytesRead).equals(buffer.subarray(0, bytesRead));
  } finally {
    await handle.close();
  }
}
