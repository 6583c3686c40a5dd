/**
 * A synthetic week is the record of a simulated run: the entries that the harness would have written, computed in a second from a list
 * of faults. Tests judge it like a real record.
 *
 *     week()                                                                  168 hours at 1 Hz without any fault
 *     week({ hours: 12, hertz: 0.1 })                                         shorter, and with fewer samples
 *     week({ faults: [{ kind: 'restart', at: 3600, seconds: 5 }] })           the service is down for 5 s after an hour
 *
 * All faults are in faults.ts, all options in week-options.ts; `judged`, `shortRun` and `slowWeek` (judged.ts) judge a week at once,
 * without.ts removes entries, and perfect.ts and reading.ts create evidence and readings without a record.
 */
import type { Clocked, MinuteEntry, RecordEntry } from '../../harness/record/entries.ts';
import { type Fault, intervals, isWithin, lastOf, ofKind } from './faults.ts';
import { WeekAlerts } from './week-alerts.ts';
import { BEGIN_MS, WeekClocks } from './week-clocks.ts';
import { rowTimes, WeekCoverage } from './week-coverage.ts';
import { type Arrivals, type Fate, receivedOf, subjectOf, WITHOUT_FAULT } from './week-entries.ts';
import type { WeekOptions } from './week-options.ts';
import { WeekService } from './week-service.ts';

export type { Fault } from './faults.ts';
export { BEGIN_MS } from './week-clocks.ts';
export type { WeekOptions } from './week-options.ts';

const MINUTE = 60;
const LATE_JOINER = 10;
const DETECTED_AFTER = 0.4;
const OBSERVER_UP_AFTER_BOOT = 20;

/** The entries of the record, in order, without `n` and `hash`. By default statuses arrive on the topic and on the event stream. */
export function* week(options: WeekOptions = {}): Generator<RecordEntry> {
  yield* new Week(options).entries();
}

class Week {
  readonly #options: WeekOptions;
  readonly #hertz: number;
  readonly #faults: readonly Fault[];
  readonly #clocks: WeekClocks;
  readonly #service: WeekService;
  readonly #alerts: WeekAlerts;
  readonly #stored: WeekCoverage;
  readonly #collected: WeekCoverage;
  readonly #monitoringGaps: readonly { readonly from: number; readonly to: number; readonly reboot: boolean }[];
  readonly #planned: number;
  readonly #end: number;
  #interval = 0;
  readonly #rows: readonly number[];
  #row = 0;
  /** Clock steps that the scans have not processed yet. */
  #steps: { readonly at: number; readonly seconds: number }[];
  #lastTen: number[] = [];
  #openRecorded = '[]';
  #scannedAt = 0;
  #entries: (RecordEntry & { readonly at: number })[] = [];

  constructor(options: WeekOptions) {
    const { age = 86_400, beginMs = BEGIN_MS, cpuShare = 0.01, faults = [], hertz = 1, hours = 168 } = options;
    const { memory = () => 60e6, serviceTransport = 'embedded', skewSeconds = 0, transport = 'embedded', unseenBy = 'entry' } = options;
    this.#options = options;
    this.#hertz = hertz;
    this.#faults = faults;
    this.#clocks = new WeekClocks(faults, beginMs);
    this.#monitoringGaps = [
      ...intervals(ofKind(faults, 'kill')).map((range) => ({ ...range, reboot: false })),
      ...this.#clocks.offs.map(({ from, to }) => ({ from, to: to + OBSERVER_UP_AFTER_BOOT, reboot: true })),
    ].sort((one, other) => one.from - other.from);
    this.#planned = hours * 3600;
    const absent = this.#monitoringGaps.reduce((sum, { from, to }) => sum + to - from + MINUTE, 0);
    this.#end = this.#planned + absent + 3600;
    const published = serviceTransport !== 'off';
    const service = { hertz, age, memory, cpuShare, published, unseenBy };
    this.#service = new WeekService(service, this.#clocks, faults, this.#end);
    this.#alerts = new WeekAlerts(faults, this.#clocks, transport === 'off' || !published ? ['events'] : ['topic', 'events']);
    this.#stored = new WeekCoverage('stored', faults, beginMs, 1 / hertz);
    this.#collected = new WeekCoverage('collected', faults, beginMs, MINUTE);
    this.#rows = rowTimes(faults, this.#end);
    this.#steps = [...this.#clocks.steps];
    if (published && age > LATE_JOINER / hertz) {
      for (let index = -LATE_JOINER; index < 0; index++) this.#lastTen.push(this.#clocks.wall((index + 0.5) / hertz) - skewSeconds * 1000);
    }
  }

  *entries(): Generator<RecordEntry> {
    const until = this.#options.until ?? Number.POSITIVE_INFINITY;
    let [from, observed, fresh] = [0, 0, true];
    yield { type: 'begin', ...this.#at(0), format: 1, run: 'synthetic', planned_seconds: this.#planned, ...this.#subject(0) };
    this.#subscribe(0);
    while (observed < this.#planned && from < until) {
      const left = Math.min(this.#planned - observed, until - from);
      const to = Math.min(this.#boundary(from), from + left);
      const gap = this.#monitoringGaps.find((range) => range.from >= from && range.from <= to && range.to > from);
      if (gap !== undefined) {
        this.#pass(from, gap.to, null);
        from = gap.to;
        if (from >= until) break;
        yield { type: 'resume', ...this.#at(from), ...this.#subject(from) };
        this.#entries = [];
        this.#subscribe(from);
        fresh = true;
        continue;
      }
      const arrivals: Arrivals = {
        topic: fresh ? [...this.#lastTen] : [],
        events: [],
        arrived: { topic: fresh ? this.#lastTen.length : 0, events: 0 },
      };
      this.#pass(from, to, arrivals);
      yield* this.#receptions(from, to);
      yield this.#minute(from, to, arrivals);
      yield* this.#scans(to, observed + to - from >= this.#planned);
      observed += to - from;
      from = to;
      fresh = false;
    }
    if (this.#options.killed) return;
    yield { type: 'open', ...this.#at(from), open: this.#alerts.open(from) };
    yield { type: 'end', ...this.#at(from), reason: observed >= this.#planned ? 'complete' : 'stopped' };
  }

  #at(at: number): Clocked {
    return this.#clocks.clocks(at);
  }

  #subject(at: number): ReturnType<typeof subjectOf> {
    return subjectOf(this.#options, this.#hertz, this.#clocks.boot(at));
  }

  /** The end of the minute, whose timer stops in a suspend and is late after a stall. */
  #boundary(from: number): number {
    let to = from + MINUTE;
    for (const suspend of this.#clocks.suspends) if (suspend.from >= from && suspend.from < to) to += suspend.to - suspend.from;
    for (const stall of intervals(ofKind(this.#faults, 'stall'))) if (stall.from < to && stall.to > to && stall.from >= from) to = stall.to;
    return to;
  }

  #subscribe(at: number): void {
    const open = this.#alerts.open(at);
    this.#openRecorded = JSON.stringify(open);
    this.#add(at + 0.1, { type: 'open', ...this.#at(at + 0.1), open });
    for (const { at: receivedAt, ...alert } of this.#alerts.byLateJoiner(at)) this.#add(receivedAt, { ...alert, ...this.#at(receivedAt) });
  }

  #add(at: number, entry: RecordEntry): void {
    this.#entries.push({ ...entry, at });
  }

  /** Advances the service; if `arrivals` is null, the observer is down and receives nothing. */
  #pass(from: number, to: number, arrivals: Arrivals | null): void {
    for (; (this.#rows[this.#row] ?? Number.POSITIVE_INFINITY) < to; this.#row++) {
      const at = this.#rows[this.#row] as number;
      if (this.#service.up(at) && this.#awake(at)) this.#collected.add(at, this.#clocks.wall(at));
    }
    const quiet = !this.#faults.some((fault) => fault.at < to + 1 && fault.kind !== 'alert' && lastOf(fault, this.#hertz) > from - 1);
    const offset = this.#clocks.wall(from) - from * 1000;
    for (; (this.#interval + 0.5) / this.#hertz < to; this.#interval++) {
      const at = (this.#interval + 0.5) / this.#hertz;
      if (quiet) this.#sample(at, Math.round(at * 1000 + offset), arrivals, WITHOUT_FAULT);
      else this.#sampleWithFaults(at, arrivals);
    }
    if (!quiet) this.#setBack(to);
  }

  #sampleWithFaults(at: number, arrivals: Arrivals | null): void {
    this.#setBack(at);
    if (!this.#awake(at) || !this.#service.up(at)) return;
    const samples = (kind: 'lose' | 'duplicate' | 'reorder', stage?: string): boolean =>
      this.#faults.some(
        (fault) =>
          fault.kind === kind &&
          (fault.kind !== 'lose' || fault.stage === stage) &&
          at >= fault.at &&
          at < fault.at + fault.samples / this.#hertz,
      );
    const stalled = this.#faults.some((fault) => fault.kind === 'stall' && fault.lost && at >= fault.at && at < fault.at + fault.seconds);
    this.#sample(at, this.#clocks.wall(at), arrivals, {
      sampled: !samples('lose', 'sample'),
      published: !samples('lose', 'publish'),
      delivered: !samples('lose', 'deliver') && !stalled,
      twice: samples('duplicate'),
      swapped: samples('reorder'),
    });
  }

  #sample(at: number, wallMs: number, arrivals: Arrivals | null, fate: Fate): void {
    const published = fate.sampled && fate.published;
    this.#service.count(at, fate.sampled, published);
    if (!fate.sampled) return;
    this.#stored.add(at, wallMs);
    const stamp = wallMs - (this.#options.skewSeconds ?? 0) * 1000;
    if (published) this.#lastTen.push(stamp);
    if (this.#lastTen.length > LATE_JOINER) this.#lastTen.shift();
    if (arrivals === null || !fate.delivered) return;
    for (const channel of published ? (['topic', 'events'] as const) : (['events'] as const)) {
      const stamps = arrivals[channel];
      const swap = fate.swapped && stamps.length > arrivals.arrived[channel] && this.#interval % 2 === 1;
      const before = swap ? stamps.pop() : undefined;
      stamps.push(stamp);
      if (before !== undefined) stamps.push(before);
      if (fate.twice) stamps.push(stamp);
    }
  }

  #awake(at: number): boolean {
    return !isWithin(this.#clocks.suspends, at) && !isWithin(this.#clocks.offs, at);
  }

  /** Makes the scans follow a clock that was set back before `at`. */
  #setBack(at: number): void {
    for (let step = this.#steps[0]; step !== undefined && step.at <= at; step = this.#steps[0]) {
      this.#steps.shift();
      if (step.seconds > 0) continue;
      const after = this.#clocks.wall(step.at);
      for (const coverage of [this.#stored, this.#collected]) {
        const scan = coverage.scan(step.at, after - step.seconds * 1000);
        coverage.setBack(after);
        if (scan !== null) this.#add(step.at + DETECTED_AFTER, { type: 'coverage', ...this.#at(step.at + DETECTED_AFTER), ...scan });
      }
    }
  }

  /** The entries between two times, in order. */
  *#receptions(from: number, to: number): Generator<RecordEntry> {
    for (const { at } of this.#clocks.steps)
      this.#clock('step', at, from, to, this.#clocks.steps.find((step) => step.at === at)?.seconds ?? 0);
    for (const range of this.#clocks.suspends) this.#clock('suspend', range.to, from, to, range.to - range.from);
    for (const { at, ...alert } of this.#alerts.between(from, to)) this.#add(at, { ...alert, ...this.#at(at) });
    for (const run of this.#service.runs) {
      if (run.from < from || run.from >= to) continue;
      for (const { at, ...alert } of this.#alerts.afterRestart(run.from)) this.#add(at, { ...alert, ...this.#at(at) });
    }
    const service = this.#service.entry(to);
    if (service !== null) this.#add(to, { ...service, ...this.#at(to) });
    const open = this.#alerts.open(to);
    if (JSON.stringify(open) !== this.#openRecorded) {
      this.#openRecorded = JSON.stringify(open);
      this.#add(to, { type: 'open', ...this.#at(to), open });
    }
    const entries = this.#entries.sort((one, other) => one.at - other.at);
    this.#entries = [];
    for (const { at: _, ...entry } of entries) yield entry as RecordEntry;
  }

  #clock(kind: 'step' | 'suspend', happened: number, from: number, to: number, seconds: number): void {
    if (happened < from || happened >= to) return;
    const at = Math.min(to, happened + DETECTED_AFTER);
    this.#add(at, { type: 'clock', ...this.#at(at), kind, seconds });
  }

  #minute(from: number, to: number, arrivals: Arrivals): MinuteEntry {
    const stalled = intervals(ofKind(this.#faults, 'stall')).filter((stall) => stall.from >= from && stall.from < to);
    const { serviceTransport = 'embedded', transport = 'embedded' } = this.#options;
    const subscribed = transport !== 'off' && serviceTransport !== 'off';
    return {
      type: 'minute',
      ...this.#at(to),
      topic: subscribed && !this.#isUnsubscribed('topic', from) ? receivedOf(arrivals.topic, this.#options) : null,
      events: this.#isUnsubscribed('events', from) ? null : receivedOf(arrivals.events, this.#options),
      stalled_seconds: stalled.reduce((sum, range) => sum + range.to - range.from, 0),
      service: this.#service.reading(to, from),
      host: { cpu: 7, memory: 41.5, disk: 55, celsius: 48 },
      observer: { cpu_seconds: to * 0.002, resident_bytes: 64e6 },
    };
  }

  #isUnsubscribed(channel: 'topic' | 'events', at: number): boolean {
    return ofKind(this.#faults, 'unsubscribed').some(
      (fault) => fault.channel === channel && at >= fault.at && at < fault.at + fault.seconds,
    );
  }

  /** Scans once an hour, and at the end. */
  *#scans(at: number, last: boolean): Generator<RecordEntry> {
    if (Math.floor(at / 3600) === Math.floor(this.#scannedAt / 3600) && !last) return;
    this.#scannedAt = at;
    for (const coverage of [this.#stored, this.#collected]) {
      const scan = coverage.scan(at, this.#clocks.wall(at));
      if (scan !== null) yield { type: 'coverage', ...this.#at(at), ...scan };
    }
  }
}
