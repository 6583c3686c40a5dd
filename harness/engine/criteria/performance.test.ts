import t from 'tap';
import { perfectEvidence } from '../../../testkit/weeks/perfect.ts';
import type { CpuEvidence } from '../evidence.ts';
import { judgePerformance } from './performance.ts';

function performance(more: Partial<CpuEvidence> = {}): ReturnType<typeof judgePerformance> {
  return judgePerformance(perfectEvidence({ cpu: { ...perfectEvidence().cpu, ...more } }));
}

t.test('passes below 10 % and fails at 10 %', async (t) => {
  const one = performance();
  t.same([one.criterion, one.verdict, one.measured.value, one.margin, one.missing], ['performance', 'PASS', 1, 9, []]);
  t.equal(one.summary, '1 % of one core on average (CPU time of its control group).');
  t.equal(performance({ cpuSeconds: 60_479 }).verdict, 'PASS');
  const ten = performance({ cpuSeconds: 60_480 });
  t.same([ten.verdict, ten.margin, ten.missing], ['FAIL', 0, []]);
  t.equal(performance({ cpuSeconds: 0 }).verdict, 'PASS');
  t.same(
    one.evidence.map(({ value }) => value),
    [6048, 604_800, 604_800, 7],
  );
  t.same(
    one.evidence.map(({ informative }) => informative === true),
    [false, false, false, true],
  );
});

t.test('requires readings for 90 % of the observed time', async (t) => {
  t.equal(performance({ awakeSeconds: 544_320 }).verdict, 'PASS');
  const few = performance({ awakeSeconds: 544_319 });
  t.same([few.verdict, few.missing], ['INCOMPLETE', ['readings cover 151 h 11 min of 168 h, at least 90 % are needed']]);
  t.equal(performance({ awakeSeconds: 1000, cpuSeconds: 100 }).verdict, 'FAIL', 'what there is fails');
  const slept = { ...perfectEvidence(), observed: [{ from: 0, to: 604_800, awakeSeconds: 1000 }] };
  t.equal(judgePerformance({ ...slept, cpu: { ...slept.cpu, awakeSeconds: 1000, cpuSeconds: 10 } }).verdict, 'PASS', 'of the time awake');
  const twice = [0, 1].map(() => ({ from: 0, to: 1000, awakeSeconds: 1000 }));
  t.equal(judgePerformance({ ...slept, observed: twice, cpu: { ...slept.cpu, awakeSeconds: 1700 } }).verdict, 'FAIL');
  t.equal(judgePerformance({ ...slept, observed: twice, cpu: { ...slept.cpu, awakeSeconds: 1700, cpuSeconds: 1 } }).verdict, 'INCOMPLETE');
});

t.test('has no measured value without readings', async (t) => {
  const none = performance({ cpuSeconds: 0, awakeSeconds: 0 });
  t.same([none.verdict, none.measured.value, none.margin], ['INCOMPLETE', null, null]);
  t.same(none.missing, ['two readings of the CPU time of one run of the service']);
  t.match(none.summary, 'not known');
});
