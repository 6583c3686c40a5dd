import * as fs from 'node:fs';
import { join } from 'node:path';
import { formatDuration } from '../../src/core/duration.ts';
import {
  type Clocked,
  type Observer,
  type OpenAlert,
  RECORD_FILE,
  type RecordEntry,
  type ServiceEntry,
  type Target,
} from '../record/entries.ts';
import { sharesClock } from '../record/evidence/time-axis.ts';
import { type Opened, RecordWriter } from '../record/writer.ts';
import { EXIT, Refusal } from './command.ts';

/** What the observer needs from the record of a run that it resumes. */
export class ResumeState {
  plannedSeconds = 0;
  target: Target | null = null;
  observer: Observer | null = null;
  /** Of the last `begin` or `resume`. */
  bootId: string | null = null;
  beganMs = 0;
  /** Monitoring gaps: between the entries around each, by the boot-time clock, across a boot by the wall clock. */
  gapSeconds = 0;
  /** Restarts of the service. */
  serviceRestarts = 0;
  isComplete = false;
  /** The last observed run of the service, and the boot in which it was observed. */
  service: ServiceEntry | null = null;
  serviceBootId: string | null = null;
  /** Restarts of the unit, as of the last reading with this member. */
  unitRestarts: number | null = null;
  /** The end of the last scan, in ms since the epoch. */
  readonly scannedUntil = { stored: null as number | null, collected: null as number | null };
  /** The last list of REST. */
  open: readonly OpenAlert[] = [];
  /** Open by the alerts received on the topic. */
  readonly openByTopic = new Map<string, OpenAlert>();
  /** The end of the last observed stretch. */
  #last: Clocked | null = null;

  add(entry: RecordEntry): void {
    switch (entry.type) {
      case 'begin':
        this.plannedSeconds = entry.planned_seconds;
        this.beganMs = entry.wall;
        this.#startStretch(entry, entry.boot_id, entry.target, entry.watcher);
        break;
      case 'resume':
        this.#startStretch(entry, entry.boot_id, entry.target, entry.watcher);
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
      case 'holding':
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

  #startStretch(now: Clocked, bootId: string, target: Target, observer: Observer): void {
    if (this.#last !== null) {
      const { boot, wall } = this.#last;
      this.gapSeconds += Math.max(0, sharesClock(this.bootId, bootId) ? now.boot - boot : (now.wall - wall) / 1000);
    }
    this.#last = now;
    this.bootId = bootId;
    this.target = target;
    this.observer = observer;
    this.isComplete = false;
  }
}

export interface UnfinishedOptions {
  readonly folder: string;
  /** Null: as in the record. */
  readonly durationSeconds: number | null;
  /** Must receive each entry from `onEntry`. */
  readonly resume: ResumeState;
  readonly clocks: () => Clocked;
  readonly onEntry: (entry: RecordEntry) => void;
}

/** Opens the unfinished run of a folder; null: there is none. Throws Refusal if the run cannot be resumed, and RecordError. */
export function openUnfinished({ clocks, durationSeconds, folder, onEntry, resume }: UnfinishedOptions): Opened | null {
  const file = join(folder, RECORD_FILE);
  if (!fs.existsSync(file) || fs.statSync(file).size === 0) return null;
  const opened = RecordWriter.open(folder, clocks, onEntry);
  const planned = formatDuration(resume.plannedSeconds, 'h');
  let problem: string;
  if (resume.isComplete)
    problem = `a run of ${planned} that is complete. Choose another folder with --out, or write its report again with: edge-health harness report ${folder}`;
  else if (durationSeconds !== null && durationSeconds !== resume.plannedSeconds)
    problem = `an unfinished run of ${planned}, not of ${formatDuration(durationSeconds, 'h')}. Resume it without --duration, or choose another folder with --out`;
  else return opened;
  opened.writer.close();
  throw new Refusal(EXIT.usage, `${folder} holds ${problem}`);
}
