import type { ServiceRun } from '../../engine/evidence.ts';
import type { ServiceEntry, ServiceReading } from '../entries.ts';

interface Run extends ServiceRun {
  readonly invocation: string | null;
  readonly boot: number;
  /** True if the run is known only from readings; its entry may still follow. */
  readonly provisional: boolean;
}

/** When the service was seen: on the run's axis, by the wall clock in ms, and in which boot of the machine. */
export interface Moment {
  readonly at: number;
  readonly wall: number;
  readonly boot: number;
}

/**
 * The runs of the service: as recorded when first seen, from readings of a run that is not recorded, and from systemd's count of restarts
 * (NRestarts: automatic ones since the boot, or since a manual start).
 */
export class ServiceRuns {
  readonly #runs: Run[] = [];
  /** When the service was last seen in a run, on the axis. */
  #seenAt = Number.NEGATIVE_INFINITY;
  #restarts: { readonly count: number; readonly boot: number } | null = null;
  /** Number of runs for which the restart count was compared; the first run has none before it. */
  #compared = 1;

  /** Adds a service entry. */
  recorded(entry: ServiceEntry, moment: Moment): void {
    const { started, version, invocation, cause, detail, unseen } = entry;
    const run = { started, version, invocation, cause, detail, unseen, provisional: false };
    const last = this.#runs.at(-1);
    const isInvocation = last?.invocation === invocation || last?.invocation === null || invocation === null;
    if (last?.started !== started || !isInvocation) this.#push(run, moment);
    else if (last.provisional) {
      const known = cause === 'first' ? last.cause : cause;
      this.#runs[this.#runs.length - 1] = { ...last, ...run, cause: known, unseen: Math.max(unseen, last.unseen) };
    }
  }

  /** Adds a reading of /status, which identifies the run. */
  read({ started, group }: ServiceReading, moment: Moment): void {
    const last = this.#runs.at(-1);
    if (last?.started !== started) {
      // The run has already ended: the reading is older than the entry of the next run.
      if (this.#runs.some((run) => run.started === started && run.boot === moment.boot)) return;
      this.#push({ started, version: null, invocation: null, cause: 'first', detail: '', unseen: 0, provisional: true }, moment);
    }
    this.#seenAt = moment.at;
    if (group?.restarts != null) this.#count(group.restarts, moment.boot);
  }

  runs(): ServiceRun[] {
    return this.#runs.map(({ from, started, version, cause, detail, unseen }) => ({ from, started, version, cause, detail, unseen }));
  }

  get last(): ServiceRun | null {
    return this.#runs.at(-1) ?? null;
  }

  #push(run: Omit<Run, 'from' | 'boot'>, moment: Moment): void {
    const last = this.#runs.at(-1);
    const age = (moment.wall - Date.parse(run.started)) / 1000;
    // If the clock was set since then, the age is unreliable. The run started after the previous one was last seen, and not later than now.
    const from = Math.min(moment.at, Math.max(this.#seenAt, Number.isNaN(age) ? moment.at : moment.at - age));
    const cause = run.cause !== 'first' || last === undefined ? run.cause : last.boot === moment.boot ? 'unknown' : 'reboot';
    this.#runs.push({ ...run, cause, from, boot: moment.boot });
    this.#seenAt = moment.at;
  }

  /**
   * Restarts between the previous run and this one that only the count shows. One of the counted restarts is this run itself. If the count
   * did not grow, the service was started manually or by a boot: that start is this run, or the counted restarts came after it.
   */
  #count(count: number, boot: number): void {
    const before = this.#restarts;
    if (this.#runs.length > this.#compared && before !== null) {
      const run = this.#runs.pop() as Run;
      const uncounted = before.boot === boot && count > before.count ? count - before.count - 1 : count;
      this.#runs.push({ ...run, unseen: Math.max(run.unseen, uncounted) });
    }
    this.#compared = Math.max(this.#compared, this.#runs.length);
    this.#restarts = { count, boot };
  }
}
