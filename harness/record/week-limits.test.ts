import t from 'tap';
import { judged, shortRun, slowWeek } from '../../testkit/weeks/judged.ts';
import { type Fault, week } from '../../testkit/weeks/weeks.ts';

const HOUR = 3600;
const DAY = 86_400;

t.test('a perfect week passes, and every status of it is counted', async (t) => {
  const { by, evidence, failing, verdict } = judged(week());
  t.equal(verdict, 'PASS');
  t.same(failing, []);
  t.same([evidence.reliability.received, evidence.reliability.expected], [604_800, 604_800]);
  t.equal(by.reliability.measured.value, 100);
  t.equal(by.uptime.margin, 0, '168 h of 168 h');
  t.same(evidence.reliability.lost, { notSampled: 0, notPublished: 0, notDelivered: 0, unknown: 0 });
});

t.test('reliability: 99 % fails, one status more passes', async (t) => {
  // Spread over the run, so that the stored samples have no gap of five minutes.
  const spread = (intervals: number, place: 'sample' | 'publish' | 'deliver'): Fault[] =>
    Array.from({ length: 8 }, (_, index) => {
      const share = Math.floor(intervals / 8) + (index < intervals % 8 ? 1 : 0);
      return { kind: 'lose', at: (index + 1) * HOUR, samples: share, stage: place };
    });
  const cases = [
    { place: 'deliver', hertz: 1, expected: 43_200 },
    { place: 'sample', hertz: 0.25, expected: 10_800 },
    { place: 'publish', hertz: 0.25, expected: 10_800 },
  ] as const;
  for (const { expected, hertz, place } of cases) {
    const most = expected / 100;
    const enough = shortRun(spread(most - 1, place), { hertz });
    t.same([enough.verdict, enough.evidence.reliability.received], ['PASS', expected - most + 1], `${place}: one less than 1 % is lost`);
    const few = shortRun(spread(most, place), { hertz });
    t.same([few.verdict, few.failing], ['FAIL', ['reliability FAIL']], `${place}: 1 % is lost`);
    const where = { sample: 'notSampled', publish: 'notPublished', deliver: 'notDelivered' } as const;
    t.equal(few.evidence.reliability.lost[where[place]], most, 'and reported as lost there');
  }
});

t.test('reliability counts the downtime of the service', async (t) => {
  // Stored samples are missing in the gap as well; this test is about the rate only.
  const { by, evidence } = shortRun([{ kind: 'restart', at: HOUR, seconds: 432 }]);
  t.equal(by.reliability.verdict, 'FAIL');
  t.equal(evidence.reliability.lost.notSampled, 432);
  t.equal(shortRun([{ kind: 'restart', at: HOUR, seconds: 431 }]).by.reliability.verdict, 'PASS');
});

t.test('uptime: two restarts pass, three fail, and each is listed with its cause', async (t) => {
  const restarts: Fault[] = [
    { kind: 'restart', at: DAY, seconds: 5, cause: 'watchdog' },
    { kind: 'restart', at: 2 * DAY, seconds: 5, cause: 'upgrade' },
    { kind: 'restart', at: 3 * DAY, seconds: 5, cause: 'signal' },
  ];
  const two = slowWeek(restarts.slice(0, 2));
  t.same([two.verdict, two.failing], ['PASS', []]);
  const three = slowWeek(restarts);
  t.same([three.verdict, three.failing], ['FAIL', ['uptime FAIL']]);
  t.same(three.by.uptime.measured, { label: 'restarts', value: 3, unit: '' });
  t.same(
    three.by.uptime.tables[0]?.rows.map((row) => row[2]),
    ['watchdog', 'upgrade', 'signal'],
  );
  const hidden = slowWeek([{ kind: 'restart', at: DAY, seconds: 5, unseen: 2 }]);
  t.same(hidden.failing, ['uptime FAIL'], 'one seen and two that only systemd counted');
});

t.test('uptime: 168 h pass, a second less is INCOMPLETE', async (t) => {
  t.equal(slowWeek([], { until: 604_799 }).verdict, 'INCOMPLETE');
  t.equal(slowWeek([], { until: 604_800 }).verdict, 'PASS');
});

t.test('stability: 9.9 % passes, 10 % fails, and only after the warm-up', async (t) => {
  const spread =
    (bytes: number) =>
    (at: number): number =>
      at > 8 * HOUR ? 60e6 + bytes : 60e6;
  t.equal(shortRun([], { hertz: 0.1, memory: spread(5.99e6) }).verdict, 'PASS');
  t.same(shortRun([], { hertz: 0.1, memory: spread(6e6) }).failing, ['stability FAIL']);
  // In a run whose start was observed the first hour does not count, but the time right after it does.
  const warm =
    (until: number) =>
    (_: number, sinceStart: number): number =>
      sinceStart < until ? 90e6 : 60e6;
  const restart: Fault[] = [{ kind: 'restart', at: 2 * HOUR, seconds: 5 }];
  t.equal(shortRun(restart, { hertz: 0.1, memory: warm(HOUR) }).verdict, 'PASS');
  t.same(shortRun(restart, { hertz: 0.1, memory: warm(HOUR + 400) }).failing, ['stability FAIL']);
});

t.test('stability: a leak of 1 MB an hour fails, and its slope is reported', async (t) => {
  const { by, failing } = shortRun([], { hertz: 0.1, memory: (at) => 60e6 + (at / HOUR) * 1e6 });
  t.same(failing, ['stability FAIL']);
  const slope = by.stability.evidence.find(({ label }) => label === 'slope')?.value ?? 0;
  t.ok(Math.abs(slope - 24) < 0.01, `${slope} MB a day`);
});

t.test('alerts: a CRITICAL alert that resolves in the last second passes, one that does not fails', async (t) => {
  const critical = (seconds: number | null): Fault[] => [{ kind: 'alert', at: 42_400, seconds, severity: 'CRITICAL' }];
  const resolved = shortRun(critical(799), { hertz: 0.1 });
  t.same([resolved.verdict, resolved.evidence.alerts.episodes.CRITICAL], ['PASS', 1]);
  t.same(shortRun(critical(null), { hertz: 0.1 }).failing, ['alerts FAIL']);
  t.same(shortRun(critical(801), { hertz: 0.1 }).failing, ['alerts FAIL'], 'resolved after the end');
  t.equal(
    shortRun([{ kind: 'alert', at: 1000, seconds: null, severity: 'WARNING' }], { hertz: 0.1 }).verdict,
    'PASS',
    'WARNING may stay open',
  );
  t.equal(shortRun([{ kind: 'alert', at: 1000, seconds: null, severity: 'ERROR' }], { hertz: 0.1 }).verdict, 'PASS');
  t.equal(
    shortRun([{ kind: 'alert', at: -1000, seconds: null, severity: 'WARNING' }], { hertz: 0.1 }).verdict,
    'PASS',
    'open before the run began',
  );
});

t.test('alerts: the topic and /alerts must agree', async (t) => {
  const silent: Fault[] = [{ kind: 'alert', at: 1000, seconds: null, severity: 'WARNING', unpublished: true }];
  t.same(shortRun(silent, { hertz: 0.1 }).failing, ['alerts INCOMPLETE']);
});

t.test('performance: 9.99 % passes, 10 % fails', async (t) => {
  t.equal(shortRun([], { hertz: 0.1, cpuShare: 0.0999 }).verdict, 'PASS');
  t.same(shortRun([], { hertz: 0.1, cpuShare: 0.1 }).failing, ['performance FAIL']);
});

t.test('integrity: gaps of 299 s and 300 s pass, 301 s fails, stored or collected', async (t) => {
  for (const held of ['stored', 'collected'] as const) {
    const gap = (seconds: number): Fault[] => [{ kind: 'gap', of: held, at: 6 * HOUR, seconds }];
    for (const seconds of [299, 300]) {
      const { by, verdict } = shortRun(gap(seconds));
      t.same([verdict, by.integrity.measured.value], ['PASS', seconds], `${held}: ${seconds} s`);
    }
    const { by, failing } = shortRun(gap(301));
    t.same([failing, by.integrity.measured.value, by.integrity.margin], [['integrity FAIL'], 301, -1], held);
    const table = by.integrity.tables[held === 'stored' ? 0 : 1];
    t.same(
      table?.rows.map((row) => row[2]),
      [301],
      'and is listed',
    );
  }
});

t.test('a gap across two scans is one gap', async (t) => {
  const { by } = shortRun([{ kind: 'gap', of: 'stored', at: 10 * HOUR - 150, seconds: 301 }]);
  t.same([by.integrity.verdict, by.integrity.measured.value], ['FAIL', 301]);
});

t.test('gaps at the start and at the end of the run count', async (t) => {
  const begin = shortRun([{ kind: 'gap', of: 'stored', at: -5, seconds: 400 }], { hertz: 0.1 });
  t.same(begin.failing, ['integrity FAIL']);
  const end = shortRun([{ kind: 'gap', of: 'stored', at: 42_800, seconds: 600 }], { hertz: 0.1 });
  t.same(end.failing, ['integrity FAIL']);
});

t.test('shorter runs never pass, whatever their evidence', async (t) => {
  for (const hours of [1 / 6, 2, 167.9]) {
    const { by, verdict } = judged(week({ hours, hertz: hours > 100 ? 0.1 : 1 }));
    t.equal(verdict, 'INCOMPLETE', `${hours} h`);
    t.equal(by.uptime.verdict, 'INCOMPLETE');
    t.same([by.reliability.verdict, by.performance.verdict, by.alerts.verdict, by.integrity.verdict], ['PASS', 'PASS', 'PASS', 'PASS']);
    t.equal(by.reliability.measured.value, 100);
  }
  const { by, verdict } = judged(week({ hours: 1 / 6, faults: [{ kind: 'lose', at: 60, samples: 100, stage: 'deliver' }] }));
  t.same([verdict, by.uptime.verdict, by.reliability.verdict], ['FAIL', 'INCOMPLETE', 'FAIL']);
  t.match(by.uptime.missing, ['the run was planned for 10 min, the test takes 168 h']);
});
