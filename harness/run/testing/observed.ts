import { mock } from 'node:test';
import type { Alert, Severity } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import { isoUtc } from '../../../src/core/time/time.ts';
import { type Scan, Scans } from '../../observe/coverage.ts';
import type { SeenRun } from '../../observe/service-observer.ts';
import type { Clocked, EndEntry, OpenAlert, RecordEntry, ServiceReading } from '../../record/entries.ts';
import { Observation, type ObservationOptions } from '../observation.ts';

export const EPOCH = Date.parse('2026-03-04T05:06:07.000Z');

export function status(stampMs: number): HealthStatus {
  const timestamp = isoUtc(stampMs);
  return { cpu_percent: 10, memory_percent: 20, disk_percent: 30, temperature: null, status: 'OK', node_name: 'robot', timestamp };
}

export function alert(id: string, severity: Severity, resolved = false): Alert {
  return { alert_id: id, severity, metric: 'cpu_percent', value: 1, threshold: 1, timestamp: isoUtc(EPOCH), resolved };
}

/** An observation in virtual time, of a service that responds as the test defines. */
export class Observed {
  readonly entries: RecordEntry[] = [];
  readonly requests: (readonly [from: number, to: number])[] = [];
  readonly ending = new AbortController();
  readonly observation: Observation;
  /** Null: the service does not respond. */
  reading: ServiceReading | null = reading();
  run: SeenRun | null = null;
  open: OpenAlert[] = [];
  /** Called once a second, with the seconds since the begin. */
  onSecond: (second: number) => void = () => undefined;
  checks = 0;
  /** How often the list of open alerts was requested. */
  openRequests = 0;
  #now: Clocked = { boot: 1000, mono: 500, wall: EPOCH };
  #second = 0;

  constructor(options: Partial<ObservationOptions> = {}) {
    const scan = async (from: number, to: number): Promise<Scan> => {
      this.requests.push([from, to]);
      return { of: 'stored', from, to, count: 1, first: from, last: from, longest_seconds: 0, gaps: [] };
    };
    this.observation = new Observation({
      plannedSeconds: 119.9,
      recorder: this,
      hasTopic: true,
      clocks: { now: () => this.#now, takeStalled: () => 0 },
      wallMilliseconds: () => this.#now.wall,
      service: {
        read: async () => {
          const run = this.run;
          this.run = null;
          return this.reading && { reading: this.reading, run };
        },
        open: async () => {
          this.openRequests += 1;
          return this.open;
        },
      },
      scans: new Scans({ stored: scan, collected: null }, { stored: EPOCH, collected: EPOCH }),
      openByTopic: new Map(),
      ownUse: () => ({ cpu_seconds: 1, resident_bytes: 2 }),
      onTick: () => this.#ticked(),
      onNote: () => undefined,
      ...options,
    });
  }

  get now(): Clocked {
    return this.#now;
  }

  /** As a Recorder. */
  get observedSeconds(): number {
    return (this.of('minute').at(-1)?.boot ?? 0) - (this.of('minute')[0]?.boot ?? 0);
  }

  write(entries: readonly RecordEntry[]): void {
    this.entries.push(...entries);
  }

  check(): void {
    this.checks += 1;
  }

  /** The wall clock advances with the others by default. */
  pass(seconds: number, wallSeconds = seconds): void {
    const { boot, mono, wall } = this.#now;
    this.#now = { boot: boot + seconds, mono: mono + seconds, wall: wall + wallSeconds * 1000 };
  }

  runs(): Promise<void> {
    return inVirtualTime(() => this.observation.begin(() => undefined, this.ending.signal), 1000);
  }

  ends(reason: EndEntry['reason'], settleSeconds: number): Promise<void> {
    return inVirtualTime(() => this.observation.end(reason, settleSeconds), 500);
  }

  of<T extends RecordEntry['type']>(type: T): (RecordEntry & { readonly type: T })[] {
    return this.entries.filter((entry): entry is RecordEntry & { readonly type: T } => entry.type === type);
  }

  #ticked(): void {
    this.#second += 1;
    this.pass(1);
    this.onSecond(this.#second);
  }
}

export function reading(started = isoUtc(EPOCH)): ServiceReading {
  return {
    started,
    samples: 1,
    missed: 0,
    published: 1,
    samples_lost: 0,
    resident_bytes: [70e6],
    cpu_seconds: 1,
    cpu_from: 'process',
    group: null,
    open_files: 40,
    open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
    configured_hertz: 1,
    database_bytes: 1000,
  };
}

/** Calls `action` and fires its timers, `stepMs` of virtual time at once, until what it returns is settled. */
async function inVirtualTime(action: () => Promise<void>, stepMs: number): Promise<void> {
  const { now } = performance;
  let virtualMs = now.call(performance);
  performance.now = () => virtualMs;
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  try {
    let isSettled = false;
    const acting = action().finally(() => {
      isSettled = true;
    });
    acting.catch(() => undefined); // It is awaited below.
    while (!isSettled) {
      await new Promise((later) => setImmediate(later));
      virtualMs += stepMs;
      mock.timers.tick(stepMs);
    }
    await acting;
  } finally {
    mock.timers.reset();
    performance.now = now;
  }
}
