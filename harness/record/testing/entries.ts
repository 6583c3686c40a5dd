import type { BeginEntry, Clocked, MinuteEntry, Observer, RecordEntry, Target } from '../entries.ts';

const WALL = Date.parse('2026-03-01T00:00:00.000Z');

export function clocksAt(seconds: number): Clocked {
  return { boot: 1000 + seconds, mono: 1000 + seconds, wall: WALL + seconds * 1000 };
}

const target: Target = {
  kind: 'unit',
  url: 'http://127.0.0.1:5000',
  unit: 'edge-health.service',
  node_name: 'unit_7',
  version: '0.1.0',
  configured_hertz: 1,
  service_transport: 'embedded',
  data_folder: '/var/lib/edge-health',
};
const observer: Observer = {
  version: '0.1.0',
  transport: 'embedded',
  reason: 'needs no ROS 2',
  machine: {
    hostname: 'käthe', // Two bytes in UTF-8.
    model: 'Raspberry Pi 5 Model B Rev 1.0',
    os: 'Debian GNU/Linux 13',
    kernel: '6.12.0',
    architecture: 'arm64',
    cpu: 'Cortex-A76',
    cores: 4,
    memory_bytes: 8_000_000_000,
  },
};

export function begin(run = 'run-1'): BeginEntry {
  return { type: 'begin', ...clocksAt(0), format: 1, run, boot_id: 'boot-1', planned_seconds: 604_800, target, observer };
}

export function resume(seconds: number): RecordEntry {
  return { type: 'resume', ...clocksAt(seconds), boot_id: 'boot-1', target, observer };
}

/** The minute that ends `n` minutes after the start. */
export function minute(n: number, statuses = 60): MinuteEntry {
  const steps = Array.from({ length: Math.max(0, statuses - 1) }, (_, i) => 1000 + ((n * 31 + i * 7) % 5) - 2);
  const received = { first: statuses > 0 ? WALL + (n - 1) * 60_000 + 7 : null, steps, slowest_ms: 12, fastest_ms: 1 };
  return {
    type: 'minute',
    ...clocksAt(n * 60),
    topic: received,
    events: { ...received, slowest_ms: 8 },
    stalled_seconds: 0,
    service: {
      started: '2026-02-28T23:00:00.000Z',
      samples: 3600 + n * 60,
      missed: 0,
      published: 3600 + n * 60,
      samples_lost: 0,
      resident_bytes: [61_000_000, 61_010_000, 61_020_000, 61_000_000 + n],
      cpu_seconds: 20 + n * 0.3,
      cpu_from: 'group',
      group: { memory_bytes: 80_000_000, anon_bytes: 40_000_000, restarts: 0 },
      open_files: 30,
      open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
      configured_hertz: 1,
      database_bytes: 1_000_000 + n * 900,
    },
    host: { cpu: 12.5, memory: 40.25, disk: 51, celsius: null },
    observer: { cpu_seconds: 1 + n * 0.1, resident_bytes: 70_000_000 },
  };
}

/** One entry of every type except begin and torn, a minute apart, the first `from` minutes after the start. */
export function oneOfEach(from = 1): RecordEntry[] {
  const at = (i: number): Clocked => clocksAt((from + i) * 60);
  return [
    minute(from),
    {
      type: 'service',
      ...at(1),
      started: '2026-03-01T00:01:30.000Z',
      version: '0.1.0',
      pid: 4711,
      invocation: 'a1b2',
      cause: 'signal',
      detail: 'SIGKILL',
      unseen: 0,
    },
    {
      type: 'alert',
      ...at(2),
      by: 'topic',
      alert_id: 'unit_7/cpu_percent/01J',
      severity: 'CRITICAL',
      metric: 'cpu_percent',
      timestamp: '2026-03-01T00:02:00.000Z',
      resolved: false,
    },
    { type: 'open', ...at(3), open: [{ alert_id: 'unit_7/cpu_percent/01J', severity: 'CRITICAL', metric: 'cpu_percent' }] },
    { type: 'clock', ...at(4), kind: 'step', seconds: -3600 },
    {
      type: 'coverage',
      ...at(5),
      of: 'stored',
      from: WALL,
      to: WALL + 3_600_000,
      count: 3500,
      first: WALL,
      last: WALL + 3_599_000,
      longest_seconds: 101,
      gaps: [{ from: WALL + 1000, to: WALL + 102_000, seconds: 101 }],
    },
    { type: 'note', ...at(6), text: 'the event stream was interrupted: "ECONNRESET"\nit is opened again – Größe' },
    { type: 'end', ...at(7), reason: 'stopped' },
    resume((from + 8) * 60),
    { ...minute(from + 9, 0), service: null, events: null },
  ];
}
