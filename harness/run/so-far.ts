import type { Clocked, Observer, OpenAlert, RecordEntry, ServiceEntry, Target } from '../record/entries.ts';
import { sharesClock } from '../record/evidence/time-axis.ts';

/** What the watcher has to know of a run that is resumed. */
export class SoFar {
  plannedSeconds = 0;
  target: Target | null = null;
  watcher: Observer | null = null;
  /** Of the last `begin` or `resume`. */
  bootId: string | null = null;
  beganMs = 0;
  /** Between the entries around each absence: by the boot-time clock, over a boot by the wall clock. */
  absentSeconds = 0;
  /** Of the service. */
  restartsBefore = 0;
  isComplete = false;
  /** The last run of the service that was seen, and the boot that was in. */
  service: ServiceEntry | null = null;
  serviceBootId: string | null = null;
  /** Of the last reading that had it: restarts of the unit. */
  restarts: number | null = null;
  /** Up to which time stamp was looked, in ms since the epoch. */
  readonly lookedUntil = { stored: null as number | null, collected: null as number | null };
  /** As REST listed them last. */
  open: readonly OpenAlert[] = [];
  /** As the topic told them. */
  readonly openByTopic = new Map<string, OpenAlert>();
  /** The end of what was watched so far. */
  #last: Clocked | null = null;

  add(entry: RecordEntry): void {
    switch (entry.type) {
      case 'begin':
        this.plannedSeconds = entry.planned_seconds;
        this.beganMs = entry.wall;
        this.#span(entry, entry.boot_id, entry.target, entry.watcher);
        break;
      case 'resume':
        this.#span(entry, entry.boot_id, entry.target, entry.watcher);
        break;
      case 'minute':
        this.#last = entry;
        if (entry.service?.group) this.restarts = entry.service.group.restarts ?? this.restarts;
        break;
      case 'service':
        this.service = entry;
        this.serviceBootId = this.bootId;
        this.restarts = null;
        if (entry.cause !== 'first') this.restartsBefore += 1 + entry.unseen;
        break;
      case 'holding':
        this.lookedUntil[entry.of] = entry.to;
        break;
      case 'open':
        this.open = entry.open;
        break;
      case 'alert':
        if (entry.by !== 'topic') break;
        if (entry.resolved) this.openByTopic.delete(entry.alert_id);
        else this.openByTopic.set(entry.alert_id, entry);
        break;
      case 'end':
        this.isComplete = entry.reason === 'complete';
        break;
      default:
        break;
    }
  }

  #span(now: Clocked, bootId: string, target: Target, watcher: Observer): void {
    if (this.#last !== null) {
      const { boot, wall } = this.#last;
      this.absentSeconds += Math.max(0, sharesClock(this.bootId, bootId) ? now.boot - boot : (now.wall - wall) / 1000);
    }
    this.#last = now;
    this.bootId = bootId;
    this.target = target;
    this.watcher = watcher;
    this.isComplete = false;
  }
}
