import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import type { Sample } from '../health-status.ts';
import { METRICS, type Metric, type Readings } from '../metrics.ts';
import type { Alert, Threshold } from './alert.ts';
import { type AlertTiming, type Level, TRANSITIONS } from './episode.ts';
import { type JudgingRules, ThresholdMonitor } from './threshold-monitor.ts';

// Invariants for every sequence of samples: random thresholds and timing, readings that stay at, between, inside and around the
// thresholds or are missing, irregular spacing, reloads, restarts and late lists of open alerts in between.

/** Every metric is judged. */
type Rules = JudgingRules & { readonly thresholds: Readonly<Record<Metric, Threshold>> };

const NODE = 'health_monitor';
/** Sums of floating-point seconds differ in their last digits; comparisons allow for this much. */
const ROUNDING_SECONDS = 1e-4;

// --- scenarios

const PLACES = ['missing', 'low', 'warningBand', 'warning', 'between', 'criticalBand', 'critical', 'high', 'anywhere'] as const;
type Place = (typeof PLACES)[number];

const margin = (limit: number, timing: AlertTiming): number => (Math.abs(limit) * timing.hysteresisPercent) / 100;

/** A value in [limit − hysteresis, limit), or the nearest to it that a hysteresis of 0 allows. */
function inBand(limit: number, timing: AlertTiming, fraction: number): number {
  return Math.min(limit - 1e-9, limit - margin(limit, timing) * (1 - fraction));
}

function valueAt(place: Place, fraction: number, { warning, critical }: Threshold, timing: AlertTiming): number | null {
  switch (place) {
    case 'missing':
      return null;
    case 'low':
      return warning - margin(warning, timing) - 0.01 - fraction * 50;
    case 'warningBand':
      return inBand(warning, timing, fraction);
    case 'warning':
      return warning;
    case 'between':
      return warning + fraction * (critical - warning) * 0.999;
    case 'criticalBand':
      return inBand(critical, timing, fraction);
    case 'critical':
      return critical;
    case 'high':
      return critical + fraction * 50;
    case 'anywhere':
      return -50 + fraction * 200;
  }
}

const fraction = fc.double({ min: 0, max: 0.999, noNaN: true });
const threshold: fc.Arbitrary<Threshold> = fc
  .tuple(fc.integer({ min: -4000, max: 10_000 }), fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 5000 })))
  .map(([warning, above]) => ({ warning: warning / 100, critical: (warning + above) / 100 }));
const seconds = (max: number): fc.Arbitrary<number> => fc.oneof(fc.constant(0), fc.nat(max), fc.double({ min: 0, max, noNaN: true }));
const timing: fc.Arbitrary<AlertTiming> = fc.record({
  hysteresisPercent: fc.oneof(fc.constant(0), fc.constant(5), fc.double({ min: 0, max: 50, noNaN: true })),
  raiseAfterSeconds: seconds(4),
  clearAfterSeconds: seconds(6),
  sensorTimeoutSeconds: fc.double({ min: 1, max: 6, noNaN: true }),
  longestIntervalSeconds: fc.constantFrom(1, 3, 3600),
});
const thresholds: fc.Arbitrary<Rules['thresholds']> = fc.record({
  cpu_percent: threshold,
  memory_percent: threshold,
  disk_percent: threshold,
  temperature: threshold,
});
const rules: fc.Arbitrary<Rules> = fc.record({ nodeName: fc.constant(NODE), thresholds, timing, diskPaths: fc.constant([]) });

const place = fc.constantFrom(...PLACES);
const spacing = fc.oneof(fc.constant(1), fc.constant(0.1), fc.double({ min: 1e-3, max: 8, noNaN: true }));
/** A period in which each metric stays in its region. */
interface Stretch {
  readonly before: 'nothing' | 'restart' | 'reload' | 'oldList';
  readonly places: readonly Place[];
  readonly samples: readonly { readonly spacing: number; readonly fractions: readonly number[] }[];
}
const stretch: fc.Arbitrary<Stretch> = fc.record({
  before: fc.constantFrom('nothing', 'nothing', 'nothing', 'nothing', 'restart', 'reload', 'oldList'),
  places: fc.tuple(place, place, place, place),
  samples: fc.array(fc.record({ spacing, fractions: fc.tuple(fraction, fraction, fraction, fraction) }), {
    minLength: 1,
    maxLength: 9,
    size: 'max',
  }),
});

interface Scenario {
  readonly rules: Rules;
  /** In force after the first reload; a second one reverts it. */
  readonly otherRules: Rules;
  readonly startSeconds: number;
  readonly stretches: readonly Stretch[];
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  rules,
  otherRules: rules,
  startSeconds: fc.double({ min: 0, max: 1e6, noNaN: true }),
  stretches: fc.array(stretch, { minLength: 1, maxLength: 12, size: 'max' }),
});

// --- running the scenarios

interface Entry {
  readonly sample: Sample;
  /** In force when the sample was evaluated. */
  readonly rules: Rules;
  /** Whether the monitor was restarted just before this sample. */
  readonly afterStart: boolean;
  readonly changes: readonly Alert[];
  readonly openBefore: readonly Alert[];
  readonly openAfter: readonly Alert[];
}

/** A monitor with its clock and its record of readable metrics, which survive restarts. */
class Run {
  readonly trace: Entry[] = [];
  rules: Rules;
  #monitor: ThresholdMonitor;
  #now: number;
  #interval = 0;
  #ids = 0;
  #afterStart = true;
  readonly #readable = new Set<string>();

  constructor(rules: Rules, startSeconds: number) {
    this.rules = rules;
    this.#now = startSeconds;
    this.#monitor = this.#start([]);
  }

  #start(openAlerts: readonly Alert[]): ThresholdMonitor {
    const past = { openAlerts, readableMetrics: new Set(this.#readable) };
    return new ThresholdMonitor(this.rules, past, this.#now, () => {
      this.#ids += 1;
      return String(this.#ids).padStart(6, '0');
    });
  }

  restart(): void {
    const open = this.#monitor.openAlerts();
    // As the store returns them: copies, in a different order.
    this.#monitor = this.#start(structuredClone(open).reverse());
    this.#afterStart = true;
    claim(same(this.#monitor.openAlerts(), open), 'a restart changed the open alerts');
  }

  reload(rules: Rules): void {
    const open = this.#monitor.openAlerts();
    this.rules = rules;
    this.#monitor.setRules(rules);
    claim(same(this.#monitor.openAlerts(), open), 'a reload changed the open alerts');
  }

  /** Passes an outdated list of this process's open alerts, as from a database that was slow to open. */
  tellOldList(): void {
    const open = this.#monitor.openAlerts();
    const sinceStart = this.trace.slice(this.trace.findLastIndex(({ afterStart }) => afterStart));
    const old = this.#afterStart ? open : (sinceStart.at(-7) ?? sinceStart[0])?.openAfter;
    claim(this.#monitor.adopt(old ?? []).length === 0, 'a known alert was returned');
    claim(same(this.#monitor.openAlerts(), open), 'an old list changed the open alerts');
  }

  judge(spacing: number, readings: Readings): Entry {
    this.#now += spacing;
    this.#interval += 1;
    const sample = {
      interval: this.#interval,
      monotonicSeconds: this.#now,
      timestampMs: 1_772_600_000_000 + this.#interval,
      readings,
      disks: [],
    };
    const openBefore = this.#monitor.openAlerts();
    const changes = this.#monitor.judge(sample);
    for (const metric of METRICS) if (readings[metric] !== null) this.#readable.add(metric);
    const entry = { sample, rules: this.rules, afterStart: this.#afterStart, changes, openBefore, openAfter: this.#monitor.openAlerts() };
    this.#afterStart = false;
    this.trace.push(entry);
    return entry;
  }
}

function readingsOf(rules: Rules, places: readonly Place[], fractions: readonly number[]): Readings {
  const readings: Record<Metric, number | null> = { cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null };
  METRICS.forEach((metric, m) => {
    readings[metric] = valueAt(places[m] as Place, fractions[m] as number, rules.thresholds[metric], rules.timing);
  });
  return readings;
}

function play(scenario: Scenario, restarts = true): Run {
  const run = new Run(scenario.rules, scenario.startSeconds);
  for (const { before, places, samples } of scenario.stretches) {
    if (before === 'restart' && restarts) run.restart();
    if (before === 'reload') run.reload(run.rules === scenario.rules ? scenario.otherRules : scenario.rules);
    if (before === 'oldList') run.tellOldList();
    for (const { spacing, fractions } of samples) run.judge(spacing, readingsOf(run.rules, places, fractions));
  }
  return run;
}

// --- invariants

function claim(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
const isThreshold = ({ severity }: Alert): boolean => severity !== 'ERROR';

/** The level of a metric's threshold episode, derived from the open alerts. */
function levelOf(open: readonly Alert[], metric: Metric): Level {
  const alert = open.find((alert) => alert.metric === metric && isThreshold(alert));
  return alert ? (alert.severity as Level) : 'none';
}

const noDataAlertOpen = (open: readonly Alert[], metric: Metric): boolean => open.some((a) => a.metric === metric && !isThreshold(a));

/** Seconds between consecutive readings, going back from entry `end` while every reading holds. */
function heldSeconds(trace: readonly Entry[], end: number, metric: Metric, holds: (value: number, entry: Entry) => boolean): number {
  let held = 0;
  // Time covered by the reading visited last; it counts once an earlier reading is found to have held as well.
  let pending = 0;
  for (let i = end; i >= 0; i -= 1) {
    const entry = trace[i] as Entry;
    const value = entry.sample.readings[metric];
    if (value !== null) {
      if (!holds(value, entry)) return held;
      held += pending;
      const before = trace[i - 1];
      const interval = before ? entry.sample.monotonicSeconds - before.sample.monotonicSeconds : 0;
      pending = Math.min(interval, entry.rules.timing.longestIntervalSeconds);
    }
    if (entry.afterStart) return held;
  }
  return held;
}

type Transition = (typeof TRANSITIONS)[number];

function holdsFor({ when }: Transition, metric: Metric): (value: number, entry: Entry) => boolean {
  return (value, { rules: { thresholds, timing } }) => {
    const { warning, critical } = thresholds[metric];
    switch (when) {
      case 'atWarning':
        return value >= warning;
      case 'atCritical':
        return value >= critical;
      case 'belowWarning':
        return value < warning - margin(warning, timing);
      case 'belowCritical':
        return value < critical - margin(critical, timing);
    }
  };
}

const neededFor = ({ after }: Transition, { timing }: Rules): number =>
  after === 'raise' ? timing.raiseAfterSeconds : timing.clearAfterSeconds;

/** Runs random scenarios and counts what occurred in them, since a claim about an event that never occurs proves nothing. */
function forEveryScenario(check: (run: Run, seen: (what: string) => void) => void, numRuns = runs(120, 4000)): Map<string, number> {
  const counts = new Map<string, number>();
  const seen = (what: string): void => {
    counts.set(what, (counts.get(what) ?? 0) + 1);
  };
  fc.assert(
    fc.property(scenario, (scenario) => check(play(scenario), seen)),
    { numRuns, seed: SEED },
  );
  return counts;
}

t.test('an alert is raised, changes only along the table and is resolved at most once, and nothing follows', async (t) => {
  const counts = forEveryScenario((run, seen) => {
    const levels = new Map<string, Level | 'ERROR'>();
    const thresholds = new Map<string, number>();
    const closed = new Set<string>();
    for (const { changes, sample, openAfter } of run.trace) {
      claim(new Set(changes.map(({ alert_id }) => alert_id)).size === changes.length, 'an alert changed twice at one sample');
      for (const { alert_id, severity, resolved, metric, timestamp, threshold } of changes) {
        claim(!closed.has(alert_id), 'a change after the resolve');
        claim(alert_id.startsWith(`${NODE}/${metric}/`), 'an id that does not name node and metric');
        claim(Date.parse(timestamp) === sample.timestampMs, 'a time stamp that is not the sample’s');
        const from = levels.get(alert_id) ?? 'none';
        const to = resolved ? 'none' : severity;
        const isMoved = from === to && threshold !== thresholds.get(alert_id);
        thresholds.set(alert_id, threshold);
        if (isMoved) seen('threshold moved');
        else if (severity === 'ERROR') claim(`${from} ${to}` === 'none ERROR' || `${from} ${to}` === 'ERROR none', `${from} to ${to}`);
        else
          claim(
            TRANSITIONS.some((row) => row.from === from && row.to === to),
            `${from} to ${to} is not in the table`,
          );
        claim(!resolved || severity === from, 'resolved with a severity it did not have');
        seen(`${from} ${to}`);
        if (resolved) closed.add(alert_id);
        levels.set(alert_id, to);
      }
      const open = [...levels].filter(([, level]) => level !== 'none').map(([id, level]) => `${id} ${level}`);
      const reported = openAfter.map(({ alert_id, severity }) => `${alert_id} ${severity}`);
      claim(same(open.sort(), reported.sort()), 'the open alerts are not those raised and not resolved');
    }
  });
  for (const { from, to } of TRANSITIONS) t.ok((counts.get(`${from} ${to}`) ?? 0) > 10, `${from} to ${to} was seen often`);
  t.ok((counts.get('ERROR none') ?? 0) > 10, 'so was an ERROR from raise to resolve');
  t.ok((counts.get('threshold moved') ?? 0) > 10, 'and a threshold changed by a reload');
});

t.test('a metric has at most one threshold episode and one ERROR open', async (t) => {
  const counts = forEveryScenario((run, seen) => {
    for (const { openAfter } of run.trace) {
      for (const metric of METRICS) {
        const mine = openAfter.filter((alert) => alert.metric === metric);
        const episodes = mine.filter(isThreshold).length;
        claim(episodes <= 1 && mine.length - episodes <= 1, `${metric} has ${mine.length} open alerts`);
        if (mine.length === 2) seen('both');
      }
    }
  });
  t.ok((counts.get('both') ?? 0) > 10, 'often both at once');
});

t.test('an unavailable metric neither raises, changes nor clears a threshold episode', async (t) => {
  const counts = forEveryScenario((run, seen) => {
    for (const { sample, changes, openBefore } of run.trace) {
      for (const metric of METRICS) {
        if (sample.readings[metric] !== null) continue;
        seen(levelOf(openBefore, metric));
        claim(!changes.some((alert) => alert.metric === metric && isThreshold(alert)), 'a change without a reading');
      }
    }
  });
  for (const level of ['none', 'WARNING', 'CRITICAL']) t.ok((counts.get(level) ?? 0) > 10, `often while ${level}`);
});

t.test(
  'a transition is taken when its condition has held for long enough, time without readings not counted, and never before',
  async (t) => {
    const counts = forEveryScenario((run, seen) => {
      run.trace.forEach(({ sample, rules, openBefore, openAfter }, i) => {
        for (const metric of METRICS) {
          if (sample.readings[metric] === null) continue;
          const from = levelOf(openBefore, metric);
          const to = levelOf(openAfter, metric);
          const held = (row: Transition): number =>
            holdsFor(row, metric)(sample.readings[metric] as number, run.trace[i] as Entry)
              ? heldSeconds(run.trace, i, metric, holdsFor(row, metric))
              : -1;
          if (from !== to) {
            const row = TRANSITIONS.find((row) => row.from === from && row.to === to) as Transition;
            claim(held(row) >= neededFor(row, rules) - ROUNDING_SECONDS, `${from} to ${to} too early`);
            seen('taken');
            continue;
          }
          for (const row of TRANSITIONS.filter((row) => row.from === from)) {
            const seconds = held(row);
            claim(seconds < 0 || seconds < neededFor(row, rules) + ROUNDING_SECONDS, `${from} to ${row.to} is overdue`);
            if (seconds >= 0) seen('pending');
          }
        }
      });
    });
    t.ok((counts.get('taken') ?? 0) > 100 && (counts.get('pending') ?? 0) > 100);
  },
);

t.test('inside the hysteresis band of its threshold an open episode never changes', async (t) => {
  const stays = fc.array(fc.record({ spacing, fraction, missing: fc.boolean() }), { minLength: 1, maxLength: 40, size: 'max' });
  const seen = new Set<Level>();
  fc.assert(
    fc.property(rules, fc.constantFrom<Level[]>('WARNING', 'CRITICAL'), fc.boolean(), stays, (rules, level, restarts, stays) => {
      const run = new Run(rules, 0);
      const up = level === 'WARNING' ? 'between' : 'critical';
      for (let i = 0; i < 12; i += 1) run.judge(1, readingsOf(rules, [up, up, up, up], [0.5, 0.5, 0.5, 0.5]));
      if (restarts) run.restart();
      const [band, crossed] = level === 'WARNING' ? (['warningBand', 'warning'] as const) : (['criticalBand', 'critical'] as const);
      // Without hysteresis there is no band: a value just below the threshold clears.
      const judged = METRICS.filter((metric) => margin(rules.thresholds[metric][crossed], rules.timing) > 1e-6);
      for (const { spacing, fraction, missing } of stays) {
        const sometimes = missing ? 'missing' : band;
        const { changes, openAfter } = run.judge(
          spacing,
          readingsOf(rules, [sometimes, band, sometimes, band], [fraction, fraction, 0, 0]),
        );
        for (const metric of judged) {
          claim(!changes.some((alert) => alert.metric === metric && isThreshold(alert)), `${metric} changed`);
          claim(levelOf(openAfter, metric) === level, `${metric} is not ${level}`);
          seen.add(level);
        }
      }
    }),
    { numRuns: runs(120, 3000), seed: SEED },
  );
  t.same([...seen].sort(), ['CRITICAL', 'WARNING']);
});

t.test('values below the warning threshold never raise, at any spacing', async (t) => {
  const low = fc.constantFrom<Place[]>('low', 'warningBand', 'missing');
  const samples = fc.array(fc.record({ spacing, places: fc.tuple(low, low, low, low), fraction }), {
    minLength: 1,
    maxLength: 60,
    size: 'max',
  });
  fc.assert(
    fc.property(rules, samples, (rules, samples) => {
      const run = new Run(rules, 0);
      for (const { spacing, places, fraction } of samples) {
        const { changes } = run.judge(spacing, readingsOf(rules, places, [fraction, fraction, 0, 0]));
        claim(!changes.some(isThreshold), 'raised below the threshold');
      }
      // The same monitor does raise above it.
      for (let i = 0; i < 8; i += 1) run.judge(1, readingsOf(rules, ['high', 'high', 'high', 'high'], [0, 0, 0, 0]));
      claim(
        METRICS.every((metric) => levelOf(run.trace.at(-1)?.openAfter ?? [], metric) !== 'none'),
        'never raises',
      );
    }),
    { numRuns: runs(120, 3000), seed: SEED },
  );
  t.pass('for every sequence');
});

t.test('with and without restarts, the same alerts are open in the end', async (t) => {
  const ends = new Set<string>();
  let restarts = 0;
  fc.assert(
    fc.property(scenario, fc.constantFrom<Place[]>('low', 'warning', 'high'), fraction, (scenario, end, fraction) => {
      const runs = [play(scenario), play(scenario, false)] as const;
      restarts += runs[0].trace.filter(({ afterStart }) => afterStart).length - 1;
      const open = runs.map((run) => {
        // Long enough for every timing.
        for (let i = 0; i < 25; i += 1) run.judge(1, readingsOf(run.rules, [end, end, end, end], [fraction, fraction, fraction, fraction]));
        return run.trace.at(-1)?.openAfter ?? [];
      });
      for (const metric of METRICS) {
        const { thresholds, timing } = runs[0].rules;
        const { warning, critical } = thresholds[metric];
        // Inside the critical band, CRITICAL depends on earlier samples.
        if (end === 'warning' && warning >= critical - margin(critical, timing)) continue;
        const expected = end === 'low' ? 'none' : end === 'warning' ? 'WARNING' : 'CRITICAL';
        for (const alerts of open) claim(levelOf(alerts, metric) === expected, `${metric} is ${levelOf(alerts, metric)}, not ${expected}`);
        ends.add(expected);
      }
      claim(!open.flat().some((alert) => !isThreshold(alert)), 'an ERROR of a recovered sensor stayed open');
    }),
    { numRuns: runs(120, 3000), seed: SEED },
  );
  t.same([...ends].sort(), ['CRITICAL', 'WARNING', 'none']);
  t.ok(restarts > 20, 'many scenarios had restarts');
});

t.test('an ERROR is raised when a gap exceeds sensor_timeout, and resolved after clear_after without a miss', async (t) => {
  const counts = forEveryScenario((run, seen) => {
    // Each disk path has an ERROR of its own.
    for (const metric of METRICS.filter((metric) => metric !== 'disk_percent')) {
      let wasSeen = false;
      let lastGood = 0;
      let goodSince: number | null = null;
      run.trace.forEach(({ sample, rules, afterStart, openBefore, openAfter }, i) => {
        const now = sample.monotonicSeconds;
        const { sensorTimeoutSeconds, clearAfterSeconds } = rules.timing;
        if (afterStart) {
          // A restart happens right after the previous sample, and gaps count from there.
          lastGood = run.trace[i - 1]?.sample.monotonicSeconds ?? now;
          goodSince = null;
        }
        const was = noDataAlertOpen(openBefore, metric);
        const is = noDataAlertOpen(openAfter, metric);
        if (sample.readings[metric] === null) {
          goodSince = null;
          claim(!was || is, 'resolved by a miss');
          claim(wasSeen || !is, 'a sensor that never existed is an ERROR');
          if (!was && is) claim(now - lastGood > sensorTimeoutSeconds - ROUNDING_SECONDS, 'raised too early');
          if (wasSeen && !is) claim(now - lastGood < sensorTimeoutSeconds + ROUNDING_SECONDS, 'not raised');
          if (!wasSeen) seen('never seen');
        } else {
          wasSeen = true;
          lastGood = now;
          goodSince ??= now;
          claim(was || !is, 'raised by a reading');
          if (was && !is) claim(now - goodSince >= clearAfterSeconds - ROUNDING_SECONDS, 'resolved too early');
          if (is) claim(now - goodSince < clearAfterSeconds + ROUNDING_SECONDS, 'not resolved');
        }
        if (was !== is) seen(is ? 'raised' : 'resolved');
      });
    }
  });
  for (const what of ['never seen', 'raised', 'resolved']) t.ok((counts.get(what) ?? 0) > 10, `often ${what}`);
});

t.test('an alert shows the reading and the threshold it was evaluated by', async (t) => {
  const counts = forEveryScenario((run, seen) => {
    for (const { changes, sample, rules } of run.trace) {
      for (const { metric, severity, value, threshold, resolved } of changes) {
        const { warning, critical } = rules.thresholds[metric as Metric];
        seen(severity);
        if (severity === 'ERROR') {
          claim(threshold === rules.timing.sensorTimeoutSeconds, 'not the timeout in force');
          claim(resolved || sample.readings[metric as Metric] !== null ? value === 0 : value > 0, 'not the seconds without a reading');
          continue;
        }
        claim(value === sample.readings[metric as Metric], 'not the reading');
        claim(threshold === (severity === 'CRITICAL' ? critical : warning), 'not the threshold of the severity');
      }
    }
  });
  for (const severity of ['WARNING', 'CRITICAL', 'ERROR']) t.ok((counts.get(severity) ?? 0) > 10, `often ${severity}`);
});
