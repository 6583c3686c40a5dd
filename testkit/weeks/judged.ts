import type { Evidence } from '../../harness/engine/evidence.ts';
import { judge, verdictOf } from '../../harness/engine/judge.ts';
import type { Criterion, Judgement, Verdict } from '../../harness/engine/judgement.ts';
import type { RecordEntry } from '../../harness/record/entries.ts';
import { EvidenceBuilder } from '../../harness/record/evidence.ts';
import type { Fault } from './faults.ts';
import type { WeekOptions } from './week-options.ts';
import { week } from './weeks.ts';

export interface Judged {
  readonly evidence: Evidence;
  readonly verdict: Verdict;
  readonly by: Readonly<Record<Criterion, Judgement>>;
  /** Criteria that do not pass, as `uptime FAIL`, in order. */
  readonly failing: readonly string[];
}

export function judged(entries: Iterable<RecordEntry>): Judged {
  const builder = new EvidenceBuilder();
  for (const entry of entries) builder.add(entry);
  return judgedEvidence(builder.evidence());
}

export function judgedEvidence(evidence: Evidence): Judged {
  const judgements = judge(evidence);
  const by = Object.fromEntries(judgements.map((judgement) => [judgement.criterion, judgement])) as Judged['by'];
  const failing = judgements.filter(({ verdict }) => verdict !== 'PASS').map(({ criterion, verdict }) => `${criterion} ${verdict}`);
  return { evidence, verdict: verdictOf(judgements), by, failing };
}

/** A week at a tenth of the rate, for what does not depend on it: it is made in a tenth of the time. */
export function slowWeek(faults: readonly Fault[] = [], options: WeekOptions = {}): Judged {
  return judged(week({ hertz: 0.1, faults, ...options }));
}
