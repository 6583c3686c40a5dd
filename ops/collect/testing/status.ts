import type { CollectedStatus } from '../observation.ts';

/** A status document with the members that are collected. */
export function statusWith(more: Partial<CollectedStatus> = {}): CollectedStatus {
  const node = {
    node_name: 'unit_7',
    local: true,
    status: 'OK' as const,
    timestamp: '2026-03-04T05:06:07.000Z',
    age_seconds: 0.5,
    period_seconds: 1,
    stale: false,
  };
  return {
    version: '1.2.3',
    started: '2026-03-01T00:00:00.000Z',
    uptime_seconds: 1000,
    nodes: [node],
    remote: null,
    open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
    publish: { configured_hertz: 1, measured_hertz: 1, samples: 1000, missed: 0 },
    power: { undervoltage: null, undervoltage_events: 2, last_undervoltage: null, throttle_events: 3 },
    storage: { state: 'ok', size_bytes: 4096, samples_pending: 2, samples_lost: 0 },
    ros: { published: { health_status: 990 } },
    process: { resident_memory_bytes: 60_000_000, cpu_seconds: 4 },
    ...more,
  } as CollectedStatus; // The rest of the document is not collected.
}
