import type { Alert } from '../../../src/core/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { EventReader } from '../../../testkit/events.ts';
import { longestSilenceSeconds } from '../account.ts';
import { type Arena, pause, TIDE_METRIC } from '../arena.ts';
import type { Fault } from '../fault.ts';
import type { Figures } from '../observation.ts';
import { CLOCK_FILES, Clock } from './clock-shift.ts';

const GROUP = 'clock';
const HOUR = 3600;
/** Of measuring a step: two readings a second apart, and the file that is read between. */
const STEP_TOLERANCE_SECONDS = 0.3;
/** Time stamps of what comes while questions are asked. */
const COMING_MS = 5000;
const BOOT = { files: CLOCK_FILES, alone: true } as const;

interface Aggregated {
  readonly samples_received: number;
  readonly samples_expected: number;
  readonly longest_gap_seconds: number;
}

/** The processor of a machine that is being tried may truly be busy. */
const isOfClock = ({ metric, severity }: Alert): boolean => metric !== 'cpu_percent' || severity === 'ERROR';

/** A stretch of time in which the clock is set, and what was heard in it. */
class Stretch {
  readonly #arena: Arena;
  readonly clock: Clock;
  readonly #beganMs = Date.now();
  readonly #first: number;
  readonly #cuts: number;
  #status: StatusDocument | null = null;
  #alert: Alert | null = null;
  #lastId: string | null = null;
  #heardAtLastId = 0;

  private constructor(arena: Arena, clock: Clock) {
    this.#arena = arena;
    this.clock = clock;
    this.#first = arena.stream.statuses.length;
    this.#cuts = arena.stream.cuts;
  }

  /** With an alert open. */
  static async begin(arena: Arena, clock: Clock): Promise<Stretch> {
    arena.tide?.stop();
    arena.tide?.turn(true);
    const stretch = new Stretch(arena, clock);
    stretch.#alert = await arena.appliance.alerted(TIDE_METRIC);
    await pause(2);
    const reader = await EventReader.open(await arena.machine.url());
    await arena.machine.until(() => reader.health().length > 0, 5);
    stretch.#lastId = reader.received.findLast(({ event }) => event === 'health')?.id ?? null;
    const last = reader.health().at(-1)?.timestamp;
    reader.close();
    await arena.machine.until(() => arena.stream.statuses.some(({ it }) => it.timestamp === last), 5);
    stretch.#heardAtLastId = arena.stream.statuses.findLastIndex(({ it }) => it.timestamp === last) + 1;
    stretch.#status = await arena.appliance.status();
    return stretch;
  }

  get alertId(): string {
    return this.#alert?.alert_id ?? '';
  }

  /** What must hold while the clock is elsewhere, and after every step. `steps`: those made since the begin, in seconds. */
  async mustBeRight(steps: readonly number[]): Promise<void> {
    const arena = this.#arena;
    const status = await arena.appliance.status();
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
    arena.must(`/status records the steps of ${steps.join(' and ')} s, and nothing else`, asMade, events);
    const missed = status.publish.missed - before.publish.missed;
    arena.must('no slot is missed beyond 1 %', missed <= (status.publish.samples - before.publish.samples) / 100 + 1, missed);
    const own = status.nodes.find(({ local }) => local);
    arena.must(
      'the node is neither silent nor UNKNOWN',
      own?.silent === false && own.status !== 'UNKNOWN' && (own.age_seconds ?? 9) < 1,
      own,
    );
    const health = await arena.machine.json<HealthStatus>('/health');
    arena.must('/health has the sample of now', Math.abs(Date.parse(health.timestamp) - this.clock.nowMs()) < 1500, health.timestamp);
    const silence = longestSilenceSeconds(
      arena.stream.statuses.map(({ atMs }) => atMs),
      this.#beganMs,
      toMs,
    );
    arena.must(
      'the event stream goes on',
      silence < 1.5 && arena.stream.cuts === this.#cuts,
      `${silence} s of silence, cut ${arena.stream.cuts - this.#cuts} times`,
    );
    const still = arena.topic
      ? longestSilenceSeconds(
          arena.topic.statuses.map(({ atMs }) => atMs),
          this.#beganMs,
          toMs,
        )
      : 0;
    arena.must('and the topic', still < 2, `${still} s of silence`);
    const { data } = await arena.machine.json<{ data: Alert[] }>('/alerts?resolved=false');
    const open = data.filter(isOfClock);
    arena.must('the alert that was open is, and no other', open.length === 1 && open[0]?.alert_id === this.alertId, data);
    const told = arena.stream.alerts.filter(({ atMs }) => atMs > this.#beganMs + 500).map(({ it }) => it);
    arena.must(
      'no false alert was told',
      told.filter(isOfClock).every(({ alert_id }) => alert_id === this.alertId),
      told,
    );
    await this.#mustBeStored();
  }

  /** Stamps of the statuses heard since the begin, in the order in which they came. */
  get heard(): number[] {
    return this.#arena.stream.statuses.slice(this.#first).map(({ it }) => Date.parse(it.timestamp));
  }

  async #mustBeStored(): Promise<void> {
    const arena = this.#arena;
    const heard = this.heard;
    const [fromMs, toMs] = [Math.min(...heard), Math.max(...heard)];
    const all = arena.stream.statuses.filter(({ atMs }) => atMs >= arena.beganMs).map(({ it }) => Date.parse(it.timestamp));
    // While it is asked more comes, right behind the newest.
    const newest = heard.at(-1) ?? 0;
    const isKnown = (ms: number): boolean => ms >= fromMs && ms < toMs && (ms < newest || ms > newest + COMING_MS);
    // Nobody listened yet to the first ones after the start of the service.
    const heardFirst = arena.stream.statuses.find(({ atMs }) => atMs >= arena.beganMs)?.it.timestamp ?? '';
    const wasEarly = (ms: number): boolean => ms < Date.parse(heardFirst) && ms > Date.parse(heardFirst) - COMING_MS;
    const stored = (await arena.stored(fromMs, toMs)).filter(isKnown);
    const told = all.filter(isKnown).toSorted((a, b) => a - b);
    const sorted = [...new Set([...told, ...stored.filter(wasEarly)])].toSorted((a, b) => a - b);
    arena.must('the history has every status that was told, once', stored.join() === sorted.join(), `${stored.length} of ${sorted.length}`);
    const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`;
    const { longest_gap_seconds, samples_expected, samples_received } = await arena.machine.json<Aggregated>(`/health/aggregate?${range}`);
    const more = samples_received - sorted.length;
    arena.must(
      'the aggregate counts them',
      more >= 0 && more <= (COMING_MS / 1000) * arena.hertz,
      `${samples_received} of ${sorted.length}`,
    );
    arena.must('no gap is counted', longest_gap_seconds < 1, `${longest_gap_seconds} s`);
    const off = Math.abs(samples_expected - samples_received);
    arena.must(
      'as many are expected as were there, to 2 %',
      off <= Math.max(5, samples_received / 50),
      `${samples_expected} expected, ${samples_received} there`,
    );
  }

  /** A reader who comes back with an id from before the steps gets everything since, once and in order. */
  async mustResume(): Promise<void> {
    const arena = this.#arena;
    const reader = await EventReader.open(await arena.machine.url(), '/events', { 'Last-Event-ID': this.#lastId ?? '' });
    try {
      const upTo = arena.stream.statuses.length;
      const wanted = arena.stream.statuses.slice(this.#heardAtLastId, upTo).map(({ it }) => it.timestamp);
      await arena.machine
        .until(
          () => reader.health().length >= wanted.length,
          10,
          () => `${reader.health().length} of ${wanted.length} events came`,
        )
        .catch(() => undefined); // What came is compared below.
      const got = reader
        .health()
        .map(({ timestamp }) => timestamp)
        .slice(0, wanted.length);
      arena.must(
        'a stream resumed from before has everything since, once and in order',
        got.join() === wanted.join(),
        `${got.length} of ${wanted.length}`,
      );
    } finally {
      reader.close();
    }
  }

  /** The cause of the open alert goes: it is resolved, whatever its time stamps say. */
  async mustResolve(): Promise<void> {
    const arena = this.#arena;
    arena.tide?.turn(false);
    await arena.mustBe('the alert is resolved when its cause goes', async () => {
      const gone = async (): Promise<boolean> => (await arena.appliance.openAlertIds(TIDE_METRIC)).length === 0;
      await arena.machine.until(gone, 10, () => 'it stays open');
      const at = (hours: number): string => new Date(Date.now() + hours * HOUR * 1000).toISOString();
      const range = `from=${at(-3)}&to=${at(3)}`;
      const { data } = await arena.machine.json<{ data: Alert[] }>(`/alerts?resolved=true&metric=${TIDE_METRIC}&${range}`);
      return data.some(({ alert_id }) => alert_id === this.alertId);
    });
  }
}

/** Sets the clock, waits, looks; long enough for what is written once a minute if so asked. */
async function stepAndBack(arena: Arena, stepSeconds: number, staySeconds: number): Promise<Figures> {
  const clock = await Clock.take(arena);
  const restarts = await arena.appliance.restarts();
  const stretch = await Stretch.begin(arena, clock);
  await clock.set(stepSeconds);
  await pause(3);
  await stretch.mustBeRight([stepSeconds]);
  await pause(staySeconds);
  await stretch.mustBeRight([stepSeconds]);
  await stretch.mustResume();
  await clock.set(0);
  await pause(3);
  await stretch.mustBeRight([stepSeconds, -stepSeconds]);
  await stretch.mustResume();
  await stretch.mustResolve();
  const told = stretch.heard.length;
  arena.must('the service was not restarted', (await arena.appliance.restarts()) === restarts);
  const observed = `${told} statuses heard on both sides of the steps, all in the history, no gap counted`;
  return arena.finish({ observed, recoverySeconds: null, counts: { samplesLost: 0, alertsLost: 0 } });
}

const EXPECTED =
  'recorded as a step; no false alert, no slot missed, no gap counted, history, aggregate and resumed streams right on both sides, and after the way back';

export const clockForwards: Fault = {
  name: 'clock-forwards',
  group: GROUP,
  core: false,
  expected: `the clock is set forwards by an hour: ${EXPECTED}`,
  boot: BOOT,
  run: (arena) => stepAndBack(arena, HOUR, 62),
};

export const clockBackwards: Fault = {
  name: 'clock-backwards',
  group: GROUP,
  core: false,
  expected: `the clock is set backwards by an hour: ${EXPECTED}`,
  boot: BOOT,
  run: (arena) => stepAndBack(arena, -HOUR, 62),
};
