import type { StatusDocument } from '../../../src/client/documents.ts';

/** The members of /status that the sources use. */
export type StatusPart = Pick<
  StatusDocument,
  'started' | 'version' | 'host' | 'nodes' | 'open_alerts' | 'publish' | 'storage' | 'ros' | 'process'
>;

const STORAGE: StatusDocument['storage'] = {
  path: '/var/lib/edge-health/edge-health.db',
  state: 'ok',
  error: null,
  since: null,
  size_bytes: 4096,
  max_bytes: 512e6,
  oldest_sample: null,
  samples_pending: 3,
  samples_lost: 1,
  last_write: null,
  quarantined: [],
};

const NODE = {
  status: 'OK',
  timestamp: null,
  age_seconds: null,
  last_seen: null,
  period_seconds: 1,
  clock_ahead_seconds: null,
  conflict_addresses: [] as string[],
  left: null,
  open_alerts: 0,
  stale: false,
} as const;

export function statusPart(changes: Partial<StatusPart> = {}): StatusPart {
  return {
    started: '2026-03-04T05:06:07.000Z',
    version: '1.2.3',
    host: {
      hostname: 'robot',
      model: 'a board',
      os: 'Debian 13',
      kernel: '6.12',
      architecture: 'arm64',
      cpu: 'Cortex-A76',
      cores: 4,
      memory_bytes: 8e9,
      virtual: false,
    },
    nodes: [
      { node_name: 'other', local: false, ...NODE },
      { node_name: 'robot', local: true, ...NODE },
    ],
    open_alerts: { WARNING: 1, ERROR: 0, CRITICAL: 2 },
    publish: { configured_hertz: 1, measured_hertz: 1, samples: 100, missed: 2 },
    storage: STORAGE,
    ros: {
      transport: 'embedded',
      reason: 'no ROS 2 is sourced',
      domain_id: 0,
      peers: 1,
      subscribers: 1,
      refused: 0,
      published: { health_status: 98, alerts: 4 },
      observing: true,
      observers: [],
      problem: null,
      note: null,
    },
    process: { resident_memory_bytes: 70e6, cpu_seconds: 12.5, open_files: 40 },
    ...changes,
  };
}

export const atFolder = (folder: string): Partial<StatusPart> => ({ storage: { ...STORAGE, path: `${folder}/edge-health.db` } });
