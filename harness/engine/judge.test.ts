import t from 'tap';
import { episode, memoryOf, perfectEvidence, serviceRun } from '../../testkit/weeks/perfect.ts';
import type { Evidence } from './evidence.ts';
import { judge, verdictOf } from './judge.ts';
import { CRITERIA, marginOf, type TestVerdict, VERDICT_EXIT, worst } from './judgement.ts';

t.test('returns the six criteria in the order of the specification', async (t) => {
  const judgements = judge(perfectEvidence());
  t.same(
    judgements.map(({ criterion }) => criterion),
    CRITERIA,
  );
  t.equal(verdictOf(judgements), 'PASS');
  for (const { columns, rows } of judgements.flatMap(({ tables }) => tables)) for (const row of rows) t.equal(row.length, columns.length);
});

t.test('each criterion alone can fail the week', async (t) => {
  const perfect = perfectEvidence();
  const failing: Readonly<Record<string, Partial<Evidence>>> = {
    uptime: { runs: [0, 1, 2, 3].map((at) => serviceRun(at - 1e6)) },
    reliability: { reliability: { ...perfect.reliability, received: 1 } },
    stability: { memory: memoryOf((at) => 60e6 + 100 * at) },
    alerts: { alerts: { ...perfect.alerts, openByRest: [episode('a', 'CRITICAL')] } },
    performance: { cpu: { ...perfect.cpu, cpuSeconds: 1e6 } },
    integrity: {
      integrity: {
        ...perfect.integrity,
        stored: null,
        collected: { count: 0, covered: 1, gaps: [], longestSeconds: 1e5, unscannedSeconds: 0 },
      },
    },
  };
  for (const criterion of CRITERIA) {
    const judgements = judge(perfectEvidence(failing[criterion]));
    t.same(
      judgements.filter(({ verdict }) => verdict !== 'PASS').map((judgement) => [judgement.criterion, judgement.verdict]),
      [[criterion, 'FAIL']],
    );
    t.equal(verdictOf(judgements), 'FAIL');
  }
});

t.test('FAIL outweighs INCOMPLETE, which outweighs PASS', async (t) => {
  const cases: readonly (readonly [readonly TestVerdict[], TestVerdict])[] = [
    [['PASS', 'PASS'], 'PASS'],
    [['PASS', 'INCOMPLETE'], 'INCOMPLETE'],
    [['INCOMPLETE', 'FAIL', 'PASS'], 'FAIL'],
    [['FAIL'], 'FAIL'],
    [['INCOMPLETE'], 'INCOMPLETE'],
    [[], 'INCOMPLETE'],
  ];
  for (const [verdicts, expected] of cases) t.equal(worst(verdicts), expected, verdicts.join());
});

t.test('a margin is positive on the right side of a limit', async (t) => {
  t.equal(marginOf(9, { comparison: '<', value: 10, unit: '' }), 1);
  t.equal(marginOf(301, { comparison: '<=', value: 300, unit: '' }), -1);
  t.equal(marginOf(99.5, { comparison: '>', value: 99, unit: '' }), 0.5);
  t.equal(marginOf(167, { comparison: '>=', value: 168, unit: '' }), -1);
});

t.test('each verdict has its exit code', async (t) => {
  t.same([VERDICT_EXIT.PASS, VERDICT_EXIT.FAIL, VERDICT_EXIT.INCOMPLETE], [0, 1, 2]);
});
