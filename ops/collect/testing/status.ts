import { NODE, STORAGE, statusDocument } from '../../../testkit/service/status-document.ts';
import type { CollectedStatus } from '../observation.ts';

/** A status document with values of every member that is collected. */
export function statusWith(more: Partial<CollectedStatus> = {}): CollectedStatus {
  return {
    ...statusDocument({
      started: '2026-03-01T00:00:00.000Z',
      nodes: [{ ...NODE, node_name: 'unit_7', timestamp: '2026-03-04T05:06:07.000Z', age_seconds: 0.5 }],
      open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
      publish: { configured_hertz: 1, measured_hertz: 1, samples: 1000, missed: 0 },
      power: { undervoltage: null, undervoltage_events: 2, last_undervoltage: null, throttle_events: 3 },
      storage: { ...STORAGE, samples_pending: 2, samples_lost: 0 },
    }),
    ros: { published: { health_status: 990 } },
    process: { resident_memory_bytes: 60_000_000, cpu_seconds: 4 },
    ...more,
  };
}
