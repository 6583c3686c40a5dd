import type { Observer, Received, Target } from '../../harness/record/entries.ts';
import type { WeekOptions } from './week-options.ts';

/** The target and its observer. */
export function subjectOf(options: WeekOptions, hertz: number, boot: number): { boot_id: string; target: Target; observer: Observer } {
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
    observer: { version: '0.1.0', transport, reason: 'it is light', machine: null },
  };
}

export function receivedOf(stamps: readonly number[], { skewSeconds = 0 }: WeekOptions): Received {
  const skewMs = skewSeconds * 1000;
  const known = stamps.length > 0;
  const steps = stamps.slice(1).map((stamp, index) => stamp - (stamps[index] as number));
  return { first: stamps[0] ?? null, steps, slowest_ms: known ? 4 + skewMs : null, fastest_ms: known ? 1 + skewMs : null };
}

export interface Arrivals {
  readonly topic: number[];
  readonly events: number[];
  /** Number of statuses that were sent again to a late joiner. */
  readonly arrived: { readonly topic: number; readonly events: number };
}

export interface Fate {
  readonly sampled: boolean;
  readonly published: boolean;
  readonly delivered: boolean;
  readonly twice: boolean;
  readonly swapped: boolean;
}

export const WITHOUT_FAULT: Fate = { sampled: true, published: true, delivered: true, twice: false, swapped: false };
