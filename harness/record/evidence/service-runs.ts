import type { ServiceRun } from '../../engine/evidence.ts';
import type { ServiceEntry, ServiceReading } from '../entries.ts';

interface Run extends ServiceRun {
  readonly invocation: string | null;
  readonly boot: number;
  /** Known by readings alone; what is known of it may still come. */
  readonly provisional: boolean;
}

/** A moment at which the service was seen: on the run's axis, by the wall clock in ms, and in which boot of the machine. */
export interface Moment {
  readonly at: number;
  readonly wall: number;
  readonly boot: number;
}

/**
 * The runs of the service: as they were recorded when first seen, by readings that show another run than was recorded, and by the count
 * of restarts that systemd keeps (NRestarts: automatic ones since the boot, or since somebody started the service by hand).
 */
export class ServiceRuns {
  readonly #runs: Run[] = [];
  /** When the service was last seen in a run, on the axis. */
  #seenAt = Number.NEGATIVE_INFINITY;
  #restarts: { readonly count: number; readonly boot: number } | null = null;
  /** For how many runs the count of restarts was looked at; the first has none before it. */
  #compared = 1;

  /** A service entry. Returns whether it is a run that was not known. */
  recorded(entry: ServiceEntry, moment: Moment): void {
    const { started, version, invocation, cause, detail, unseen } = entry;
    const last = this.#runs.at(-1);
    if (
      last !== undefined &&
      last.started === started &&
      (last.invocation === invocation || last.invocation === null || invocation === null)
    ) {
      if (last.provisional) {
        const told = cause === 'first' ? last.cause : cause;
        this.#runs[this.#runs.length - 1] = {
          ...last,
          version,
          invocation,
          cause: told,
          detail,
          unseen: Math.max(unseen, last.unseen),
          provisional: false,
        };
      }
      return;
    }
    this.#push({ started, version, invocation, cause, detail, unseen, provisional: false }, moment);
  }

  /** A reading that shows in which run the service is. */
  read({ started, group }: ServiceReading, moment: Moment): void {
    const last = this.#runs.at(-1);
    if (last?.started !== started) {
      // A run that was over already: the reading is older than the entry that told of the next one.
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
    // A clock that was set since may show any age; it started after the run before was last seen, and not later than now.
    const from = Math.min(moment.at, Math.max(this.#seenAt, Number.isNaN(age) ? moment.at : moment.at - age));
    const cause = run.cause !== 'first' || last === undefined ? run.cause : last.boot === moment.boot ? 'unknown' : 'reboot';
    this.#runs.push({ ...run, cause, from, boot: moment.boot });
    this.#seenAt = moment.at;
  }

  /**
   * Restarts between the run before and this one that only the count shows: one of those it counts is this run itself. Where it did not
   * grow, somebody started the service by hand (or booted): that is this run, or what the count shows came after it.
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
