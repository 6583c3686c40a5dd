/** Faults of the clock: it is set forwards and backwards. */
import { existsSync } from 'node:fs';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { dropIn, STATE, UNIT } from '../../testkit/container/appliance.ts';
import { EventReader } from '../../testkit/service/events.ts';
import { LOAD_METRIC } from '../../testkit/weeks/alert-load.ts';
import { longestGapSeconds } from '../../testkit/weeks/losses.ts';
import { type FaultBench, type Figures, pause, SPOOL } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('clock');

const HOUR = 3600;
/** Debian's faketime, of this machine; it is copied into the container. */
const LIBRARIES = ['x86_64', 'aarch64'].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`);
const INSIDE = '/usr/local/lib/libfaketimeMT.so.1';
const OFFSET = '/srv/clock/offset';

/**
 * The clock of a container cannot be set: libfaketime gives the service another CLOCK_REALTIME, whose offset is read from a file at every
 * call. The monotonic clock and the boot time stay the kernel's, as they do when a clock is set.
 */
const CLOCK_FILES: Readonly<Record<string, string>> = {
  [dropIn('clock')]: `[Service]
Environment=LD_PRELOAD=${INSIDE} FAKETIME_TIMESTAMP_FILE=${OFFSET} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1
`,
  [OFFSET]: '+0\n',
};

class Clock {
  readonly #bench: FaultBench;
  /** How far the service's clock is ahead of the true time. */
  offsetSeconds = 0;

  private constructor(bench: FaultBench) {
    this.#bench = bench;
  }

  /** Starts the service with an empty store, and with a clock that can be set. */
  static async take(bench: FaultBench): Promise<Clock> {
    const library = LIBRARIES.find((file) => existsSync(file));
    if (library === undefined) throw new Error('needs the Debian package faketime');
    await bench.machine.copyIn(library, INSIDE);
    const clock = new Clock(bench);
    // Neither earlier samples nor the time without a service are part of the checks.
    await bench.machine.systemctl('stop', UNIT);
    await bench.machine.sh(`rm -rf ${STATE}/edge-health.db* ${SPOOL}`);
    bench.beganMs = Date.now();
    await clock.restart();
    return clock;
  }

  /** By the service's clock. */
  nowMs(): number {
    return Date.now() + this.offsetSeconds * 1000;
  }

  async set(offsetSeconds: number): Promise<void> {
    const text = `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}`;
    // A file that is replaced is never read half written.
    await this.#bench.machine.sh(`echo '${text}' > ${OFFSET}.new; mv ${OFFSET}.new ${OFFSET}`);
    this.offsetSeconds = offsetSeconds;
  }

  async restart(): Promise<void> {
    const { machine } = this.#bench;
    await machine.systemctl('restart', UNIT);
    const near = (timestamp: string): boolean => Math.abs(Date.parse(timestamp) - this.nowMs()) < HOUR * 500;
    await machine.untilJson<{ timestamp: string }>('/health', ({ timestamp }) => near(timestamp), 120);
  }
}

/** The uncertainty when a step is measured: two readings, and the file that is read between them. */
const STEP_TOLERANCE_SECONDS = 5;
/** Range of the time stamps of samples that arrive during the checks. */
const COMING_MS = 60_000;
const BOOT = { files: CLOCK_FILES, alone: true } as const;

interface Aggregated {
  readonly samples_received: number;
  readonly samples_expected: number;
  readonly longest_gap_seconds: number;
}

/** Without alerts of the CPU, because the processor of the machine may really be busy. */
const isOfClock = ({ metric, severity }: Alert): boolean => metric !== 'cpu_percent' || severity === 'ERROR';

/** A span of time in which the clock is set, and what was received in it. */
class ClockSpan {
  readonly #bench: FaultBench;
  readonly clock: Clock;
  readonly #beganMs = Date.now();
  readonly #first: number;
  readonly #disconnections: number;
  #status: StatusDocument | null = null;
  #alert: Alert | null = null;
  #lastId: string | null = null;
  #receivedAtLastId = 0;

  private constructor(bench: FaultBench, clock: Clock) {
    this.#bench = bench;
    this.clock = clock;
    this.#first = bench.stream.statuses.length;
    this.#disconnections = bench.stream.disconnections;
  }

  /** With an alert open. */
  static async begin(bench: FaultBench, clock: Clock): Promise<ClockSpan> {
    bench.load?.stop();
    bench.load?.turn(true);
    const span = new ClockSpan(bench, clock);
    span.#alert = await bench.appliance.alerted(LOAD_METRIC);
    await pause(2);
    const reader = await EventReader.open(await bench.machine.url());
    await bench.machine.until(() => reader.health().length > 0, 120);
    span.#lastId = reader.received.findLast(({ event }) => event === 'health')?.id ?? null;
    const last = reader.health().at(-1)?.timestamp;
    reader.close();
    await bench.machine.until(() => bench.stream.statuses.some(({ it }) => it.timestamp === last), 120);
    span.#receivedAtLastId = bench.stream.statuses.findLastIndex(({ it }) => it.timestamp === last) + 1;
    span.#status = await bench.appliance.status();
    return span;
  }

  get alertId(): string {
    return this.#alert?.alert_id ?? '';
  }

  /** Checks what must hold while the clock is wrong, and after every step. `steps`: those made since the start, in seconds. */
  async check(steps: readonly number[]): Promise<void> {
    const bench = this.#bench;
    const status = await bench.appliance.status();
    const toMs = Date.now();
    const before = this.#status as StatusDocument;
    const events = status.clock_events
      .filter((event) => !before.clock_events.some(({ timestamp }) => timestamp === event.timestamp))
      .toReversed();
    const asMade =
      events.length === steps.length &&
      events.every(
        ({ kind, delta_seconds }, index) => kind === 'step' && Math.abs(delta_seconds - (steps[index] ?? 0)) < STEP_TOLERANCE_SECONDS,
      );
    bench.check(`/status records the steps of ${steps.join(' and ')} s, and nothing else`, asMade, events);
    const missed = status.publish.missed - before.publish.missed;
    const taken = status.publish.samples - before.publish.samples;
    bench.target('at most 1 % of the samples is missed', missed <= taken / 100 + 1, `${missed} of ${taken}`);
    const own = status.nodes.find(({ local }) => local);
    bench.check(
      'the node is neither stale nor UNKNOWN',
      own?.stale === false && own.status !== 'UNKNOWN' && Math.abs(own.age_seconds ?? HOUR) < HOUR / 2,
      own,
    );
    const health = await bench.machine.json<HealthStatus>('/health');
    const offMs = Math.abs(Date.parse(health.timestamp) - this.clock.nowMs());
    bench.check('/health has a sample by the clock that was set', offMs < HOUR * 500, health.timestamp);
    const gap = longestGapSeconds(
      bench.stream.statuses.map(({ atMs }) => atMs),
      this.#beganMs,
      toMs,
    );
    const disconnected = bench.stream.disconnections - this.#disconnections;
    bench.check('the event stream is not disconnected', disconnected === 0, disconnected);
    bench.target('it has a status at least every 1.5 s', gap < 1.5, `${gap.toFixed(1)} s`);
    const topicGap = bench.topic
      ? longestGapSeconds(
          bench.topic.statuses.map(({ atMs }) => atMs),
          this.#beganMs,
          toMs,
        )
      : 0;
    bench.target('and the topic every 2 s', topicGap < 2, `${topicGap.toFixed(1)} s`);
    const { data } = await bench.machine.json<{ data: Alert[] }>('/alerts?resolved=false');
    const open = data.filter(isOfClock);
    bench.check('the alert that was open is, and no other', open.length === 1 && open[0]?.alert_id === this.alertId, data);
    const received = bench.stream.alerts.filter(({ atMs }) => atMs > this.#beganMs + 500).map(({ it }) => it);
    bench.check(
      'no false alert was published',
      received.filter(isOfClock).every(({ alert_id }) => alert_id === this.alertId),
      received,
    );
    await this.#checkStored();
  }

  /** Time stamps of the statuses received since the start, in the order of arrival. */
  get received(): number[] {
    return this.#bench.stream.statuses.slice(this.#first).map(({ it }) => Date.parse(it.timestamp));
  }

  async #checkStored(): Promise<void> {
    const bench = this.#bench;
    const own = this.received;
    const [fromMs, toMs] = [Math.min(...own), Math.max(...own)];
    const all = bench.stream.statuses.filter(({ atMs }) => atMs >= bench.beganMs).map(({ it }) => Date.parse(it.timestamp));
    // More samples arrive during the check, right after the newest.
    const newest = own.at(-1) ?? 0;
    const isKnown = (ms: number): boolean => ms >= fromMs && ms < toMs && (ms < newest || ms > newest + COMING_MS);
    // The first samples after the start of the service came before the event stream was connected.
    const first = bench.stream.statuses.find(({ atMs }) => atMs >= bench.beganMs)?.it.timestamp ?? '';
    const isEarly = (ms: number): boolean => ms < Date.parse(first) && ms > Date.parse(first) - COMING_MS;
    const stored = (await bench.stored(fromMs, toMs)).filter(isKnown);
    const sorted = [...new Set([...all.filter(isKnown), ...stored.filter(isEarly)])].toSorted((a, b) => a - b);
    bench.check(
      'the history has every status that was published, once',
      stored.join() === sorted.join(),
      `${stored.length} of ${sorted.length}`,
    );
    const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`;
    const { longest_gap_seconds, samples_expected, samples_received } = await bench.machine.json<Aggregated>(`/health/aggregate?${range}`);
    const more = samples_received - sorted.length;
    bench.check(
      'the aggregate counts them',
      more >= 0 && more <= (COMING_MS / 1000) * bench.hertz,
      `${samples_received} of ${sorted.length}`,
    );
    bench.check('the step is not counted as a gap', longest_gap_seconds < HOUR / 2, `${longest_gap_seconds} s`);
    // If a step counted as time, it would be a whole hour of samples.
    const off = Math.abs(samples_expected - samples_received);
    const text = `${samples_expected} expected, ${samples_received} received`;
    bench.check('the step does not count as time', off < (HOUR * bench.hertz) / 2, text);
    bench.target('as many samples are expected as were received, to 2 %', off <= Math.max(5, samples_received / 50), text);
  }

  /** A client that reconnects with an id from before the steps gets everything since, once and in order. */
  async checkResume(): Promise<void> {
    const bench = this.#bench;
    const reader = await EventReader.open(await bench.machine.url(), '/events', { 'Last-Event-ID': this.#lastId ?? '' });
    try {
      const upTo = bench.stream.statuses.length;
      const wanted = bench.stream.statuses.slice(this.#receivedAtLastId, upTo).map(({ it }) => it.timestamp);
      await bench.machine
        .until(
          () => reader.health().length >= wanted.length,
          120,
          () => `${reader.health().length} of ${wanted.length} events arrived`,
        )
        .catch(() => undefined); // What arrived is compared below.
      const got = reader
        .health()
        .map(({ timestamp }) => timestamp)
        .slice(0, wanted.length);
      bench.check(
        'a stream resumed from before has everything since, once and in order',
        got.join() === wanted.join(),
        `${got.length} of ${wanted.length}`,
      );
    } finally {
      reader.close();
    }
  }

  /** The cause of the open alert ends: it must be resolved, whatever its time stamps are. */
  async checkResolve(): Promise<void> {
    const bench = this.#bench;
    bench.load?.turn(false);
    await bench.checkAsync('the alert is resolved when its cause ends', async () => {
      const gone = async (): Promise<boolean> => (await bench.appliance.openAlertIds(LOAD_METRIC)).length === 0;
      await bench.machine.until(gone, 120, () => 'it stays open');
      const at = (hours: number): string => new Date(Date.now() + hours * HOUR * 1000).toISOString();
      const range = `from=${at(-3)}&to=${at(3)}`;
      const { data } = await bench.machine.json<{ data: Alert[] }>(`/alerts?resolved=true&metric=${LOAD_METRIC}&${range}`);
      return data.some(({ alert_id }) => alert_id === this.alertId);
    });
  }
}

/** Sets the clock, checks, waits for this long, checks again, and sets it back. */
async function stepAndBack(bench: FaultBench, stepSeconds: number, staySeconds: number): Promise<Figures> {
  const clock = await Clock.take(bench);
  const restarts = await bench.appliance.restarts();
  const span = await ClockSpan.begin(bench, clock);
  await clock.set(stepSeconds);
  await pause(3);
  await span.check([stepSeconds]);
  await pause(staySeconds);
  await span.check([stepSeconds]);
  await span.checkResume();
  await clock.set(0);
  await pause(3);
  await span.check([stepSeconds, -stepSeconds]);
  await span.checkResume();
  await span.checkResolve();
  const { length } = span.received;
  bench.check('the service was not restarted', (await bench.appliance.restarts()) === restarts);
  const observed = `${length} statuses received on both sides of the steps, all in the history, no gap counted`;
  return bench.finish({ observed, recoverySeconds: null, counts: { samplesLost: 0, alertsLost: 0 } });
}

const EXPECTED =
  'recorded as a step; no false alert, no sample missed, no gap counted, history, aggregate and resumed streams correct on both sides, and after the step back';

fault('clock-forwards', { expected: `the clock is set forwards by an hour: ${EXPECTED}`, boot: BOOT }, (bench) =>
  stepAndBack(bench, HOUR, 62),
);

fault('clock-backwards', { expected: `the clock is set backwards by an hour: ${EXPECTED}`, boot: BOOT }, (bench) =>
  stepAndBack(bench, -HOUR, 62),
);
