import fc from 'fast-check';
import t from 'tap';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time/time.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { DISTANCE_MS, decide, EMPTY_PLAN, type Line, NOTIFICATIONS_AN_HOUR, openAsNotified, type Plan, type Rules, taken } from './plan.ts';
import { type Change, type Level, weight } from './subject.ts';

fc.configureGlobal({ seed: SEED });

const START_MS = Date.parse('2026-03-01T00:00:00Z');

interface Happening {
  readonly afterMs: number;
  readonly metric: string;
  readonly level: Level;
}

const happening: fc.Arbitrary<Happening> = fc.record({
  afterMs: fc.oneof(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 20 * MINUTE_MS })),
  metric: fc.constantFrom('cpu', 'disk', 'memory'),
  level: fc.constantFrom<Level>(null, null, 'WARNING', 'CRITICAL', 'ERROR'),
});
const severity = fc.constantFrom('WARNING' as const, 'ERROR' as const, 'CRITICAL' as const);
/** Quiet from an hour of the day on, for some hours. */
const quiet = fc.record({ from: fc.integer({ min: 0, max: 23 }), hours: fc.integer({ min: 0, max: 12 }) });
const rulesOf = fc
  .record({ min: severity, group: fc.constantFrom(0, 30_000, 600_000), repeat: fc.constantFrom(0, 4 * HOUR_MS), quiet, quietMin: severity })
  .map(
    (given): Rules => ({
      minSeverity: given.min,
      failedJobs: true,
      groupMs: given.group,
      repeatMs: given.repeat,
      quietMinSeverity: given.quietMin,
      quietUntil: (ms) => {
        const begin = ms - (((ms % DAY_MS) + DAY_MS - given.quiet.from * HOUR_MS) % DAY_MS);
        const end = begin + given.quiet.hours * HOUR_MS;
        return ms < end ? end : null;
      },
    }),
  );

interface Sent {
  readonly ms: number;
  readonly lines: readonly Line[];
}

/** Applies the events, and decides whenever the plan scheduled it; `restore` replaces the plan before each decision. */
function simulate(rules: Rules, happenings: readonly Happening[], restore: (plan: Plan) => Plan = (plan) => plan) {
  let plan = EMPTY_PLAN;
  let nowMs = START_MS;
  let episode = 0;
  const sent: Sent[] = [];
  const current = new Map<string, Change>();
  const step = (ms: number): number | null => {
    const decision = decide(restore(plan), rules, ms);
    plan = decision.plan;
    if (decision.lines) sent.push({ ms, lines: decision.lines });
    return decision.nextMs;
  };
  const passTo = (ms: number): void => {
    for (let next = step(nowMs); next !== null && next <= ms; next = step(nowMs)) nowMs = Math.max(next, nowMs + 1);
    nowMs = ms;
  };
  for (const { afterMs, level, metric } of happenings) {
    passTo(nowMs + afterMs);
    const before = current.get(metric)?.level ?? null;
    if (before === null && level !== null) episode += 1;
    const id = before === null ? `n/${metric}/${episode}` : (current.get(metric)?.id ?? '');
    const at = new Date(nowMs).toISOString();
    const change: Change = {
      key: metric,
      source: 'alert',
      id,
      node: 'n',
      metric,
      level,
      at,
      value: 1,
      threshold: 1,
      lines: [],
      findings: [],
    };
    current.set(metric, change);
    plan = taken(plan, change, nowMs);
  }
  passTo(nowMs + 3 * DAY_MS);
  return { plan, sent, current, episodes: episode };
}

const RUNS = { numRuns: runs(60, 2000), seed: SEED };

t.test('in the end receivers have been notified of what is open, and nothing is pending', async () => {
  fc.assert(
    fc.property(rulesOf, fc.array(happening, { maxLength: 60 }), (rules, happenings) => {
      const { current, plan } = simulate(rules, happenings);
      const known = new Set(openAsNotified(plan).map(({ metric, notified }) => `${metric} ${notified}`));
      const real = [...current.values()].filter(({ level }) => level !== null && weight(level) >= weight(rules.minSeverity));
      for (const { level, metric } of real) if (!known.has(`${metric} ${level}`)) return false;
      return known.size === real.length && Object.values(plan.subjects).every(({ pending }) => pending === null);
    }),
    RUNS,
  );
});

t.test('no hour has more notifications than the limit', async () => {
  const bound = NOTIFICATIONS_AN_HOUR + HOUR_MS / DISTANCE_MS;
  fc.assert(
    fc.property(rulesOf, fc.array(happening, { minLength: 60, maxLength: 200 }), (rules, happenings) => {
      const { sent } = simulate(rules, happenings);
      return sent.every(({ ms }) => sent.filter((other) => other.ms >= ms && other.ms < ms + HOUR_MS).length <= bound);
    }),
    { numRuns: runs(20, 500), seed: SEED },
  );
});

t.test('only alerts notified as open are notified as resolved, in order; every visible episode is counted once', async () => {
  fc.assert(
    fc.property(rulesOf, fc.array(happening, { maxLength: 60 }), (rules, happenings) => {
      const open = new Set<string>();
      const all = rules.minSeverity === 'WARNING';
      const { episodes, sent } = simulate(rules, happenings);
      let counted = 0;
      for (const { subject, state, episodes: count } of sent.flatMap(({ lines }) => lines)) {
        counted += count;
        if (state === 'raised' && open.has(subject.metric)) return false;
        if ((state === 'resolved' || state === 'changed') && !open.has(subject.metric)) return false;
        if (state === 'passed' && open.has(subject.metric)) return false;
        if (state === 'raised') open.add(subject.metric);
        if (state === 'resolved' || (state === 'changed' && weight(subject.level) < weight(rules.minSeverity))) open.delete(subject.metric);
      }
      return !all || counted === episodes;
    }),
    RUNS,
  );
});

t.test('in quiet hours only severe updates are notified', async () => {
  fc.assert(
    fc.property(rulesOf, fc.array(happening, { maxLength: 60 }), (rules, happenings) =>
      simulate(rules, happenings).sent.every(
        ({ lines, ms }) => rules.quietUntil(ms) === null || lines.every((line) => weight(line.severity) >= weight(rules.quietMinSeverity)),
      ),
    ),
    RUNS,
  );
});

t.test('a plan that was saved and loaded makes the same decisions', async () => {
  fc.assert(
    fc.property(rulesOf, fc.array(happening, { maxLength: 40 }), (rules, happenings) => {
      const there = simulate(rules, happenings);
      const again = simulate(rules, happenings, (plan) => JSON.parse(JSON.stringify(plan)) as Plan);
      return JSON.stringify(there.sent) === JSON.stringify(again.sent);
    }),
    { numRuns: runs(20, 500), seed: SEED },
  );
});

t.test('clock jumps lose nothing', async () => {
  fc.assert(
    fc.property(rulesOf, fc.integer({ min: -1000, max: 1000 }), (rules, days) => {
      const change: Change = {
        key: 'k',
        source: 'alert',
        id: 'i',
        node: 'n',
        metric: 'cpu',
        level: 'CRITICAL',
        at: '',
        value: 1,
        threshold: 1,
        lines: [],
        findings: [],
      };
      let nowMs = START_MS;
      let plan = taken(EMPTY_PLAN, change, nowMs);
      nowMs += days * DAY_MS;
      for (let i = 0; i < 20; i++) {
        const { lines, nextMs, plan: after } = decide(plan, rules, nowMs);
        if (lines) return true;
        plan = after;
        if (nextMs === null) return false;
        nowMs = Math.max(nextMs, nowMs + 1);
      }
      return false;
    }),
    RUNS,
  );
});
