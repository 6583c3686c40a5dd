import type { KnownRun } from '../observe/supervisor.ts';
import type { BeginEntry, Clocked, Observer, OpenAlert, RecordEntry, ResumeEntry, ServiceEntry, Target } from '../record/entries.ts';
import { sharesClock } from '../record/evidence/time-axis.ts';

/** The data that the observer needs from the record of a run that it resumes. */
export class ResumeState {
  plannedSeconds = 0;
  target: Target | null = null;
  observer: Observer | null = null;
  /** Boot id of the last `begin` or `resume`. */
  bootId: string | null = null;
  beganMs = 0;
  /** Total length of the monitoring gaps between the entries around each, by the boot-time clock, or by the wall clock across a boot. */
  gapSeconds = 0;
  /** Restarts of the service. */
  serviceRestarts = 0;
  isComplete = false;
  /** The last observed run of the service, and the boot in which it was observed. */
  service: ServiceEntry | null = null;
  serviceBootId: string | null = null;
  /** Restarts of the unit, as of the last reading that contains them. */
  unitRestarts: number | null = null;
  /** The end of the last scan, in ms since the epoch. */
  readonly scannedUntil = { stored: null as number | null, collected: null as number | null };
  /** The last list from REST. */
  open: readonly OpenAlert[] = [];
  /** Open alerts according to the alerts received on the topic. */
  readonly openByTopic = new Map<string, OpenAlert>();
  /** Clocks at the end of the last observed span. */
  #last: Clocked | null = null;

  /** The last observed run of the service, or null if there is none. */
  get knownRun(): KnownRun | null {
    if (this.service === null) return null;
    const { invocation, pid, started, version } = this.service;
    return { started, version, pid, invocation, restarts: this.unitRestarts, bootId: this.serviceBootId };
  }

  add(entry: RecordEntry): void {
    switch (entry.type) {
      case 'begin':
        this.plannedSeconds = entry.planned_seconds;
        this.beganMs = entry.wall;
        this.#startStretch(entry);
        break;
      case 'resume':
        this.#startStretch(entry);
        break;
      case 'minute':
        this.#last = entry;
        if (entry.service?.group) this.unitRestarts = entry.service.group.restarts ?? this.unitRestarts;
        break;
      case 'service':
        this.service = entry;
        this.serviceBootId = this.bootId;
        this.unitRestarts = null;
        if (entry.cause !== 'first') this.serviceRestarts += 1 + entry.unseen;
        break;
      case 'coverage':
        this.scannedUntil[entry.of] = entry.to;
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

  #startStretch(entry: BeginEntry | ResumeEntry): void {
    if (this.#last !== null) {
      const { boot, wall } = this.#last;
      this.gapSeconds += Math.max(0, sharesClock(this.bootId, entry.boot_id) ? entry.boot - boot : (entry.wall - wall) / 1000);
    }
    this.#last = entry;
    this.bootId = entry.boot_id;
    this.target = entry.target;
    this.observer = entry.observer;
    this.isComplete = false;
  }
}
