import t from 'tap';
import { judged, shortRun } from '../../testkit/weeks/judged.ts';
import { type Fault, week } from '../../testkit/weeks/weeks.ts';
import { judge } from '../engine/judge.ts';
import { EvidenceBuilder } from './evidence.ts';

const HOUR = 3600;

t.test('a clock step of an hour forward changes nothing but the list of clock steps', async (t) => {
  const { by, evidence, failing, verdict } = shortRun([{ kind: 'step', at: 4 * HOUR, seconds: HOUR }]);
  t.same([verdict, failing], ['PASS', []]);
  t.same([evidence.reliability.received, evidence.reliability.expected], [43_200, 43_200]);
  t.same(
    evidence.clockSteps.map(({ at, seconds }) => [Math.round(at), seconds]),
    [[4 * HOUR, HOUR]],
  );
  const gaps = evidence.integrity.stored?.gaps ?? [];
  t.same(
    gaps.map(({ excused, seconds }) => [seconds, excused]),
    [[1, 'the clock was set forward by 3600 s']],
    'the gap in the stamps is listed and explained',
  );
  t.equal(by.uptime.measured.value, 12);
});

t.test('a clock set back by an hour repeats every time stamp, and nothing is lost', async (t) => {
  const { evidence, failing, verdict } = shortRun([{ kind: 'step', at: 4 * HOUR, seconds: -HOUR }]);
  t.same([verdict, failing], ['PASS', []]);
  t.same([evidence.reliability.received, evidence.reliability.duplicates], [43_200, 0]);
  t.same([evidence.integrity.stored?.longestSeconds, evidence.integrity.stored?.unscannedSeconds], [1, 0]);
});

t.test('a clock step that is longer than the run so far does no harm', async (t) => {
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

t.test('repeated clock steps in both directions do no harm', async (t) => {
  const steps: Fault[] = [1200, -1200, -1200, 1200].map((seconds, index) => ({ kind: 'step', at: 2 * HOUR * (index + 1) + 1234, seconds }));
  const { evidence, failing } = shortRun(steps, { hertz: 0.5 });
  t.same(failing, []);
  t.equal(evidence.reliability.received, 21_600);
  t.equal(evidence.clockSteps.length, 4);
});

t.test('a gap is detected although the clock was set back, and is not explained by a step elsewhere', async (t) => {
  const steps: Fault[] = [
    { kind: 'step', at: 4 * HOUR, seconds: -HOUR },
    { kind: 'step', at: 6 * HOUR, seconds: HOUR },
  ];
  for (const at of [4 * HOUR - 301, 6 * HOUR - 301, 6 * HOUR + 1, 10 * HOUR]) {
    const { failing } = shortRun([...steps, { kind: 'gap', of: 'stored', at, seconds: 301 }]);
    t.same(failing, ['integrity FAIL'], `at ${at}`);
  }
  // Just after a clock was set back, the older samples carry the stamps that are missing now.
  const hidden = shortRun([...steps, { kind: 'gap', of: 'stored', at: 4 * HOUR + 600, seconds: 400 }]);
  t.same(hidden.failing, ['integrity INCOMPLETE']);
  t.match(hidden.by.integrity.missing, [/a gap may be hidden/]);
  const short = shortRun([...steps, { kind: 'gap', of: 'stored', at: 4 * HOUR + 600, seconds: 200 }]);
  t.same(short.failing, []);
});

t.test('a service that is down while the clock is set back may have a gap as long as its downtime', async (t) => {
  const down = (seconds: number): Fault[] => [
    { kind: 'step', at: 4 * HOUR + 100, seconds: -HOUR },
    { kind: 'restart', at: 4 * HOUR, seconds },
  ];
  const long = shortRun(down(310));
  t.same(long.failing, ['integrity INCOMPLETE'], 'older samples carry the stamps from the step on');
  t.equal(shortRun(down(200)).verdict, 'PASS');
  // Long enough for the new time to have passed the old one again.
  t.equal(shortRun(down(HOUR + 700)).by.integrity.verdict, 'FAIL');
});

t.test('a suspend is neither a gap, a loss nor a restart', async (t) => {
  const { by, evidence, failing, verdict } = shortRun([{ kind: 'suspend', at: 4 * HOUR + 30, seconds: 2 * HOUR }]);
  t.same([verdict, failing], ['PASS', []]);
  t.same([evidence.reliability.expected, evidence.reliability.received], [36_000, 36_000], 'two hours less');
  t.same(
    evidence.suspends.map(({ at, seconds }) => [Math.round(at), seconds]),
    [[4 * HOUR + 30, 2 * HOUR]],
  );
  t.match(by.integrity.tables[0]?.rows[0]?.[3], 'suspended for 7200 s');
  t.equal(by.uptime.measured.value, 12, 'the boot-time clock went on');
  t.equal(by.performance.measured.value, 1, 'of the time awake');
});

t.test('time that is missing beside a suspend is a gap', async (t) => {
  const suspend: Fault = { kind: 'suspend', at: 4 * HOUR + 30, seconds: 2 * HOUR };
  const before = shortRun([suspend, { kind: 'gap', of: 'stored', at: 4 * HOUR - 301, seconds: 301 }]);
  t.same(before.failing, ['integrity FAIL']);
  const around = shortRun([suspend, { kind: 'gap', of: 'stored', at: 4 * HOUR - 120, seconds: 2 * HOUR + 450 }]);
  t.same(around.failing, ['integrity FAIL'], 'of 7650 s, 7200 s are explained');
  t.equal(around.by.integrity.measured.value, 450);
});

t.test('the time zone and daylight saving time have no effect', async (t) => {
  const zone = process.env['TZ'];
  t.teardown(() => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  });
  // Six hours before the clocks change in America, in Europe twice, and in Lord Howe (by half an hour).
  const begins = [Date.UTC(2026, 2, 8, 1), Date.UTC(2026, 2, 28, 19), Date.UTC(2026, 9, 24, 19), Date.UTC(2026, 3, 4, 9)];
  const faults: Fault[] = [
    { kind: 'gap', of: 'stored', at: 2 * HOUR, seconds: 250 },
    { kind: 'step', at: 8 * HOUR, seconds: 100 },
  ];
  const reported = (): string =>
    JSON.stringify(
      begins.map((beginMs) => {
        const builder = new EvidenceBuilder();
        for (const entry of week({ hours: 12, hertz: 0.1, beginMs, faults })) builder.add(entry);
        return [judge(builder.evidence()), builder.series()];
      }),
    );
  process.env['TZ'] = 'UTC';
  const expected = reported();
  for (const name of ['America/New_York', 'Europe/Berlin', 'Australia/Lord_Howe', 'Pacific/Kiritimati']) {
    process.env['TZ'] = name;
    const begin = new Date(begins[1] ?? 0);
    t.not(begin.getHours(), begin.getUTCHours(), `${name} is in force`);
    t.equal(reported(), expected, name);
  }
  for (const { verdict } of begins.map((beginMs) => shortRun([], { hertz: 0.1, beginMs }))) t.equal(verdict, 'PASS');
});
