import t from 'tap';
import { judged, slowWeek } from '../../testkit/weeks/judged.ts';
import { type Fault, week } from '../../testkit/weeks/weeks.ts';
import { judge } from '../engine/judge.ts';
import { EvidenceBuilder } from './evidence.ts';

const HOUR = 3600;
const DAY = 86_400;

t.test('a clock that jumps an hour forwards changes nothing but what is told of it', async (t) => {
  const { by, evidence, failing, verdict } = judged(week({ faults: [{ kind: 'step', at: 2 * DAY, seconds: HOUR }] }));
  t.same([verdict, failing], ['PASS', []]);
  t.same([evidence.reliability.received, evidence.reliability.expected], [604_800, 604_800]);
  t.same(
    evidence.clockSteps.map(({ at, seconds }) => [Math.round(at), seconds]),
    [[2 * DAY, HOUR]],
  );
  const gaps = evidence.integrity.stored?.gaps ?? [];
  t.same(
    gaps.map(({ excused, seconds }) => [seconds, excused]),
    [[1, 'the clock was put forward by 3600 s']],
    'the gap in the stamps is listed and explained',
  );
  t.equal(by.uptime.measured.value, 168);
});

t.test('a clock put back by an hour repeats every time stamp, and nothing is lost', async (t) => {
  const { evidence, failing, verdict } = judged(week({ faults: [{ kind: 'step', at: 2 * DAY, seconds: -HOUR }] }));
  t.same([verdict, failing], ['PASS', []]);
  t.same([evidence.reliability.received, evidence.reliability.duplicates], [604_800, 0]);
  t.same([evidence.integrity.stored?.longestSeconds, evidence.integrity.stored?.blindSeconds], [1, 0]);
});

t.test('in a run that is younger than the step', async (t) => {
  for (const seconds of [HOUR, -HOUR]) {
    const { by } = judged(week({ hours: 2.5, faults: [{ kind: 'step', at: 905, seconds }] }));
    t.same([by.reliability.measured.value, by.integrity.verdict, by.integrity.measured.value], [100, 'PASS', 60], `${seconds} s`);
  }
  const there: Fault[] = [
    { kind: 'step', at: 905, seconds: -HOUR },
    { kind: 'step', at: 1805, seconds: HOUR },
  ];
  t.equal(judged(week({ hours: 2.5, faults: there })).by.integrity.verdict, 'PASS', 'and back again');
});

t.test('both ways, more than once', async (t) => {
  const steps: Fault[] = [HOUR, -HOUR, -HOUR, HOUR].map((seconds, index) => ({ kind: 'step', at: (index + 1) * DAY + 1234, seconds }));
  const { evidence, failing } = judged(week({ hertz: 0.5, faults: steps }));
  t.same(failing, []);
  t.equal(evidence.reliability.received, 302_400);
  t.equal(evidence.clockSteps.length, 4);
});

t.test('a gap is seen though the clock was put back, and is not explained by a step elsewhere', async (t) => {
  const steps: Fault[] = [
    { kind: 'step', at: 2 * DAY, seconds: -HOUR },
    { kind: 'step', at: 3 * DAY, seconds: HOUR },
  ];
  for (const at of [2 * DAY - 301, 3 * DAY - 301, 3 * DAY + 1, 5 * DAY]) {
    const { failing } = judged(week({ hertz: 1, faults: [...steps, { kind: 'gap', of: 'stored', at, seconds: 301 }] }));
    t.same(failing, ['integrity FAIL'], `at ${at}`);
  }
  // Just after a clock was put back the older samples carry the stamps that are missing now.
  const hidden = judged(week({ faults: [...steps, { kind: 'gap', of: 'stored', at: 2 * DAY + 600, seconds: 400 }] }));
  t.same(hidden.failing, ['integrity INCOMPLETE']);
  t.match(hidden.by.integrity.missing, [/a gap might be/]);
  const short = judged(week({ faults: [...steps, { kind: 'gap', of: 'stored', at: 2 * DAY + 600, seconds: 200 }] }));
  t.same(short.failing, []);
});

t.test('a service that is down while the clock is put back may have a gap as long as it was down', async (t) => {
  const down = (seconds: number): Fault[] => [
    { kind: 'step', at: 2 * DAY + 100, seconds: -HOUR },
    { kind: 'restart', at: 2 * DAY, seconds },
  ];
  const long = judged(week({ faults: down(310) }));
  t.same(long.failing, ['integrity INCOMPLETE'], 'older samples carry the stamps from the step on');
  t.equal(judged(week({ faults: down(200) })).verdict, 'PASS');
  // Long enough for the new time to have passed the old one again.
  t.equal(judged(week({ faults: down(HOUR + 700) })).by.integrity.verdict, 'FAIL');
});

t.test('a suspend is no gap, no loss and no restart', async (t) => {
  const { by, evidence, failing, verdict } = judged(week({ faults: [{ kind: 'suspend', at: 2 * DAY + 30, seconds: 2 * HOUR }] }));
  t.same([verdict, failing], ['PASS', []]);
  t.same([evidence.reliability.expected, evidence.reliability.received], [597_600, 597_600], 'two hours less');
  t.same(
    evidence.suspends.map(({ at, seconds }) => [Math.round(at), seconds]),
    [[2 * DAY + 30, 2 * HOUR]],
  );
  t.match(by.integrity.tables[0]?.rows[0]?.[3], 'suspended for 7200 s');
  t.equal(by.uptime.measured.value, 168, 'the boot-time clock went on');
  t.equal(by.performance.measured.value, 1, 'of the time awake');
});

t.test('what lacks beside a suspend is a gap', async (t) => {
  const suspend: Fault = { kind: 'suspend', at: 2 * DAY + 30, seconds: 2 * HOUR };
  const before = judged(week({ faults: [suspend, { kind: 'gap', of: 'stored', at: 2 * DAY - 301, seconds: 301 }] }));
  t.same(before.failing, ['integrity FAIL']);
  const around = judged(week({ faults: [suspend, { kind: 'gap', of: 'stored', at: 2 * DAY - 120, seconds: 2 * HOUR + 450 }] }));
  t.same(around.failing, ['integrity FAIL'], 'of 7650 s, 7200 s are explained');
  t.equal(around.by.integrity.measured.value, 450);
});

t.test('neither the time zone nor its summer time plays a part', async (t) => {
  const zone = process.env['TZ'];
  t.teardown(() => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  });
  // Weeks over the change of clocks in America, in Europe twice, and in Lord Howe (by half an hour).
  const begins = [Date.UTC(2026, 2, 4), Date.UTC(2026, 2, 26), Date.UTC(2026, 9, 21), Date.UTC(2026, 3, 1)];
  const faults: Fault[] = [
    { kind: 'gap', of: 'stored', at: DAY, seconds: 250 },
    { kind: 'step', at: 3 * DAY, seconds: 100 },
  ];
  const told = (): string =>
    JSON.stringify(
      begins.map((beginMs) => {
        const builder = new EvidenceBuilder();
        for (const entry of week({ hertz: 0.1, beginMs, faults })) builder.add(entry);
        return [judge(builder.evidence()), builder.series()];
      }),
    );
  process.env['TZ'] = 'UTC';
  const expected = told();
  for (const name of ['America/New_York', 'Europe/Berlin', 'Australia/Lord_Howe', 'Pacific/Kiritimati']) {
    process.env['TZ'] = name;
    t.not(new Date(begins[1] ?? 0).getHours(), 0, `${name} is in force`);
    t.equal(told(), expected, name);
  }
  for (const { verdict } of begins.map((beginMs) => slowWeek([], { beginMs }))) t.equal(verdict, 'PASS');
});
