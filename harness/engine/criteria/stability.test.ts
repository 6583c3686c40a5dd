import t from 'tap';
import { memoryOf as memoryUpTo, perfectEvidence, serviceRun } from '../../../testkit/weeks/perfect.ts';
import type { Evidence } from '../evidence.ts';
import { judgeStability, mediansExpected, stabilityOf } from './stability.ts';

/**
 * A day with one reading per minute: the verdict does not depend on the length, and the number of pairs of medians grows with its square.
 */
const ALL = 86_400;
const PART = 14_400;
const memoryOf = (bytes: (at: number) => number, seconds = ALL - 1, from = 60): Evidence['memory'] => memoryUpTo(bytes, seconds, from);
const young = serviceRun(0, { cause: 'first' });

function stability(more: Partial<Evidence> = {}): ReturnType<typeof judgeStability> {
  return judgeStability(day(more));
}

function day(more: Partial<Evidence> = {}): Evidence {
  return perfectEvidence({ observed: [{ from: 0, to: ALL, awakeSeconds: ALL }], memory: memoryOf(() => 60e6), ...more });
}

/** 60 MB, and `bytes` more in the last four hours. */
function higher(bytes: number): Partial<Evidence> {
  return { memory: memoryOf((at) => (at > ALL - PART ? 60e6 + bytes : 60e6)) };
}

function reported(judgement: ReturnType<typeof judgeStability>, label: string): number | null | undefined {
  return judgement.evidence.find((quantity) => quantity.label === label)?.value;
}

t.test('passes below 10 % and fails at 10 %', async (t) => {
  const flat = stability();
  t.same([flat.criterion, flat.verdict, flat.measured.value, flat.margin, flat.missing], ['stability', 'PASS', 0, 10, []]);
  const below = stability(higher(5.99e6));
  t.equal(below.verdict, 'PASS');
  t.ok(Math.abs((below.margin ?? 0) - (10 - 599 / 60)) < 1e-9);
  const at = stability(higher(6e6));
  t.same([at.verdict, at.measured.value, at.margin, at.missing], ['FAIL', 10, 0, []]);
  t.equal(stability({ memory: memoryOf((at) => (at > ALL - PART ? 54e6 : 60e6)) }).verdict, 'FAIL', 'downwards as well');
  t.match(at.summary, '60 to 66 MB around 60 MB: 10 %.');
  t.same([reported(at, 'lowest median'), reported(at, 'highest median'), reported(at, 'median of the medians')], [60, 66, 60]);
});

t.test('ignores the first hour after each start', async (t) => {
  const warm = (until: number, start = 0): Evidence['memory'] => memoryOf((at) => (at >= start && at < start + until ? 90e6 : 60e6));
  t.equal(stability({ runs: [young], memory: warm(3600) }).verdict, 'PASS');
  t.equal(stability({ runs: [young], memory: warm(3900) }).verdict, 'FAIL');
  t.equal(stability({ memory: warm(301) }).verdict, 'FAIL', 'one that had started a day before is warm');
  const runs = [young, serviceRun(PART)];
  t.equal(stability({ runs, memory: warm(3600, PART) }).verdict, 'PASS');
  t.equal(stability({ runs: [young], memory: warm(3600, PART) }).verdict, 'FAIL');
});

t.test('a spike that is shorter than half of five minutes does not change their median', async (t) => {
  t.equal(stability({ memory: memoryOf((at) => (at % 300 < 120 ? 120e6 : 60e6)) }).verdict, 'PASS', 'two of five readings');
  t.equal(stability({ memory: memoryOf((at) => (at % 300 < 180 && at > PART && at < 2 * PART ? 120e6 : 60e6)) }).verdict, 'FAIL', 'three');
});

t.test('requires at least three medians', async (t) => {
  const short = (seconds: number, more: Partial<Evidence> = {}): Partial<Evidence> => ({
    runs: [young],
    observed: [{ from: 0, to: seconds, awakeSeconds: seconds }],
    memory: memoryOf(() => 60e6, seconds - 1),
    ...more,
  });
  t.equal(stability(short(3600 + 900)).verdict, 'PASS');
  const two = stability(short(3600 + 600));
  t.same([two.verdict, two.measured.value, two.margin], ['INCOMPLETE', null, null]);
  t.match(two.missing, ['2 five-minute medians after the warm-up of 1 h, at least 3 are needed']);
  t.match(two.summary, 'Too few readings');
  t.equal(stability(short(4200, { memory: memoryOf((at) => at * 1e6, 4199) })).verdict, 'INCOMPLETE', 'two decide nothing');
  t.equal(stability(short(4500, { memory: memoryOf((at) => at * 1e6, 4499) })).verdict, 'FAIL', 'three do');
  const none = stability(short(600));
  t.same([none.verdict, none.tables, reported(none, 'five-minute medians')], ['INCOMPLETE', [], 0]);
});

t.test('requires at least 90 % of the expected medians', async (t) => {
  // There are 288 five-minute intervals; the first reading is at 60 s.
  const from = (medians: number): Partial<Evidence> => ({
    runs: [serviceRun(-3600)],
    memory: memoryOf(() => 60e6, ALL - 1, ALL - medians * 300),
  });
  t.equal(mediansExpected(day(from(10))), 288);
  t.same(stability(from(260)).verdict, 'PASS');
  const few = stability(from(259));
  t.same([few.verdict, few.missing], ['INCOMPLETE', ['259 of 288 five-minute medians, at least 90 % are needed']]);
  t.same([reported(few, 'five-minute medians'), reported(few, 'expected medians')], [259, 288]);
  t.equal(few.measured.value, 0, 'measured by what there is');
  const memory = memoryOf((at) => (at > ALL - PART ? 66e6 : 60e6), ALL - 1, ALL - 259 * 300);
  t.equal(stability({ ...from(259), memory }).verdict, 'FAIL', 'more readings could not lower the spread');
});

t.test('exactly 90 % of the medians are enough', async (t) => {
  const observed = [{ from: 0, to: 6600, awakeSeconds: 6600 }];
  const nine = stability({ runs: [young], observed, memory: memoryOf(() => 60e6, 6299) });
  t.same([nine.verdict, reported(nine, 'five-minute medians'), reported(nine, 'expected medians')], ['PASS', 9, 10]);
  t.equal(stability({ runs: [young], observed, memory: memoryOf(() => 60e6, 5999) }).verdict, 'INCOMPLETE');
});

t.test('expects no medians for time that was not observed, suspended or warm-up', async (t) => {
  const expected = (more: Partial<Evidence>): number => mediansExpected(day({ runs: [serviceRun(-3600)], ...more }));
  t.equal(expected({ runs: [young] }), 276);
  t.equal(expected({ runs: [young, serviceRun(PART)] }), 264);
  t.equal(expected({ runs: [young, serviceRun(PART), serviceRun(PART + 1800)] }), 258, 'one that ends within its first hour');
  t.equal(expected({ runs: [] }), 0);
  t.equal(
    expected({
      observed: [
        { from: 0, to: 3000, awakeSeconds: 3000 },
        { from: 6000, to: 6299, awakeSeconds: 299 },
      ],
    }),
    10,
  );
  t.equal(
    expected({
      observed: [
        { from: 0, to: 3000, awakeSeconds: 3000 },
        { from: 6000, to: 6300, awakeSeconds: 300 },
      ],
    }),
    11,
  );
  t.equal(expected({ suspends: [{ at: 3000, seconds: 3000 }] }), 278);
  t.equal(expected({ suspends: [{ at: -3000, seconds: 6000 }] }), 278, 'only its observed part');
  t.equal(expected({ suspends: [{ at: ALL - 300, seconds: 6000 }] }), 287);
  t.equal(expected({ suspends: [{ at: ALL + 300, seconds: 6000 }] }), 288);
});

t.test('slope, forecast, control group and host are informative', async (t) => {
  const judgement = stability({ memory: memoryOf((at) => 60e6 + at) });
  t.ok(Math.abs((reported(judgement, 'slope') ?? 0) - 0.0864) < 1e-9, 'a byte a second');
  t.ok(Math.abs((reported(judgement, 'growth in 90 days') ?? 0) - 7.776) < 1e-6);
  t.same([reported(judgement, 'control group, highest'), reported(judgement, 'control group, last')], [90, 80]);
  t.ok(Math.abs((reported(judgement, 'memory of the machine, mean') ?? 0) - 41.5) < 1e-9);
  t.same(
    judgement.evidence.map(({ informative }) => informative === true),
    [...Array(5).fill(false), ...Array(5).fill(true)],
  );
  const unknown = stability({ memory: { ...memoryOf(() => 60e6), group: null, hostPercent: Float64Array.of(Number.NaN) } });
  t.same([reported(unknown, 'control group, highest'), reported(unknown, 'memory of the machine, mean')], [null, null]);
  const partly = stability({ memory: { ...memoryOf(() => 60e6), hostPercent: Float64Array.of(Number.NaN, 10, 30) } });
  t.equal(reported(partly, 'memory of the machine, mean'), 20);
  const empty = stability({ memory: { at: new Float64Array(), bytes: new Float64Array(), hostPercent: new Float64Array(), group: null } });
  t.same([reported(empty, 'slope'), reported(empty, 'growth in 90 days'), reported(empty, 'lowest median')], [null, null, null]);
  t.equal(stabilityOf(day())?.count, 288);
});

t.test('lists each run of the service that has medians', async (t) => {
  const runs = [serviceRun(-PART), serviceRun(PART), serviceRun(PART + 1800), serviceRun(2 * PART)];
  const { tables } = stability({ runs, memory: memoryOf((at) => (at < PART ? 60e6 + at : 61e6)) });
  t.same(
    tables[0]?.rows.map((row) => [row[0], row[1]]),
    [
      [`start at ${-PART}`, 48],
      [`start at ${PART + 1800}`, 30],
      [`start at ${2 * PART}`, 180],
    ],
    'one that ended within its first hour has none',
  );
  const [first] = tables[0]?.rows ?? [];
  t.same(first?.slice(2), [60.00015, 60.01422, 60.00015, 60.01422], 'lowest, highest, first and last');
});
