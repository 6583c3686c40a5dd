import type { Observer, Target } from '../../harness/record/entries.ts';
import type { Fault } from './faults.ts';

export interface ServiceOptions {
  readonly hertz: number;
  /** Seconds from the start of the service to the start of the run. */
  readonly age: number;
  /** Resident bytes as a function of the time axis and of the seconds since the start of the service. */
  readonly memory: (at: number, sinceStart: number) => number;
  /** CPU seconds per second awake. */
  readonly cpuShare: number;
  readonly published: boolean;
  /** Where unobserved restarts are recorded: in the entry of the service, or only in the counter of systemd. */
  readonly unseenBy: 'entry' | 'count';
}

export interface WeekOptions extends Partial<Omit<ServiceOptions, 'published'>> {
  /** Planned length. */
  readonly hours?: number;
  /** The observer ends at this second: stopped, with an `end` entry, or `killed`, without one. */
  readonly until?: number;
  readonly killed?: boolean;
  readonly transport?: Observer['transport'];
  readonly serviceTransport?: Target['service_transport'];
  readonly kind?: Target['kind'];
  /** Seconds by which the clock of the service is behind that of the observer. */
  readonly skewSeconds?: number;
  readonly beginMs?: number;
  readonly faults?: readonly Fault[];
}
