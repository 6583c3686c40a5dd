import type { Evidence } from '../../harness/engine/evidence.ts';
import { judge, verdictOf } from '../../harness/engine/judge.ts';
import type { Criterion, Judgement, TestVerdict } from '../../harness/engine/judgement.ts';
import type { RecordEntry } from '../../harness/record/entries.ts';
import { EvidenceBuilder } from '../../harness/record/evidence.ts';
import type { Fault } from './faults.ts';
import type { WeekOptions } from './week-options.ts';
import { week } from './weeks.ts';

export interface Judged {
  readonly evidence: Evidence;
  readonly verdict: TestVerdict;
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
  return summarised(evidence, judge(evidence));
}

function summarised(evidence: Evidence, judgements: readonly Judgement[], counting = judgements): Judged {
  const by = Object.fromEntries(judgements.map((judgement) => [judgement.criterion, judgement])) as Judged['by'];
  const failing = counting.filter(({ verdict }) => verdict !== 'PASS').map(({ criterion, verdict }) => `${criterion} ${verdict}`);
  return { evidence, verdict: verdictOf(counting), by, failing };
}

const SHORT_HOURS = 12;

/**
 * Twelve hours at 1 Hz, generated and judged in a tenth of the time of a week. `failing` and `verdict` ignore an uptime verdict that is
 * INCOMPLETE only because less than 168 hours were planned.
 */
export function shortRun(faults: readonly Fault[] = [], options: WeekOptions = {}): Judged {
  return judgedShort(week({ hours: SHORT_HOURS, faults, ...options }));
}

/** The same evaluation for the entries of a run that was planned for less than 168 hours. */
export function judgedShort(entries: Iterable<RecordEntry>): Judged {
  const { by, evidence } = judged(entries);
  const judgements = Object.values(by);
  const isTooShort = ({ criterion, missing, verdict }: Judgement): boolean =>
    criterion === 'uptime' && verdict === 'INCOMPLETE' && missing.every((what) => what.startsWith('the run was planned for'));
  return summarised(
    evidence,
    judgements,
    judgements.filter((judgement) => !isTooShort(judgement)),
  );
}

/** A week at a tenth of the sampling rate, generated in a tenth of the time, for tests that do not depend on the rate. */
export function slowWeek(faults: readonly Fault[] = [], options: WeekOptions = {}): Judged {
  return judged(week({ hertz: 0.1, faults, ...options }));
}
