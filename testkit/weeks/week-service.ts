import type { Cause, ServiceEntry, ServiceReading } from '../../harness/record/entries.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { type Fault, type Interval, intervals, isWithin, ofKind } from './faults.ts';
import type { WeekClocks } from './week-clocks.ts';
import type { ServiceOptions } from './week-options.ts';

interface Run {
  readonly from: number;
  readonly to: number;
  readonly cause: Cause;
  readonly unseen: number;
  readonly boot: number;
  /** Restart counter of systemd at the start of the run. */
  readonly restarts: number;
}

const UP_AFTER_BOOT = 10;

/** The service of a synthetic week: when it runs, its counters, memory and CPU time. */
export class WeekService {
  readonly runs: readonly Run[];
  readonly #options: ServiceOptions;
  readonly #clocks: WeekClocks;
  readonly #unresponsive: readonly Interval[];
  #run = 0;
  #samples = 0;
  #missed = 0;
  #published = 0;
  #receptions = -1;

  constructor(options: ServiceOptions, clocks: WeekClocks, faults: readonly Fault[], end: number) {
    this.#options = options;
    this.#clocks = clocks;
    this.#unresponsive = intervals(ofKind(faults, 'unresponsive'));
    this.runs = runsOf(options, clocks, faults, end);
  }

  up(at: number): boolean {
    return this.runs.some(({ from, to }) => at >= from && at < to);
  }

  /** Counts a sampling interval during which it was up; counters start at 0 with each run. */
  count(at: number, sampled: boolean, published: boolean): void {
    this.#advance(at);
    if (sampled) this.#samples++;
    else this.#missed++;
    if (published) this.#published++;
  }

  /** The values of /status and /proc, or null if there is no response. */
  reading(at: number, from: number): ServiceReading | null {
    if (!this.up(at) || isWithin(this.#unresponsive, at)) return null;
    this.#advance(at);
    const run = this.runs[this.#run] as Run;
    const { cpuShare, hertz, memory, published } = this.#options;
    const times = [0.25, 0.5, 0.75, 1].map((share) => from + share * (at - from)).filter((time) => time > run.from);
    const resident = (times.length === 0 ? [at] : times).map((time) => Math.round(memory(time, time - run.from)));
    return {
      started: this.#started(run),
      samples: this.#samples,
      missed: this.#missed,
      published: published ? this.#published : null,
      samples_lost: 0,
      resident_bytes: resident,
      cpu_seconds: (this.#clocks.awake(at) - this.#clocks.awake(run.from)) * cpuShare,
      cpu_from: 'group',
      group: { memory_bytes: 90e6, anon_bytes: 60e6, restarts: run.restarts },
      open_files: 31,
      open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
      configured_hertz: hertz,
      database_bytes: 20e6,
    };
  }

  /** The entry of the current run, if it has none yet; runs that started and ended in between are `unseen`. */
  entry(at: number): Omit<ServiceEntry, 'boot' | 'mono' | 'wall'> | null {
    const index = this.runs.findIndex(({ from, to }) => at >= from && at < to);
    if (index < 0 || index === this.#receptions || isWithin(this.#unresponsive, at)) return null;
    const run = this.runs[index] as Run;
    const between = this.#receptions < 0 ? 0 : index - this.#receptions - 1;
    const detail = run.cause === 'signal' ? 'SIGKILL' : '';
    this.#receptions = index;
    const unseen = this.#options.unseenBy === 'entry' ? between + run.unseen : 0;
    const pid = 700 + index;
    return {
      type: 'service',
      started: this.#started(run),
      version: '0.1.0',
      pid,
      invocation: `run-${index}`,
      cause: run.cause,
      detail,
      unseen,
    };
  }

  #started({ from }: Run): string {
    return isoUtc(this.#clocks.wall(from));
  }

  #advance(at: number): void {
    while (at >= (this.runs[this.#run] as Run).to && this.#run < this.runs.length - 1) {
      this.#run++;
      this.#samples = 0;
      this.#missed = 0;
      this.#published = 0;
    }
  }
}

function runsOf({ age }: ServiceOptions, clocks: WeekClocks, faults: readonly Fault[], end: number): Run[] {
  const ends = [
    ...ofKind(faults, 'restart').map(({ at, cause = 'signal', seconds, unseen = 0 }) => ({ at, back: at + seconds, cause, unseen })),
    ...clocks.offs.map(({ from, to }) => ({ at: from, back: to + UP_AFTER_BOOT, cause: 'reboot' as const, unseen: 0 })),
    ...ofKind(faults, 'die').map(({ at }) => ({ at, back: Number.POSITIVE_INFINITY, cause: 'unknown' as const, unseen: 0 })),
  ].sort((one, other) => one.at - other.at);
  const runs: Run[] = [{ from: -age, to: ends[0]?.at ?? end, cause: 'first', unseen: 0, boot: 0, restarts: 0 }];
  for (const [index, { back, cause, unseen }] of ends.entries()) {
    if (back === Number.POSITIVE_INFINITY) break;
    const before = runs.at(-1) as Run;
    const boot = clocks.boot(back);
    const restarts = boot === before.boot ? before.restarts + 1 + unseen : 0;
    runs.push({ from: back, to: ends[index + 1]?.at ?? end, cause, unseen, boot, restarts });
  }
  return runs;
}
