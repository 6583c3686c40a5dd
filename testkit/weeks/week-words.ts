import type { Received, Target, Watcher } from '../../harness/record/entries.ts';
import type { Fault } from './faults.ts';
import type { WeekOptions } from './week-options.ts';

/** What is watched, and by whom. */
export function subjectOf(options: WeekOptions, hertz: number, boot: number): { boot_id: string; target: Target; watcher: Watcher } {
  const { kind = 'unit', serviceTransport = 'embedded', transport = 'embedded' } = options;
  return {
    boot_id: `boot-${boot}`,
    target: {
      kind,
      url: 'http://127.0.0.1:5000',
      unit: kind === 'unit' ? 'edge-health.service' : null,
      node_name: 'health_monitor',
      version: '0.1.0',
      configured_hertz: hertz,
      service_transport: serviceTransport,
      data_folder: '/var/lib/edge-health',
    },
    watcher: { version: '0.1.0', transport, reason: 'it is light', machine: null },
  };
}

export function receivedOf(stamps: readonly number[], { skewSeconds = 0 }: WeekOptions): Received {
  const skewMs = skewSeconds * 1000;
  const known = stamps.length > 0;
  const steps = stamps.slice(1).map((stamp, index) => stamp - (stamps[index] as number));
  return { first: stamps[0] ?? null, steps, slowest_ms: known ? 4 + skewMs : null, fastest_ms: known ? 1 + skewMs : null };
}

/** Rows are written once a minute, 20 s after its begin; a gap is between two that are there. */
const ROW_AT = 20;
const MINUTE = 60;

/** When rows are written, on the axis. */
export function rowTimes(faults: readonly Fault[], end: number): number[] {
  const gaps = faults.filter((fault) => fault.kind === 'gap' && fault.of === 'collected') as Extract<Fault, { kind: 'gap' }>[];
  const regular = Array.from({ length: Math.ceil(end / MINUTE) }, (_, index) => index * MINUTE);
  const left = regular.filter((at) => !gaps.some((gap) => at > gap.at && at < gap.at + gap.seconds));
  const after = gaps.map(({ at, seconds }) => at + seconds);
  return [...new Set([...left, ...after])].sort((one, other) => one - other).map((at) => at + ROW_AT);
}

export interface Heard {
  readonly topic: number[];
  readonly events: number[];
  /** Of the statuses a late joiner is sent again, how many. */
  readonly arrived: { readonly topic: number; readonly events: number };
}

export interface How {
  readonly sampled: boolean;
  readonly published: boolean;
  readonly delivered: boolean;
  readonly twice: boolean;
  readonly swapped: boolean;
}

export const QUIET: How = { sampled: true, published: true, delivered: true, twice: false, swapped: false };

/** A service, or a watcher, takes up to this long to be back. */
const BACK_SECONDS = 20;

/** When a fault is over. */
export function lastOf(fault: Fault, hertz: number): number {
  if (fault.kind === 'die') return Number.POSITIVE_INFINITY;
  const seconds = 'slots' in fault ? fault.slots / hertz : (fault.seconds ?? Number.POSITIVE_INFINITY);
  return fault.at + Math.abs(seconds) + BACK_SECONDS;
}
