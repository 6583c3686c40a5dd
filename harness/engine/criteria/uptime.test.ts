import t from 'tap';
import { perfectEvidence, serviceRun } from '../../../testkit/weeks/perfect.ts';
import type { Evidence } from '../evidence.ts';
import { judgeUptime, observedMilliseconds, restartsOf } from './uptime.ts';

const WEEK = 604_800;
const first = serviceRun(-86_400, { cause: 'first', detail: '' });

function uptime(more: Partial<Evidence> = {}): ReturnType<typeof judgeUptime> {
  return judgeUptime(perfectEvidence(more));
}

t.test('passes after 168 h without a restart', async (t) => {
  const judgement = uptime();
  t.same([judgement.criterion, judgement.verdict, judgement.missing], ['uptime', 'PASS', []]);
  t.same(judgement.measured, { label: 'observed', value: 168, unit: 'h' });
  t.same(judgement.limit, { comparison: '>=', value: 168, unit: 'h' });
  t.equal(judgement.margin, 0);
  t.equal(judgement.summary, '168 h observed, 0 restarts of fewer than 3.');
  const reported = Object.fromEntries(judgement.evidence.map(({ label, value }) => [label, value]));
  t.same(reported, { observed: 168, planned: 168, restarts: 0, 'last seen before the end': 0, suspended: 0, 'monitoring gaps': 0 });
  t.same(
    judgement.evidence.filter(({ informative }) => informative).map(({ label }) => label),
    ['suspended', 'monitoring gaps'],
  );
  t.same(
    judgement.tables.map(({ rows }) => rows),
    [[], [], []],
  );
});

t.test('passes with two restarts and fails with three, observed or not', async (t) => {
  const runs = [first, serviceRun(1000), serviceRun(2000, { cause: 'oom-kill', detail: '' }), serviceRun(90_061, { cause: 'watchdog' })];
  const two = uptime({ runs: runs.slice(0, 3) });
  t.same([two.verdict, restartsOf(perfectEvidence({ runs: runs.slice(0, 3) }))], ['PASS', 2]);
  t.match(two.summary, '2 restarts');
  const three = uptime({ runs });
  t.equal(three.verdict, 'FAIL');
  t.same([three.measured.value, three.limit.comparison, three.limit.value, three.margin], [3, '<', 3, 0]);
  t.match(three.summary, 'restarted 3 times');
  t.same(three.missing, [], 'nothing is missing');
  t.same(three.tables[0]?.rows[2], ['1 d 01:01:01', 'start at 90061', 'watchdog', 'SIGKILL', 0, '0.1.0']);
  t.equal(uptime({ runs: [first, serviceRun(1000, { unseen: 1 })] }).verdict, 'PASS');
  const unseen = uptime({ runs: [first, serviceRun(1000, { unseen: 2 })] });
  t.same([unseen.verdict, unseen.measured.value], ['FAIL', 3]);
  t.equal(uptime({ runs: [...runs, serviceRun(100_000)] }).margin, -1);
});

t.test('fails at once with three restarts, even if evidence is missing', async (t) => {
  const runs = [first, serviceRun(1), serviceRun(2), serviceRun(3)];
  t.equal(uptime({ runs, ended: false, observed: [{ from: 0, to: 60, awakeSeconds: 60 }], lastSeenAt: 60 }).verdict, 'FAIL');
  t.equal(uptime({ runs, plannedSeconds: 600, observed: [], lastSeenAt: null }).verdict, 'FAIL');
});

t.test('the observed time is the sum of the spans, to the millisecond', async (t) => {
  const half = WEEK / 2;
  const observed = (missing: number): Evidence['observed'] => [
    { from: 0, to: half, awakeSeconds: half },
    { from: half + 500, to: WEEK + 500 - missing, awakeSeconds: half - missing },
  ];
  const at = (missing: number): Partial<Evidence> => ({ observed: observed(missing), lastSeenAt: WEEK + 500 });
  t.equal(uptime(at(0)).verdict, 'PASS');
  t.equal(uptime(at(0.0004)).verdict, 'PASS', 'clocks have milliseconds');
  const short = uptime(at(0.001));
  t.same([short.verdict, short.missing.length], ['INCOMPLETE', 1]);
  t.equal(uptime(at(1)).verdict, 'INCOMPLETE');
  t.equal(observedMilliseconds(perfectEvidence(at(1))), 604_799_000);
  t.ok((uptime(at(3600)).margin ?? 0) === -1, 'an hour is missing');
  t.match(uptime(at(3600)).missing, [/60 min of 168 h remain to be observed/]);
  t.match(uptime(at(3600)).summary, '167 h of 168 h, 0 restarts so far.');
});

t.test('is INCOMPLETE if the run was planned for less than 168 h, has not ended or never saw the service', async (t) => {
  t.match(uptime({ plannedSeconds: WEEK - 1 }), { verdict: 'INCOMPLETE', missing: [/was planned for 167 h 59 min, the test takes 168 h/] });
  t.match(uptime({ plannedSeconds: 600 }), { verdict: 'INCOMPLETE', missing: ['the run was planned for 10 min, the test takes 168 h'] });
  t.match(uptime({ plannedSeconds: WEEK * 2, ended: false }), { verdict: 'INCOMPLETE', missing: [/planned end/] });
  t.equal(uptime({ plannedSeconds: WEEK * 2 }).verdict, 'PASS');
  const unseen = uptime({ runs: [] });
  t.same([unseen.verdict, unseen.missing], ['INCOMPLETE', ['no run of the service was observed']]);
  t.equal(unseen.evidence.find(({ label }) => label === 'restarts')?.value, 0);
});

t.test('fails if the service was not seen in the last five minutes', async (t) => {
  t.equal(uptime({ lastSeenAt: WEEK - 300 }).verdict, 'PASS');
  const silent = uptime({ lastSeenAt: WEEK - 300.5 });
  t.same([silent.verdict, silent.measured.value, silent.measured.unit, silent.margin], ['FAIL', 300.5, 's', -0.5]);
  t.same(silent.limit, { comparison: '<=', value: 300, unit: 's' });
  t.match(silent.summary, 'The service was not seen');
  t.equal(uptime({ lastSeenAt: null }).verdict, 'FAIL');
  t.equal(uptime({ lastSeenAt: null, observed: [{ from: 0, to: 300, awakeSeconds: 300 }] }).verdict, 'INCOMPLETE');
});

t.test('lists monitoring gaps, suspends and clock steps', async (t) => {
  const judgement = uptime({
    monitoringGaps: [
      { from: 60, to: 120, kind: 'away' },
      { from: 86_400, to: 90_000, kind: 'off' },
      { from: 100_000, to: 100_001, kind: 'stalled' },
    ],
    suspends: [{ at: 700, seconds: 3600 }],
    clockSteps: [
      { at: 500, seconds: -60, wall: 'back' },
      { at: 900, seconds: 60, wall: 'forth' },
    ],
  });
  t.equal(judgement.verdict, 'PASS');
  t.same(judgement.tables[1]?.rows, [
    ['0 d 00:01:00', '0 d 00:02:00', 60, 'the observer was not running'],
    ['1 d 00:00:00', '1 d 01:00:00', 3600, 'the machine was off'],
    ['1 d 03:46:40', '1 d 03:46:41', 1, 'the observer was not scheduled'],
  ]);
  t.same(judgement.tables[2]?.rows, [
    ['0 d 00:08:20', 'clock set back', -60, 'back'],
    ['0 d 00:11:40', 'suspended', 3600, null],
    ['0 d 00:15:00', 'clock set forward', 60, 'forth'],
  ]);
  const reported = Object.fromEntries(judgement.evidence.map(({ label, value }) => [label, value]));
  t.same([reported['suspended'], reported['monitoring gaps']], [1, 3661 / 3600]);
});
