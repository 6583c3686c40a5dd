import { type Cell, csvRecord } from '../../src/core/csv.ts';
import { METRICS } from '../../src/core/metrics.ts';
import { isoUtc } from '../../src/core/time.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import type { NodeValues } from './node-values.ts';

/** /status, also of a service that is older than this program. */
export type CollectedStatus = Omit<StatusDocument, 'process' | 'ros'> & {
  readonly process?: { readonly resident_memory_bytes?: number | null; readonly cpu_seconds?: number | null } | null;
  readonly ros?: { readonly published?: { readonly health_status: number } | null };
};

/** What the service returned, and the clocks of this machine at that time: steps, suspends and reboots show when they are compared. */
export interface Observation {
  /** Wall clock, milliseconds since the epoch. */
  readonly wallMs: number;
  /** Different in each boot; null where procfs does not have it. */
  readonly bootId: string | null;
  /** Since boot, suspends included; null where procfs does not have it. */
  readonly bootSeconds: number | null;
  /** Stands still while the machine is suspended. */
  readonly monotonicSeconds: number;
  /** Null: no response. */
  readonly status: CollectedStatus | null;
  readonly values: ReadonlyMap<string, NodeValues>;
  /** Why there is no response, or no values; null: both are there. */
  readonly reason: string | null;
}

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

/** In the row of every node. */
const NODE_COLUMNS: Readonly<Record<string, Column>> = {
  time: ({ observed }) => isoUtc(observed.wallMs),
  boot_seconds: ({ observed }) => observed.bootSeconds,
  node_name: ({ name }) => name,
  local: ({ node }) => node?.local ?? true,
  answered: ({ observed }) => observed.status !== null,
  reason: ({ observed }) => observed.reason,
  status: ({ node, values }) => values?.status ?? node?.status,
  stale: ({ node }) => node?.silent,
  age_seconds: ({ node }) => node?.age_seconds,
  period_seconds: ({ node }) => node?.period_seconds,
  sample_time: ({ node, values }) => values?.sampleTime ?? node?.timestamp,
  ...Object.fromEntries(METRICS.map((metric): [string, Column] => [metric, ({ values }) => values?.readings[metric]])),
};

/** Of this machine and its service. Only in the row of its own node: 300 nodes would fill the disk with repetitions. */
const SERVICE_COLUMNS: Readonly<Record<string, Column>> = {
  boot_id: ({ observed }) => observed.bootId,
  monotonic_seconds: ({ observed }) => observed.monotonicSeconds,
  version: ofStatus(({ version }) => version),
  service_started: ofStatus(({ started }) => started),
  service_uptime_seconds: ofStatus(({ uptime_seconds }) => uptime_seconds),
  service_memory_bytes: ofStatus(({ process }) => process?.resident_memory_bytes),
  service_cpu_seconds: ofStatus(({ process }) => process?.cpu_seconds),
  configured_hertz: ofStatus(({ publish }) => publish.configured_hertz),
  measured_hertz: ofStatus(({ publish }) => publish.measured_hertz),
  samples: ofStatus(({ publish }) => publish.samples),
  missed_samples: ofStatus(({ publish }) => publish.missed),
  published_statuses: ofStatus(({ ros }) => ros?.published?.health_status),
  remote_statuses: ofStatus(({ gathered }) => gathered?.statuses),
  open_warning: ofStatus(({ open_alerts }) => open_alerts.WARNING),
  open_error: ofStatus(({ open_alerts }) => open_alerts.ERROR),
  open_critical: ofStatus(({ open_alerts }) => open_alerts.CRITICAL),
  storage_state: ofStatus(({ storage }) => storage.state),
  storage_bytes: ofStatus(({ storage }) => storage.size_bytes),
  samples_pending: ofStatus(({ storage }) => storage.samples_pending),
  samples_lost: ofStatus(({ storage }) => storage.samples_lost),
  undervoltage: ofStatus(({ power }) => power.undervoltage),
  throttle_events: ofStatus(({ power }) => power.throttle_events),
};

export const COLUMNS: readonly string[] = [...Object.keys(NODE_COLUMNS), ...Object.keys(SERVICE_COLUMNS)];

/** First line of every file. A file with another header, of another version, is not continued. */
export const HEADER = csvRecord(COLUMNS);

const NODE_CELLS = Object.values(NODE_COLUMNS);
const SERVICE_CELLS = Object.values(SERVICE_COLUMNS);
const NO_SERVICE_CELLS: readonly null[] = SERVICE_CELLS.map(() => null);

/** One record per node; without a response only that of `ownNode`. */
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
