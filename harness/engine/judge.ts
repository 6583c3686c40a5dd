import { judgeAlerts } from './criteria/alerts.ts';
import { judgeIntegrity } from './criteria/integrity.ts';
import { judgePerformance } from './criteria/performance.ts';
import { judgeReliability } from './criteria/reliability.ts';
import { judgeStability } from './criteria/stability.ts';
import { judgeUptime } from './criteria/uptime.ts';
import type { Evidence } from './evidence.ts';
import { type Judgement, type TestVerdict, worst } from './judgement.ts';

/** Judges the six criteria, in the order of the specification. */
export function judge(evidence: Evidence): readonly Judgement[] {
  return [
    judgeUptime(evidence),
    judgeReliability(evidence),
    judgeStability(evidence),
    judgeAlerts(evidence),
    judgePerformance(evidence),
    judgeIntegrity(evidence),
  ];
}

/** FAIL if any criterion fails, PASS only if all pass. */
export function verdictOf(judgements: readonly Judgement[]): TestVerdict {
  return worst(judgements.map(({ verdict }) => verdict));
}
