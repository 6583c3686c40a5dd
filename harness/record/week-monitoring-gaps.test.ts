import t from 'tap';
import { judgedShort, shortRun, slowWeek } from '../../testkit/weeks/judged.ts';
import { type Fault, week } from '../../testkit/weeks/weeks.ts';
import type { RecordEntry } from './entries.ts';

const HOUR = 3600;

t.test('duplicated and reordered statuses count once each', async (t) => {
  const faults: Fault[] = [
    { kind: 'duplicate', at: 2 * HOUR, samples: 1000 },
    { kind: 'reorder', at: 4 * HOUR, samples: 1000 },
  ];
  const { evidence, verdict } = shortRun(faults);
  t.equal(verdict, 'PASS');
  t.same([evidence.reliability.received, evidence.reliability.duplicates], [43_200, 1000]);
  t.ok(evidence.reliability.outOfOrder >= 450, `${evidence.reliability.outOfOrder} out of order`);
});

t.test('duplicated statuses do not compensate for lost ones', async (t) => {
  const lost: Fault[] = [
    { kind: 'lose', at: 2 * HOUR, samples: 432, stage: 'deliver' },
    { kind: 'duplicate', at: 4 * HOUR, samples: 432 },
  ];
  t.same(shortRun(lost).failing, ['reliability FAIL']);
});

t.test('the downtime of an observer that is killed and resumed does not affect the verdict, and is reported', async (t) => {
  const { by, evidence, failing, verdict } = shortRun([{ kind: 'kill', at: 4 * HOUR + 45, seconds: HOUR }]);
  t.same([verdict, failing], ['PASS', []]);
  t.same(evidence.monitoringGaps, [{ from: 4 * HOUR, to: 4 * HOUR + 45 + HOUR, kind: 'away' }], 'from the last entry on');
  t.equal(by.uptime.measured.value, 12, 'it was extended by the monitoring gap');
  t.same([evidence.reliability.expected, evidence.reliability.received], [43_200, 43_200]);
  t.same(by.uptime.tables[1]?.rows, [['0 d 04:00:00', '0 d 05:00:45', HOUR + 45, 'the observer was not running']]);
  t.equal(evidence.integrity.stored?.covered, 1, 'what was stored meanwhile is looked at');
});

t.test('a loss that the observer did not see does not count against the service, one that it saw does', async (t) => {
  const killed: Fault = { kind: 'kill', at: 4 * HOUR + 45, seconds: 2 * HOUR };
  const within = shortRun([killed, { kind: 'lose', at: 4 * HOUR + 45, samples: 7000, stage: 'deliver' }]);
  t.equal(within.verdict, 'PASS');
  t.equal(within.evidence.reliability.received, 43_200);
  const outside = shortRun([killed, { kind: 'lose', at: 6 * HOUR, samples: 7000, stage: 'deliver' }]);
  t.same(outside.failing, ['reliability FAIL']);
});

t.test('restarts in a monitoring gap are found and counted, whatever shows them', async (t) => {
  const restarts = [600, 1200, 1800].map((after): Fault => ({ kind: 'restart', at: 4 * HOUR + after, seconds: 5 }));
  const hidden: Fault[] = [{ kind: 'kill', at: 4 * HOUR + 45, seconds: HOUR }, ...restarts];
  for (const unseenBy of ['entry', 'count'] as const) {
    const { by, failing } = shortRun(hidden, { hertz: 0.1, unseenBy });
    t.same(failing, ['uptime FAIL'], unseenBy);
    t.same(
      by.uptime.tables[0]?.rows.map((row) => row[4]),
      [2],
      'one run was seen, two were not',
    );
  }
  t.equal(shortRun(hidden.slice(0, 3), { hertz: 0.1 }).verdict, 'PASS', 'two of them');
});

t.test('a run of the service that only a reading shows is a restart', async (t) => {
  const restarts = [2, 4, 6].map((hours): Fault => ({ kind: 'restart', at: hours * HOUR, seconds: 5 }));
  const without = (entries: Iterable<RecordEntry>): RecordEntry[] => [...entries].filter(({ type }) => type !== 'service');
  const { by, failing } = judgedShort(without(week({ hours: 12, hertz: 0.1, faults: restarts })));
  t.same(failing, ['uptime FAIL']);
  t.same(
    by.uptime.tables[0]?.rows.map((row) => row[2]),
    ['unknown', 'unknown', 'unknown'],
  );
});

t.test('a reboot is a restart and a gap of the wall clock, but not a loss', async (t) => {
  const { by, evidence, failing } = shortRun([{ kind: 'reboot', at: 4 * HOUR + 30, seconds: 120 }]);
  t.same(failing, [], 'two minutes off and ten seconds to start');
  t.same(evidence.monitoringGaps, [{ from: 4 * HOUR, to: 4 * HOUR + 170, kind: 'off' }]);
  t.same([evidence.reliability.expected, evidence.reliability.received], [43_200, 43_200]);
  t.same(
    by.uptime.tables[0]?.rows.map((row) => row[2]),
    ['reboot'],
  );
  t.equal(evidence.integrity.stored?.longestSeconds, 131);
  const long = shortRun([{ kind: 'reboot', at: 4 * HOUR + 30, seconds: 600 }]);
  t.same(long.failing, ['integrity FAIL'], 'no sample was stored while the machine was off');
  t.equal(long.by.integrity.tables[0]?.rows[0]?.[4], 'the machine was off');
});

t.test('three reboots fail', async (t) => {
  const reboots = [2, 4, 6].map((hours): Fault => ({ kind: 'reboot', at: hours * HOUR, seconds: 60 }));
  t.same(shortRun(reboots, { hertz: 0.1 }).failing, ['uptime FAIL']);
  t.equal(shortRun(reboots.slice(1), { hertz: 0.1 }).verdict, 'PASS');
});

t.test('a stall of the observer is not counted, and statuses that arrive late hide no loss', async (t) => {
  for (const lost of [false, true]) {
    const { evidence } = shortRun([{ kind: 'stall', at: 4 * HOUR + 10, seconds: HOUR, lost }]);
    t.ok(
      evidence.reliability.received >= evidence.reliability.expected - 1,
      `${lost}: ${evidence.reliability.expected - evidence.reliability.received} lost`,
    );
    t.same(
      evidence.monitoringGaps.map(({ from, kind, to }) => [kind, to - from]),
      [['stalled', HOUR]],
    );
  }
  const whole = slowWeek([{ kind: 'stall', at: 4 * HOUR + 10, seconds: HOUR }]);
  t.equal(whole.verdict, 'INCOMPLETE', 'an hour of the 168 was not observed');
  const hiding: Fault[] = [
    { kind: 'stall', at: 4 * HOUR + 10, seconds: 2 * HOUR },
    { kind: 'lose', at: 6 * HOUR, samples: 432, stage: 'deliver' },
  ];
  t.equal(shortRun(hiding).by.reliability.verdict, 'FAIL');
});

t.test('an observer that is killed before the end has not finished', async (t) => {
  t.equal(slowWeek([], { until: 604_800 - 60, killed: true }).verdict, 'INCOMPLETE');
  const finished = [...week({ hours: 12, hertz: 0.1 })];
  const cut = judgedShort(finished.slice(0, -2));
  t.same(cut.failing, ['alerts INCOMPLETE'], 'killed in the last moment: what is open at the end was not asked');
});

t.test('a service that is missing at the end has not run until the end', async (t) => {
  const { by, verdict } = shortRun([{ kind: 'die', at: 12 * HOUR - 3000 }], { hertz: 0.1 });
  t.equal(verdict, 'FAIL');
  t.equal(by.uptime.verdict, 'FAIL');
  t.equal(by.uptime.measured.label, 'last seen before the end');
});
