import type { MinuteEntry, ServiceReading } from '../../harness/record/entries.ts';
import type { Interval } from '../../harness/record/evidence/time-axis.ts';

export function readingOf(more: Partial<ServiceReading> = {}): ServiceReading {
  return {
    started: '2026-03-04T00:00:00.000Z',
    samples: 0,
    missed: 0,
    published: 0,
    samples_lost: 0,
    resident_bytes: [60e6],
    cpu_seconds: 1,
    cpu_from: 'group',
    group: null,
    open_files: null,
    open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
    configured_hertz: 1,
    database_bytes: 0,
    ...more,
  };
}

export function intervalOf(from: number, to: number, more: Partial<Interval> = {}): Interval {
  const stalledSeconds = more.stalledSeconds ?? 0;
  const awakeSeconds = Math.max(0, to - from - stalledSeconds);
  return { from, to, awakeSeconds, monotonicSeconds: to - from, stalledSeconds, fresh: false, hertz: 1, wallOffsets: [0], ...more };
}

export function minuteOf(mono: number, more: Partial<MinuteEntry> = {}): MinuteEntry {
  return {
    type: 'minute',
    boot: mono,
    mono,
    wall: mono * 1000,
    topic: null,
    events: null,
    stalled_seconds: 0,
    service: null,
    host: { cpu: null, memory: null, disk: null, celsius: null },
    observer: { cpu_seconds: 0, resident_bytes: 0 },
    ...more,
  };
}
