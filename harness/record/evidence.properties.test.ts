import fc from 'fast-check';
import t from 'tap';
import { isoUtc } from '../../src/core/time/time.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { type Fault, week } from '../../testkit/weeks/weeks.ts';
import { minutes, WITHOUT } from '../../testkit/weeks/without.ts';
import type { Evidence } from '../engine/evidence.ts';
import { judge, verdictOf } from '../engine/judge.ts';
import type { MinuteEntry, Received, RecordEntry } from './entries.ts';
import { EvidenceBuilder } from './evidence.ts';

const HOURS = 0.5;
const SECONDS = HOURS * 3600;
const SEVERITIES = ['WARNING', 'ERROR', 'CRITICAL'] as const;

/** Arbitrary faults within the first `seconds` of a run. Those that stop the observer or the machine do not overlap. */
function anyFaults(seconds: number, most = 6): fc.Arbitrary<Fault[]> {
  const at = fc.integer({ min: 1, max: seconds });
  const samples = fc.integer({ min: 1, max: Math.ceil(seconds / 10) });
  const short = fc.integer({ min: 1, max: Math.ceil(seconds / 10) });
  const small: fc.Arbitrary<Fault> = fc.oneof(
    fc.record({ kind: fc.constant('lose' as const), at, samples, stage: fc.constantFrom('sample', 'publish', 'deliver') }),
    fc.record({ kind: fc.constantFrom('duplicate' as const, 'reorder' as const), at, samples }),
    fc.record({ kind: fc.constant('unresponsive' as const), at, seconds: short }),
    fc.record({ kind: fc.constant('unsubscribed' as const), channel: fc.constantFrom('topic', 'events'), at, seconds: short }),
    fc.record({ kind: fc.constant('gap' as const), of: fc.constant('stored' as const), at, seconds: short }),
    fc.record({ kind: fc.constant('unscanned' as const), of: fc.constantFrom('stored', 'collected'), at, seconds: short }),
    fc.record({
      kind: fc.constant('alert' as const),
      at,
      seconds: fc.option(short),
      severity: fc.constantFrom(...SEVERITIES),
      unpublished: fc.boolean(),
    }),
  );
  const large: fc.Arbitrary<Fault> = fc.oneof(
    fc.record({ kind: fc.constantFrom('restart' as const, 'suspend' as const, 'kill' as const, 'reboot' as const), at, seconds: short }),
    fc.record({ kind: fc.constant('stall' as const), at, seconds: fc.integer({ min: 2, max: 100 }), lost: fc.boolean() }),
    fc.record({
      kind: fc.constant('step' as const),
      at,
      seconds: fc.integer({ min: -4000, max: 4000 }).filter((step) => Math.abs(step) > 1),
    }),
  );
  const apart = fc.array(large, { maxLength: 3 }).map((faults) => {
    let free = 0;
    return [...faults]
      .sort((one, other) => one.at - other.at)
      .filter((fault) => {
        if (fault.at < free) return false;
        free = fault.at + ('seconds' in fault ? Math.max(0, fault.kind === 'step' ? 0 : (fault.seconds ?? 0)) : 0) + 200;
        return true;
      });
  });
  return fc.tuple(fc.array(small, { maxLength: most }), apart).map(([few, others]) => [...few, ...others]);
}

const faults = anyFaults(SECONDS);

function entriesOf(list: readonly Fault[], hertz = 1): RecordEntry[] {
  return [...week({ hours: HOURS, hertz, faults: list })];
}

function built(entries: Iterable<RecordEntry>): EvidenceBuilder {
  const builder = new EvidenceBuilder();
  for (const entry of entries) builder.add(entry);
  return builder;
}

function stampsOf(received: Received | null): number[] {
  if (received?.first == null) return [];
  const stamps = [received.first];
  for (const step of received.steps) stamps.push((stamps.at(-1) as number) + step);
  return stamps;
}

function receivedOf(stamps: readonly number[]): Received {
  const steps = stamps.slice(1).map((stamp, index) => stamp - (stamps[index] as number));
  return { first: stamps[0] ?? null, steps, slowest_ms: 4, fastest_ms: 1 };
}

/** The same entries with other statuses on the topic. */
function arriving(
  entries: readonly RecordEntry[],
  change: (stamps: readonly number[], minute: number) => readonly number[],
): Iterable<RecordEntry> {
  let minute = 0;
  return minutes(entries, (entry) => {
    const index = minute++;
    return { ...entry, topic: entry.topic && receivedOf(change(stampsOf(entry.topic), index)) };
  });
}

/** The evidence without the counts of reordered and repeated statuses. */
function reported(evidence: Evidence): unknown {
  return JSON.stringify({ ...evidence, reliability: { ...evidence.reliability, duplicates: 0, outOfOrder: 0 } });
}

t.test('the order of arrival within a minute has no effect', async (t) => {
  fc.assert(
    fc.property(faults, fc.infiniteStream(fc.nat()), (list, random) => {
      // Where a clock was set back, only the order distinguishes two statuses with the same stamp.
      const entries = entriesOf(list.filter((fault) => fault.kind !== 'step' || fault.seconds > 0));
      const shuffled = arriving(entries, (stamps) => {
        const keyed = stamps.map((stamp) => ({ stamp, key: random.next().value as number }));
        return keyed.sort((one, other) => one.key - other.key).map(({ stamp }) => stamp);
      });
      return reported(built(shuffled).evidence()) === reported(built(entries).evidence());
    }),
    { numRuns: runs(12, 200), seed: SEED },
  );
  t.pass('for any faults');
});

t.test('statuses repeated within four minutes have no effect', async (t) => {
  fc.assert(
    fc.property(faults, fc.integer({ min: 0, max: 4 }), fc.integer({ min: 1, max: 60 }), (list, later, many) => {
      // Faults that make a minute longer would delay the repetition beyond that. Shortly after a clock was set back by some minutes, a
      // repeated status cannot be distinguished from a new one with the same stamp.
      const near = (fault: Fault): boolean => fault.kind === 'step' && fault.seconds < 0 && fault.seconds > -400;
      const entries = entriesOf(list.filter((fault) => !['stall', 'suspend', 'kill', 'reboot'].includes(fault.kind) && !near(fault)));
      const before: (readonly number[] | undefined)[] = [];
      const repeated = arriving(entries, (stamps, minute) => {
        before[minute] = stamps;
        return [...(before[minute - later] ?? []).slice(0, many), ...stamps, ...stamps.slice(0, many)];
      });
      return reported(built(repeated).evidence()) === reported(built(entries).evidence());
    }),
    { numRuns: runs(12, 200), seed: SEED },
  );
  t.pass('for any faults');
});

t.test('losing a status never raises the ratio', async (t) => {
  fc.assert(
    fc.property(faults, fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 59 }), (list, minute, which) => {
      const entries = entriesOf(list);
      const fewer = arriving(entries, (stamps, index) => (index === minute ? stamps.filter((_, place) => place !== which) : stamps));
      const [with_, without_] = [entries, fewer].map((record) => built(record).evidence().reliability) as [
        Evidence['reliability'],
        Evidence['reliability'],
      ];
      return without_.expected === with_.expected && without_.received <= with_.received && with_.received - without_.received <= 1;
    }),
    { numRuns: runs(20, 300), seed: SEED },
  );
  t.pass('for any faults');
});

t.test('for any faults, counts and shares stay within their bounds', async (t) => {
  fc.assert(
    fc.property(faults, fc.constantFrom(1, 0.5, 3), (list, hertz) => {
      const builder = built(entriesOf(list, hertz));
      const { cpu, integrity, reliability, observed } = builder.evidence();
      const { expected, lost, received, unobserved } = reliability;
      const { notDelivered, notPublished, notSampled, unknown } = lost;
      const lacking = [notSampled, notPublished, notDelivered, unknown];
      const sound =
        received >= 0 &&
        received <= expected &&
        unobserved >= 0 &&
        received + unobserved <= expected &&
        lacking.every((count) => Number.isInteger(count) && count >= 0) &&
        lacking.reduce((sum, count) => sum + count, 0) === expected - received &&
        cpu.cpuSeconds <= cpu.awakeSeconds &&
        observed.every(({ awakeSeconds, from, to }) => to > from && awakeSeconds <= to - from + 1e-6) &&
        observed.slice(1).every(({ from }, index) => from >= (observed[index]?.to ?? 0)) &&
        [integrity.stored, integrity.collected].every((coverage) => coverage === null || (coverage.covered >= 0 && coverage.covered <= 1));
      const { at, ratePercent } = builder.series();
      return (
        sound &&
        at.slice(1).every((point, index) => point > (at[index] as number)) &&
        ratePercent.every((rate) => rate === null || (rate >= 0 && rate <= 100)) &&
        judge(builder.evidence()).every(({ measured }) => measured.unit !== '%' || (measured.value ?? 0) >= 0)
      );
    }),
    { numRuns: runs(30, 500), seed: SEED },
  );
  t.pass('for any faults');
});

t.test('a service without a fault is at 100 %, whatever happens to its observer and machine', async (t) => {
  fc.assert(
    fc.property(faults, (list) => {
      const around = list.filter(
        ({ kind }) => kind === 'kill' || kind === 'suspend' || kind === 'duplicate' || kind === 'reorder' || kind === 'alert',
      );
      const { ended, reliability } = built(entriesOf(around)).evidence();
      return ended && reliability.received === reliability.expected && reliability.expected > 1000;
    }),
    { numRuns: runs(20, 300), seed: SEED },
  );
  t.pass('monitoring gaps, suspends and repetitions');
});

t.test('shifting all wall clocks changes only the labels', async (t) => {
  const shifted = (entries: readonly RecordEntry[], ms: number): RecordEntry[] =>
    entries.map((entry) => {
      const later = { ...entry, wall: entry.wall + ms };
      const iso = (stamp: string): string => isoUtc(Date.parse(stamp) + ms);
      const move = (received: Received | null): Received | null =>
        received && { ...received, first: received.first === null ? null : received.first + ms };
      switch (later.type) {
        case 'minute':
          return {
            ...later,
            topic: move(later.topic),
            events: move(later.events),
            service: later.service && { ...later.service, started: iso(later.service.started) },
          };
        case 'service':
          return { ...later, started: iso(later.started) };
        case 'alert':
          return { ...later, timestamp: iso(later.timestamp) };
        case 'coverage': {
          const at = (stamp: number | null): number | null => (stamp === null ? null : stamp + ms);
          const gaps = later.gaps.map(({ from, seconds, to }) => ({ from: from + ms, to: to + ms, seconds }));
          return { ...later, from: later.from + ms, to: later.to + ms, first: at(later.first), last: at(later.last), gaps };
        }
        default:
          return later;
      }
    });
  const figures = (entries: readonly RecordEntry[]): string => {
    const builder = built(entries);
    const judgements = judge(builder.evidence()).map(({ evidence, margin, measured, verdict }) => [verdict, measured, margin, evidence]);
    return JSON.stringify([judgements, { ...builder.series(), begunEpochSeconds: 0 }]);
  };
  fc.assert(
    fc.property(faults, fc.integer({ min: -1e12, max: 1e12 }), (list, ms) => {
      const entries = entriesOf(list);
      return figures(shifted(entries, ms)) === figures(entries);
    }),
    { numRuns: runs(12, 200), seed: SEED },
  );
  t.pass('by any time');
});

t.test('a minute written as two entries has no effect', async (t) => {
  const halves = (minute: MinuteEntry, before: RecordEntry): MinuteEntry[] => {
    const middle = (key: 'boot' | 'mono' | 'wall'): number => (before[key] + minute[key]) / 2;
    const clocks = { boot: middle('boot'), mono: middle('mono'), wall: middle('wall') };
    const part = (received: Received | null, early: boolean): Received | null =>
      received && receivedOf(stampsOf(received).filter((stamp) => stamp < clocks.wall === early));
    const { service } = minute;
    const first = service && { ...service, resident_bytes: service.resident_bytes.slice(0, 2) };
    const second = service && { ...service, resident_bytes: service.resident_bytes.slice(2) };
    return [
      { ...minute, ...clocks, topic: part(minute.topic, true), events: part(minute.events, true), service: first },
      { ...minute, topic: part(minute.topic, false), events: part(minute.events, false), service: second },
    ];
  };
  const quiet = faults.map((list) => list.filter(({ kind }) => ['lose', 'duplicate', 'alert', 'kill', 'unsubscribed'].includes(kind)));
  fc.assert(
    fc.property(quiet, fc.integer({ min: 1, max: 29 }), (list, which) => {
      const entries = entriesOf(list);
      const mine = entries.filter(({ type }) => type === 'minute')[which];
      const before = entries
        .slice(0, entries.indexOf(mine as RecordEntry))
        .findLast(({ type }) => ['minute', 'begin', 'resume'].includes(type));
      const split = entries.flatMap((entry) => (entry === mine && before !== undefined ? halves(mine as MinuteEntry, before) : [entry]));
      const [whole, parts] = [entries, split].map((record) => {
        const { cpu, lastSeenAt, memory, reliability, observed } = built(record).evidence();
        const { expected, received, unobserved } = reliability;
        return JSON.stringify([
          expected,
          received,
          unobserved,
          observed,
          [...memory.at],
          [...memory.bytes],
          cpu.cpuSeconds.toFixed(6),
          lastSeenAt,
        ]);
      });
      return split.length === entries.length + 1 && whole === parts;
    }),
    { numRuns: runs(20, 300), seed: SEED },
  );
  t.pass('any of them');
});

t.test('no record passes because evidence was dropped from it', async (t) => {
  const kinds = Object.keys(WITHOUT);
  fc.assert(
    fc.property(anyFaults(604_800, 2), fc.subarray(kinds, { minLength: 1, maxLength: 2 }), (list, dropped) => {
      let entries: Iterable<RecordEntry> = week({ hertz: 0.02, faults: list });
      for (const kind of dropped) entries = [...(WITHOUT[kind]?.(entries) ?? [])];
      return verdictOf(judge(built(entries).evidence())) !== 'PASS';
    }),
    { numRuns: runs(5, 80), seed: SEED },
  );
  t.pass('of whatever kind');
});
