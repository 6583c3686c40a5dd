import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { COVERAGE, episode, memoryOf, perfectEvidence, serviceRun } from '../../testkit/weeks/perfect.ts';
import type { Evidence } from './evidence.ts';
import { judge, verdictOf } from './judge.ts';
import type { Criterion, Judgement, TestVerdict } from './judgement.ts';
import { worst } from './judgement.ts';

const RANK: Readonly<Record<TestVerdict, number>> = { PASS: 0, INCOMPLETE: 1, FAIL: 2 };
const SECONDS = 6 * 3600;
/** Six hours are enough for criteria that do not require 168 h, and their memory is judged in far less time. */
const short: Evidence = perfectEvidence({
  observed: [{ from: 0, to: SECONDS, awakeSeconds: SECONDS }],
  memory: memoryOf(() => 60e6, SECONDS - 1),
  lastSeenAt: SECONDS,
});

function judgementOf(criterion: Criterion, more: Partial<Evidence>): Judgement {
  return judge({ ...short, ...more }).find((judgement) => judgement.criterion === criterion) as Judgement;
}

/** Checks that a criterion never improves while a number grows. */
function worsens(criterion: Criterion, number: fc.Arbitrary<number>, evidence: (value: number) => Partial<Evidence>): void {
  fc.assert(
    fc.property(number, number, (one, other) => {
      const [low, high] = [Math.min(one, other), Math.max(one, other)].map((value) => judgementOf(criterion, evidence(value))) as [
        Judgement,
        Judgement,
      ];
      return RANK[low.verdict] <= RANK[high.verdict] && (low.margin ?? 0) >= (high.margin ?? 0);
    }),
    { numRuns: runs(50, 1000), seed: SEED },
  );
}

t.test('no criterion improves with more restarts, lost intervals, CPU time, memory, gaps or open alerts', async (t) => {
  const week = perfectEvidence();
  worsens('uptime', fc.integer({ min: 3, max: 10 }), (count) => ({
    ...week,
    memory: short.memory,
    runs: Array.from({ length: count + 1 }, (_, at) => serviceRun(at - SECONDS)),
  }));
  worsens('uptime', fc.integer({ min: 0, max: 2 }), (count) => ({
    ...week,
    memory: short.memory,
    runs: Array.from({ length: count + 1 }, (_, at) => serviceRun(at - SECONDS)),
  }));
  worsens('reliability', fc.integer({ min: 0, max: SECONDS }), (lost) => ({
    reliability: { ...short.reliability, expected: SECONDS, received: SECONDS - lost },
  }));
  worsens('performance', fc.double({ min: 0, max: SECONDS, noNaN: true }), (cpuSeconds) => ({ cpu: { ...short.cpu, cpuSeconds } }));
  worsens('stability', fc.double({ min: 0, max: 60, noNaN: true }), (more) => ({
    memory: memoryOf((at) => 60e6 + (at > SECONDS / 1.5 ? more * 1e6 : 0), SECONDS - 1),
  }));
  for (const held of ['stored', 'collected'] as const) {
    worsens('integrity', fc.double({ min: 0, max: 1000, noNaN: true }), (longestSeconds) => ({
      integrity: { ...short.integrity, [held]: { ...COVERAGE, longestSeconds } },
    }));
  }
  worsens('alerts', fc.integer({ min: 0, max: 4 }), (count) => {
    const open = Array.from({ length: count }, (_, index) => episode(`${index}`, 'CRITICAL'));
    return { alerts: { ...short.alerts, openByRest: open, openByTopic: open } };
  });
  t.pass('for any two numbers');
});

const coverage = fc.option(
  fc.record({
    ...constants(COVERAGE),
    longestSeconds: fc.integer({ min: 0, max: 600 }),
    unscannedSeconds: fc.integer({ min: 0, max: 600 }),
  }),
);
const episodes = fc.option(fc.subarray([episode('a', 'WARNING'), episode('b', 'CRITICAL')]));

function constants<T extends object>(value: T): { [Key in keyof T]: fc.Arbitrary<T[Key]> } {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, fc.constant(member)])) as {
    [Key in keyof T]: fc.Arbitrary<T[Key]>;
  };
}

/** Arbitrary evidence of a week: each part may be good, bad or missing. */
const anyEvidence: fc.Arbitrary<Evidence> = fc
  .record({
    restarts: fc.integer({ min: -1, max: 4 }),
    ended: fc.boolean(),
    planned: fc.constantFrom(604_800, 604_799, 600, 1e6),
    observed: fc.constantFrom(604_800, 604_799, 604_800.001, 0),
    received: fc.option(fc.constantFrom(604_800, 604_000, 0)),
    by: fc.option(fc.constantFrom('topic' as const, 'events' as const)),
    expected: fc.integer({ min: 0, max: 1000 }),
    lost: fc.integer({ min: 0, max: 20 }),
    unobserved: fc.integer({ min: 0, max: 20 }),
    cpuSeconds: fc.integer({ min: 0, max: 120_000 }),
    awakeSeconds: fc.constantFrom(0, 1, 604_800),
    openByRest: episodes,
    openByTopic: episodes,
    stored: coverage,
    collected: coverage,
    memory: fc.constantFrom(
      short.memory,
      memoryOf((at) => 60e6 + 100 * at, SECONDS),
      memoryOf(() => 1, 0),
    ),
  })
  .map((any) => {
    const lost = Math.min(any.lost, any.expected);
    return perfectEvidence({
      plannedSeconds: any.planned,
      ended: any.ended,
      observed: any.observed === 0 ? [] : [{ from: 0, to: any.observed, awakeSeconds: any.observed }],
      lastSeenAt: any.received,
      runs: Array.from({ length: any.restarts + 1 }, (_, at) => serviceRun(at - SECONDS)),
      reliability: {
        ...short.reliability,
        by: any.by,
        expected: any.expected,
        received: any.expected - lost,
        unobserved: Math.min(any.unobserved, lost),
      },
      cpu: { ...short.cpu, cpuSeconds: any.cpuSeconds, awakeSeconds: any.awakeSeconds },
      alerts: { ...short.alerts, openByRest: any.openByRest, openByTopic: any.openByTopic },
      integrity: { stored: any.stored, collected: any.collected, reason: null },
      memory: any.memory,
    });
  });

t.test('for any evidence, a criterion that passes lacks nothing and is on the right side of its limit', async (t) => {
  fc.assert(
    fc.property(anyEvidence, (evidence) => {
      const judgements = judge(evidence);
      for (const { criterion, limit, margin, measured, missing, verdict } of judgements) {
        if ((verdict === 'INCOMPLETE') !== missing.length > 0 && verdict !== 'FAIL')
          throw new Error(`${criterion}: ${verdict}, missing ${missing}`);
        if ((measured.value === null) !== (margin === null)) throw new Error(`${criterion}: a margin of nothing`);
        if (verdict !== 'INCOMPLETE' && margin === null) throw new Error(`${criterion}: ${verdict} of nothing`);
        const strict = limit.comparison.length === 1;
        const holds = margin !== null && (strict ? margin > 0 : margin >= 0);
        if (verdict === 'PASS' && !holds) throw new Error(`${criterion}: PASS with a margin of ${margin}`);
        if (verdict === 'FAIL' && holds) throw new Error(`${criterion}: FAIL with a margin of ${margin}`);
      }
      return verdictOf(judgements) === worst(judgements.map(({ verdict }) => verdict));
    }),
    { numRuns: runs(50, 1000), seed: SEED },
  );
  t.pass('for any evidence');
});

t.test('for any evidence, dropping a part of it makes nothing pass', async (t) => {
  const drops: readonly ((evidence: Evidence) => Partial<Evidence>)[] = [
    () => ({ observed: [] }),
    () => ({ ended: false }),
    () => ({ runs: [] }),
    () => ({ lastSeenAt: null }),
    ({ reliability }) => ({ reliability: { ...reliability, by: null } }),
    ({ reliability }) => ({ reliability: { ...reliability, received: 0, unobserved: reliability.expected } }),
    () => ({ memory: { at: new Float64Array(), bytes: new Float64Array(), hostPercent: new Float64Array(), group: null } }),
    ({ cpu }) => ({ cpu: { ...cpu, cpuSeconds: 0, awakeSeconds: 0 } }),
    ({ alerts }) => ({ alerts: { ...alerts, openByRest: null } }),
    ({ alerts }) => ({ alerts: { ...alerts, openByTopic: null } }),
    ({ integrity }) => ({ integrity: { ...integrity, stored: null } }),
    ({ integrity }) => ({ integrity: { ...integrity, collected: null } }),
  ];
  fc.assert(
    fc.property(anyEvidence, fc.subarray([...drops], { minLength: 1 }), (evidence, dropped) => {
      const rest = { ...evidence };
      for (const drop of dropped) Object.assign(rest, drop(rest));
      return verdictOf(judge(rest)) !== 'PASS';
    }),
    { numRuns: runs(50, 1000), seed: SEED },
  );
  t.pass('not even what passed before');
});
