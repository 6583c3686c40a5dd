import t from 'tap';
import { COVERAGE, perfectEvidence } from '../../../testkit/weeks/perfect.ts';
import type { CoverageEvidence, IntegrityEvidence } from '../evidence.ts';
import { judgeIntegrity } from './integrity.ts';

const gap = { from: 'a', to: 'b', seconds: 12.34567, excused: 'suspended', remark: 'off' };

function integrity(more: Partial<IntegrityEvidence> = {}): ReturnType<typeof judgeIntegrity> {
  return judgeIntegrity(perfectEvidence({ integrity: { ...perfectEvidence().integrity, ...more } }));
}

function coverage(more: Partial<CoverageEvidence>): CoverageEvidence {
  return { ...COVERAGE, ...more };
}

t.test('passes with gaps of up to 300 s and fails with longer ones, stored or collected', async (t) => {
  for (const held of ['stored', 'collected'] as const) {
    const longest = (longestSeconds: number): ReturnType<typeof judgeIntegrity> => integrity({ [held]: coverage({ longestSeconds }) });
    t.equal(longest(299).verdict, 'PASS');
    t.same([longest(300).verdict, longest(300).margin], ['PASS', 0]);
    const beyond = longest(300.001);
    t.same([beyond.verdict, beyond.measured.value, beyond.missing], ['FAIL', 300.001, []], held);
    t.equal(longest(301).margin, -1);
  }
  const judgement = integrity();
  t.same([judgement.criterion, judgement.measured.value, judgement.margin], ['integrity', 60, 240], 'the longer of the two');
  t.equal(judgement.summary, 'The longest gap is 60 s.');
});

t.test('requires both scans, without an unscanned part of five minutes', async (t) => {
  const one = integrity({ stored: null, reason: 'not asked' });
  t.same([one.verdict, one.missing, one.measured.value], ['INCOMPLETE', ['the stored samples: not asked'], 60]);
  t.match(one.summary, 'as far as known');
  const other = integrity({ collected: null });
  t.same([other.verdict, other.missing], ['INCOMPLETE', ['the collected rows: not scanned']]);
  const neither = integrity({ stored: null, collected: null });
  t.same([neither.verdict, neither.missing.length, neither.measured.value, neither.margin], ['INCOMPLETE', 2, null, null]);
  t.match(neither.summary, 'Neither the stored samples nor the collected rows were scanned.');
  for (const held of ['stored', 'collected'] as const) {
    t.equal(integrity({ [held]: coverage({ unscannedSeconds: 300 }) }).verdict, 'PASS');
    const blind = integrity({ [held]: coverage({ unscannedSeconds: 301 }) });
    t.same([blind.verdict, blind.missing.length], ['INCOMPLETE', 1]);
    t.match(blind.missing[0], held === 'stored' ? 'the stored samples: not scanned for 301 s' : 'the collected rows: not scanned');
  }
});

t.test('fails on a long gap even if other evidence is missing', async (t) => {
  t.equal(integrity({ stored: null, collected: coverage({ longestSeconds: 301 }) }).verdict, 'FAIL');
  t.equal(integrity({ stored: coverage({ longestSeconds: 301, unscannedSeconds: 1000 }) }).verdict, 'FAIL');
});

t.test('reports its findings as evidence', async (t) => {
  const judgement = integrity({ stored: coverage({ gaps: [gap], covered: 0.5, count: 7 }), collected: null });
  t.same(
    judgement.evidence.map(({ value }) => value),
    [7, 1, 50, null, null, null],
  );
  t.same(
    judgement.evidence.map(({ label }) => label),
    [
      'stored samples',
      'longest gap, stored samples',
      'scanned, stored samples',
      'collected rows',
      'longest gap, collected rows',
      'scanned, collected rows',
    ],
  );
  t.same(
    judgement.tables.map(({ title }) => title),
    ['Gaps in the stored samples', 'Gaps in the collected rows'],
  );
  t.same(
    judgement.tables.map(({ rows }) => rows),
    [[['a', 'b', 12.346, 'suspended', 'off']], []],
  );
});
