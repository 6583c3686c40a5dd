import type { Observer, Target } from '../../harness/record/entries.ts';
import type { Fault } from './faults.ts';

export interface ServiceOptions {
  readonly hertz: number;
  /** Seconds before the begin at which the service started. */
  readonly age: number;
  /** Resident bytes by the axis and the time since the start of the run. */
  readonly memory: (at: number, sinceStart: number) => number;
  /** CPU seconds per second awake. */
  readonly cpuShare: number;
  readonly published: boolean;
  /** Unseen restarts are counted by the entry of the run, or only by systemd. */
  readonly unseenBy: 'entry' | 'count';
}

export interface WeekOptions extends Partial<Omit<ServiceOptions, 'published'>> {
  /** Planned. */
  readonly hours?: number;
  /** Ended by hand, or with the watcher, at this second; the watcher says so unless it was killed. */
  readonly until?: number;
  readonly killed?: boolean;
  readonly transport?: Observer['transport'];
  readonly serviceTransport?: Target['service_transport'];
  readonly kind?: Target['kind'];
  /** Fate far the clock of the service is behind the watcher's. */
  readonly skewSeconds?: number;
  readonly beginMs?: number;
  readonly faults?: readonly Fault[];
}
