import type { Alert } from '../../src/core/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Scan } from '../observe/coverage.ts';
import type { Channel, SeenRun, ServiceSource, SourceListener } from '../observe/sources.ts';
import type { Clocked, EndEntry, MinuteEntry, OpenAlert, RecordEntry } from '../record/entries.ts';
import type { Looks } from './looks.ts';
import { Minute } from './minute.ts';
import { OpenAlerts } from './open-alerts.ts';

/** The watcher looks this often at what is due. */
const BEAT_MS = 1000;
const MILLISECOND = 0.001;
const MINUTE_SECONDS = 60;
const READ_SECONDS = 15;
/** The last reading of a minute comes just before its entry. */
const READ_AHEAD_SECONDS = 1;
const CHECK_SECONDS = 10;
const LOOK_SECONDS = 3600;
/** What is stored of this last stretch may still be on its way to where it is looked for. */
const LOOK_BEHIND_MS = 5000;
/** After a restart or a CRITICAL alert an entry comes at once, but not oftener than this. */
const URGENT_SECONDS = 10;
/** A change of an alert is on its way by three ways: the list is asked for when all have had time. */
const ASK_SECONDS = 2;
/** For the last statuses before the end to arrive. */
const ARRIVE_MS = 3000;
const SETTLE_POLL_MS = 500;
const STEP_LOOK_SECONDS = 5;

export interface WatchOptions {
  readonly plannedSeconds: number;
  /** Seconds in which the run was watched, as of the last entry of its record. */
  readonly recordedSeconds: () => number;
  /** Whether there is a subscription on the graph. */
  readonly hasTopic: boolean;
  readonly clocks: { now(): Clocked; takeStalled(): number };
  /** The same as that of `now`, for every status; the other clocks take a system call. */
  readonly wallMilliseconds: () => number;
  readonly service: ServiceSource;
  readonly looks: Looks;
  /** As the record knows them. */
  readonly openByTopic: ReadonlyMap<string, OpenAlert>;
  /** Writes entries to the record; throws when there is no record any more. */
  readonly write: (entries: readonly RecordEntry[]) => void;
  /** Looks whether there still is one, and writes what waits. */
  readonly check: () => void;
  readonly ownUse: () => MinuteEntry['watcher'];
  /** Once a second while it watches, after everything that was due. */
  readonly onBeat: (now: Clocked) => void;
  readonly onNote: (text: string) => void;
}

/**
 * Makes the entries of a record of what the sources tell. What comes between two minutes is kept and written with the next one: who is
 * killed loses that stretch as a whole, so that it counts neither for nor against the service.
 */
export class Watch implements SourceListener {
  readonly #options: WatchOptions;
  readonly #minute: Minute;
  readonly #alerts: OpenAlerts;
  #pending: RecordEntry[] = [];
  #isReading = false;
  #isUrgent = false;
  /** When the list of open alerts is to be asked for; null: it is known. */
  #askAt: number | null = null;
  /** Of the last `minute`; null: it has not begun. */
  #written: Clocked | null = null;
  /** In which this process did not get to run, since then. */
  #stalledSeconds = 0;
  /** When the planned time was over. */
  #end: Clocked | null = null;
  #readAt = 0;
  #checkedAt = 0;
  #lookedAt = 0;
  #timer: NodeJS.Timeout | null = null;
  #restarts = 0;
  #onEnd: (error: Error | null) => void = () => undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#minute = new Minute(options.hasTopic);
    this.#alerts = new OpenAlerts(options.openByTopic);
  }

  /** Open episodes, as REST listed them last. */
  get openAlerts(): readonly OpenAlert[] {
    return this.#alerts.listed;
  }

  /** Runs of the service seen by this watcher that were not the first. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Boot-time seconds watched: without absences, nor what this process was kept from. */
  watchedSeconds(now: Clocked): number {
    const since = this.#written === null ? 0 : now.boot - this.#written.boot - this.#stalledSeconds;
    return this.#options.recordedSeconds() + since;
  }

  onStatus(by: Channel, status: HealthStatus): void {
    this.#minute.addStatus(by, status, this.#options.wallMilliseconds());
  }

  onAlert(by: Channel, alert: Alert): void {
    const { alert_id, metric, resolved, severity, timestamp } = alert;
    const now = this.#options.clocks.now();
    this.#pending.push({ type: 'alert', ...now, by, alert_id, severity, metric, timestamp, resolved });
    if (by === 'topic') this.#alerts.told(alert);
    if (severity === 'CRITICAL') this.#isUrgent = true;
    this.#askAt ??= now.mono + ASK_SECONDS;
  }

  onNote(text: string): void {
    this.#pending.push({ type: 'note', ...this.#options.clocks.now(), text });
    this.#options.onNote(text);
  }

  /** A step of the wall clock, or a suspend. */
  onClock(kind: 'step' | 'suspend', seconds: number): void {
    const now = this.#options.clocks.now();
    this.#pending.push({ type: 'clock', ...now, kind, seconds });
    if (kind === 'step' && seconds < -STEP_LOOK_SECONDS) void this.#look(this.#options.looks.putBack(now.wall - seconds * 1000, now.wall));
  }

  /** Whether each way that is listened to has been heard. */
  get isHeard(): boolean {
    return this.#minute.isHeardSince(0);
  }

  /**
   * Begins a stretch, with the entry that is made of the time at which it begins, and written by `make` itself; resolves when the planned
   * time has been watched, or `signal` is aborted. Rejects when there is nothing to write to any more.
   */
  async begin(make: (now: Clocked) => void, signal: AbortSignal): Promise<void> {
    await this.#read();
    await this.#ask();
    const now = this.#options.clocks.now();
    const { mono, wall } = now;
    make(now);
    // What was heard before belongs to no stretch; what was found out is as of its begin.
    const found = this.#pending.map((one) => ({ ...one, ...now }));
    this.#minute.forgetBefore(wall);
    this.#lookedAt = mono;
    this.#readAt = mono - READ_AHEAD_SECONDS;
    this.#options.clocks.takeStalled();
    this.#pending = found;
    // A minute of no length: the counters of the service as they are at the begin.
    this.#writeMinute(now);
    const ended = new Promise<void>((resolve, reject) => {
      this.#onEnd = (error) => (error ? reject(error) : resolve());
      signal.addEventListener('abort', () => this.#halt(null), { once: true });
    });
    if (signal.aborted) return;
    this.#timer = setInterval(() => {
      try {
        this.#beat();
      } catch (error) {
        this.#halt(error as Error);
      }
    }, BEAT_MS);
    await ended;
  }

  #halt(error: Error | null): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    this.#onEnd(error);
  }

  #beat(): void {
    const { check, clocks, looks, onBeat, plannedSeconds } = this.#options;
    this.#stalledSeconds += clocks.takeStalled();
    const now = clocks.now();
    // The record counts whole milliseconds.
    if (this.watchedSeconds(now) >= plannedSeconds + MILLISECOND) {
      this.#end = now;
      this.#halt(null);
      return;
    }
    if (now.mono - this.#readAt >= READ_SECONDS) {
      this.#readAt = now.mono;
      void this.#read();
    }
    if (now.mono - this.#checkedAt >= CHECK_SECONDS) {
      this.#checkedAt = now.mono;
      check();
    }
    if (now.mono - this.#lookedAt >= LOOK_SECONDS) {
      this.#lookedAt = now.mono;
      void this.#look(looks.until(now.wall - LOOK_BEHIND_MS));
    }
    if (this.#askAt !== null && now.mono >= this.#askAt) {
      this.#askAt = null;
      void this.#ask();
    }
    const age = now.mono - (this.#written?.mono ?? 0);
    if (age >= MINUTE_SECONDS || (this.#isUrgent && age >= URGENT_SECONDS)) this.#writeMinute(now);
    onBeat(now);
  }

  async #look(looks: Promise<readonly Scan[]>): Promise<void> {
    for (const look of await looks) this.#pending.push({ type: 'holding', ...this.#options.clocks.now(), ...look });
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const { clocks, service } = this.#options;
      const found = await service.read();
      if (!found) return;
      const { reading, run } = found;
      if (run) this.#runSeen(run, clocks.now());
      this.#minute.addReading(reading);
      if (this.#alerts.isOutdated(reading.open_alerts)) this.#askAt ??= clocks.now().mono;
    } finally {
      this.#isReading = false;
    }
  }

  #runSeen({ cause, detail, invocation, pid, started, unseen, version }: SeenRun, now: Clocked): void {
    this.#pending.push({ type: 'service', ...now, started, version, pid, invocation, cause, detail, unseen });
    if (cause === 'first') return;
    this.#restarts += 1 + unseen;
    this.#isUrgent = true;
  }

  /** Asks for the open alerts; an entry where they differ from the last time, or `always`. */
  async #ask(always = false): Promise<void> {
    const { clocks, service } = this.#options;
    const open = await service.open();
    if (open && (this.#alerts.take(open) || always)) this.#pending.push({ type: 'open', ...clocks.now(), open });
  }

  #writeMinute(now: Clocked, untilMs = Number.POSITIVE_INFINITY): void {
    const { ownUse, write } = this.#options;
    const entry = this.#minute.take(now, this.#stalledSeconds, ownUse(), untilMs);
    this.#isUrgent = false;
    this.#written = now;
    this.#stalledSeconds = 0;
    const entries = this.#take();
    // What came after the end of a run follows its last minute.
    this.#pending = entries.filter(({ boot }) => boot > now.boot);
    write([...entries.filter(({ boot }) => boot <= now.boot), entry]);
  }

  #take(): RecordEntry[] {
    const entries = this.#pending;
    this.#pending = [];
    return entries;
  }

  /**
   * Ends the run: from here on nothing counts any more, but what happened before may still be on its way. Waits at most `settleSeconds`
   * for the topic and REST to tell the same alerts.
   */
  async end(reason: EndEntry['reason'], settleSeconds: number): Promise<void> {
    const { clocks, looks, write } = this.#options;
    if (this.#end === null) this.#stalledSeconds += clocks.takeStalled();
    const end = this.#end ?? clocks.now();
    await this.#read();
    await until(() => this.#minute.isHeardSince(end.wall), ARRIVE_MS);
    this.#writeMinute(end, end.wall);
    const deadline = performance.now() + settleSeconds * 1000;
    do await this.#ask(true);
    while (this.#options.hasTopic && !this.#alerts.agree && performance.now() < deadline && (await pause()));
    await this.#look(looks.until(end.wall));
    // Only the last list of those that were asked for in the meantime tells how the run ended.
    const entries = this.#take();
    const last = entries.findLast(({ type }) => type === 'open');
    write([...entries.filter((entry) => entry.type !== 'open' || entry === last), { type: 'end', ...end, reason }]);
  }
}

async function pause(): Promise<true> {
  await new Promise((resolve) => {
    setTimeout(resolve, SETTLE_POLL_MS);
  });
  return true;
}

async function until(holds: () => boolean, milliseconds: number): Promise<void> {
  const deadline = performance.now() + milliseconds;
  while (!holds() && performance.now() < deadline) await pause();
}
