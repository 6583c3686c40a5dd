import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { ObserverClocks } from '../observe/clocks.ts';
import type { Scan, Scans } from '../observe/coverage.ts';
import type { SourceListener } from '../observe/events.ts';
import type { SeenRun, ServiceObserver } from '../observe/service-observer.ts';
import type { Channel, Clocked, EndEntry, MinuteEntry, OpenAlert, RecordEntry, ServiceReading } from '../record/entries.ts';
import { Minute } from './minute.ts';
import { pollUntil } from './poll.ts';
import type { Recorder } from './recorder.ts';

const TICK_MS = 1000;
const MILLISECOND = 0.001;
const MINUTE_SECONDS = 60;
const READ_SECONDS = 15;
/** The last reading of a minute is taken just before its entry. */
const READ_AHEAD_SECONDS = 1;
const CHECK_SECONDS = 10;
const SCAN_SECONDS = 3600;
/** The newest samples may not be stored yet. */
const SCAN_DELAY_MS = 5000;
/** After a restart or a CRITICAL alert, an entry is written at once, but at most at this interval. */
const URGENT_SECONDS = 10;
/** A change of an alert is received on up to three channels; the list of open alerts is requested once all have had time to receive it. */
const LIST_SECONDS = 2;
/** Time for the last statuses before the end to arrive. */
const ARRIVE_SECONDS = 3;
const SETTLE_POLL_MS = 500;
const SCANNED_STEP_SECONDS = 5;

export interface ObservationOptions {
  readonly plannedSeconds: number;
  readonly recorder: Pick<Recorder, 'observedSeconds' | 'write' | 'check'>;
  /** Whether there is a subscription on the graph. */
  readonly hasTopic: boolean;
  readonly clocks: Pick<ObserverClocks, 'now' | 'takeStalled'>;
  /** Equals the wall time of `clocks.now`. It is read for each status, and the other clocks cost a system call. */
  readonly wallMilliseconds: () => number;
  readonly service: Pick<ServiceObserver, 'read' | 'open'>;
  readonly scans: Scans;
  /** Open alerts by the topic, as in the record. */
  readonly openByTopic: ReadonlyMap<string, OpenAlert>;
  readonly ownUse: () => MinuteEntry['observer'];
  /** Called once a second during the observation, after all due work. */
  readonly onTick: (now: Clocked) => void;
  readonly onNote: (text: string) => void;
}

/**
 * Converts the data of the sources to entries of a record. Entries between two minutes are written with the second one: after SIGKILL that
 * interval is lost as a whole, and counts neither for nor against the service.
 */
export class Observation implements SourceListener {
  readonly #options: ObservationOptions;
  readonly #minute: Minute;
  readonly #alerts: OpenAlerts;
  #pending: RecordEntry[] = [];
  #isReading = false;
  #isUrgent = false;
  /** When to request the list of open alerts; null if it is current. */
  #listAt: number | null = null;
  /** Clocks of the last `minute`; null if there is none. */
  #written: Clocked | null = null;
  /** Seconds in which this process was stalled since then. */
  #stalledSeconds = 0;
  /** When the planned time was complete. */
  #end: Clocked | null = null;
  #readAt = 0;
  #checkedAt = 0;
  #scannedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #restarts = 0;
  readonly #halted = Promise.withResolvers<void>();

  constructor(options: ObservationOptions) {
    this.#options = options;
    this.#minute = new Minute(options.hasTopic);
    this.#alerts = new OpenAlerts(options.openByTopic);
  }

  /** Open episodes in the last list from REST. */
  get openAlerts(): readonly OpenAlert[] {
    return this.#alerts.listed;
  }

  /** Restarts of the service that this observer has detected. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Observed seconds of boot time, without monitoring gaps and stalls of this process. */
  observedSeconds(now: Clocked): number {
    const since = this.#written === null ? 0 : now.boot - this.#written.boot - this.#stalledSeconds;
    return this.#options.recorder.observedSeconds + since;
  }

  onStatus(channel: Channel, status: HealthStatus): void {
    this.#minute.addStatus(channel, status, this.#options.wallMilliseconds());
  }

  onAlert(channel: Channel, alert: Alert): void {
    const { alert_id, metric, resolved, severity, timestamp } = alert;
    const now = this.#options.clocks.now();
    this.#pending.push({ type: 'alert', ...now, by: channel, alert_id, severity, metric, timestamp, resolved });
    if (channel === 'topic') this.#alerts.addChange(alert);
    if (severity === 'CRITICAL') this.#isUrgent = true;
    this.#listAt ??= now.mono + LIST_SECONDS;
  }

  onNote(text: string): void {
    this.#pending.push({ type: 'note', ...this.#options.clocks.now(), text });
    this.#options.onNote(text);
  }

  /** Handles a step of the wall clock, or a suspend. */
  onClock(kind: 'step' | 'suspend', seconds: number): void {
    const now = this.#options.clocks.now();
    this.#pending.push({ type: 'clock', ...now, kind, seconds });
    if (kind === 'step' && seconds < -SCANNED_STEP_SECONDS)
      void this.#scan(this.#options.scans.clockSetBack(now.wall - seconds * 1000, now.wall));
  }

  /** Whether each channel has delivered a status. */
  get hasReceived(): boolean {
    return this.#minute.hasReceivedSince(0);
  }

  /**
   * Begins an observed span; `writeFirst` writes its first entry, with these clocks. Resolves when the planned time was observed or
   * `signal` is aborted. Rejects if the record was removed.
   */
  async begin(writeFirst: (now: Clocked) => void, signal: AbortSignal): Promise<void> {
    await this.#read();
    await this.#list();
    const now = this.#options.clocks.now();
    writeFirst(now);
    // Earlier statuses belong to no span; other earlier entries get the clocks of its start.
    const found = this.#pending.map((entry) => ({ ...entry, ...now }));
    this.#minute.dropBefore(now.wall);
    this.#scannedAt = now.mono;
    this.#readAt = now.mono - READ_AHEAD_SECONDS;
    this.#options.clocks.takeStalled();
    this.#pending = found;
    // A minute of no length, which records the service's counters at the start.
    this.#writeMinute(now);
    if (signal.aborted) return;
    signal.addEventListener('abort', () => this.#halt(), { once: true });
    this.#timer = setInterval(() => {
      try {
        this.#tick();
      } catch (error) {
        this.#halt(error as Error);
      }
    }, TICK_MS);
    await this.#halted.promise;
  }

  #halt(error?: Error): void {
    clearInterval(this.#timer);
    if (error) this.#halted.reject(error);
    else this.#halted.resolve();
  }

  #tick(): void {
    const { clocks, onTick, plannedSeconds, recorder, scans } = this.#options;
    this.#stalledSeconds += clocks.takeStalled();
    const now = clocks.now();
    // The clocks in the record are rounded to milliseconds.
    if (this.observedSeconds(now) >= plannedSeconds + MILLISECOND) {
      this.#end = now;
      this.#halt();
      return;
    }
    if (now.mono - this.#readAt >= READ_SECONDS) {
      this.#readAt = now.mono;
      void this.#read();
    }
    if (now.mono - this.#checkedAt >= CHECK_SECONDS) {
      this.#checkedAt = now.mono;
      recorder.check();
    }
    if (now.mono - this.#scannedAt >= SCAN_SECONDS) {
      this.#scannedAt = now.mono;
      void this.#scan(scans.scanUntil(now.wall - SCAN_DELAY_MS));
    }
    if (this.#listAt !== null && now.mono >= this.#listAt) {
      this.#listAt = null;
      void this.#list();
    }
    const age = now.mono - (this.#written?.mono ?? 0);
    if (age >= MINUTE_SECONDS || (this.#isUrgent && age >= URGENT_SECONDS)) this.#writeMinute(now);
    onTick(now);
  }

  async #scan(scans: Promise<readonly Scan[]>): Promise<void> {
    for (const scan of await scans) this.#pending.push({ type: 'coverage', ...this.#options.clocks.now(), ...scan });
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const { clocks, service } = this.#options;
      const found = await service.read();
      if (!found) return;
      const { reading, run } = found;
      if (run) this.#addRun(run, clocks.now());
      this.#minute.addReading(reading);
      if (this.#alerts.isOutdated(reading.open_alerts)) this.#listAt ??= clocks.now().mono;
    } finally {
      this.#isReading = false;
    }
  }

  #addRun({ cause, detail, invocation, pid, started, unseen, version }: SeenRun, now: Clocked): void {
    this.#pending.push({ type: 'service', ...now, started, version, pid, invocation, cause, detail, unseen });
    if (cause === 'first') return;
    this.#restarts += 1 + unseen;
    this.#isUrgent = true;
  }

  /** Requests the open alerts. Writes an entry if they differ from the last list, or if `always` is set. */
  async #list(always = false): Promise<void> {
    const { clocks, service } = this.#options;
    const open = await service.open();
    if (open && (this.#alerts.setListed(open) || always)) this.#pending.push({ type: 'open', ...clocks.now(), open });
  }

  #writeMinute(now: Clocked, untilMs = Number.POSITIVE_INFINITY): void {
    const { ownUse, recorder } = this.#options;
    const entry = this.#minute.take(now, this.#stalledSeconds, ownUse(), untilMs);
    this.#isUrgent = false;
    this.#written = now;
    this.#stalledSeconds = 0;
    const entries = this.#take();
    // Entries after the end of a run follow its last minute.
    this.#pending = entries.filter(({ boot }) => boot > now.boot);
    recorder.write([...entries.filter(({ boot }) => boot <= now.boot), entry]);
  }

  #take(): RecordEntry[] {
    const entries = this.#pending;
    this.#pending = [];
    return entries;
  }

  /**
   * Ends the run: later events do not count, but earlier statuses may still arrive. Waits at most `settleSeconds` until the topic and
   * REST have the same alerts.
   */
  async end(reason: EndEntry['reason'], settleSeconds: number): Promise<void> {
    const { clocks, recorder, scans } = this.#options;
    if (this.#end === null) this.#stalledSeconds += clocks.takeStalled();
    const end = this.#end ?? clocks.now();
    await this.#read();
    await pollUntil(() => this.#minute.hasReceivedSince(end.wall), ARRIVE_SECONDS, SETTLE_POLL_MS);
    this.#writeMinute(end, end.wall);
    await this.#list(true);
    const haveSettled = (): boolean => !this.#options.hasTopic || this.#alerts.agree;
    await pollUntil(haveSettled, settleSeconds, SETTLE_POLL_MS, () => this.#list(true));
    await this.#scan(scans.scanUntil(end.wall));
    // Only the last list of the wait shows the state at the end of the run.
    const entries = this.#take();
    const last = entries.findLast(({ type }) => type === 'open');
    recorder.write([...entries.filter((entry) => entry.type !== 'open' || entry === last), { type: 'end', ...end, reason }]);
  }
}

/** The open alerts according to the changes received on the topic, and to the last list from REST. */
class OpenAlerts {
  readonly #byTopic: Map<string, OpenAlert>;
  #byRest: readonly OpenAlert[] | null = null;

  /** `byTopic`: the open alerts as in the record. */
  constructor(byTopic: ReadonlyMap<string, OpenAlert>) {
    this.#byTopic = new Map(byTopic);
  }

  get listed(): readonly OpenAlert[] {
    return this.#byRest ?? [];
  }

  addChange({ alert_id, metric, resolved, severity }: Alert): void {
    if (resolved) this.#byTopic.delete(alert_id);
    else this.#byTopic.set(alert_id, { alert_id, severity, metric });
  }

  /** Returns whether the list differs from the previous one, or is the first. */
  setListed(listed: readonly OpenAlert[]): boolean {
    const isNew = this.#byRest === null || keys(listed) !== keys(this.#byRest);
    this.#byRest = listed;
    return isNew;
  }

  /** Whether the last list differs from the counts of the service. */
  isOutdated(counts: ServiceReading['open_alerts']): boolean {
    const listed = this.#byRest;
    if (listed === null) return true;
    return Object.entries(counts).some(([severity, count]) => listed.filter((alert) => alert.severity === severity).length !== count);
  }

  /** Whether both lists have the same CRITICAL alerts. */
  get agree(): boolean {
    return this.#byRest !== null && keys(critical(this.#byRest)) === keys(critical(this.#byTopic.values()));
  }
}

function critical(alerts: Iterable<OpenAlert>): OpenAlert[] {
  return [...alerts].filter(({ severity }) => severity === 'CRITICAL');
}

function keys(alerts: readonly OpenAlert[]): string {
  return alerts
    .map(({ alert_id, severity }) => `${alert_id} ${severity}`)
    .sort()
    .join();
}
