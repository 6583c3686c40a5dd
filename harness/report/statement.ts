import { CRITERIA, type Judgement, REQUIRED_SECONDS, type Verdict } from '../engine/judgement.ts';
import { duration, enumeration, moment } from './figures.ts';

export interface Stated {
  readonly origin: 'watched' | 'collected';
  readonly planned_seconds: number;
  readonly watched_seconds: number;
  readonly absent_seconds: number;
  readonly finished: boolean;
  readonly begun: string;
  readonly ended: string;
}

/** Whether a run can be the 168-hour verdict: an evening's run never is, and neither is what was put together afterwards. */
export function is168HourVerdict({ origin, planned_seconds }: Pick<Stated, 'origin' | 'planned_seconds'>): boolean {
  return origin === 'watched' && planned_seconds >= REQUIRED_SECONDS;
}

/** What a report says and what it is not, in a few sentences. */
export function statement(run: Stated, judgements: readonly Judgement[], verdict: Verdict): string {
  return [what(run, verdict), outcome(run, judgements), absence(run)].filter((sentence) => sentence !== '').join(' ');
}

function what(run: Stated, verdict: Verdict): string {
  const watched = duration(run.watched_seconds);
  if (run.origin === 'collected')
    return `This report was put together afterwards from what operations collected from ${moment(run.begun)} to ${moment(run.ended)}. Nobody watched the service from outside. It is not the 168-hour verdict.`;
  if (!is168HourVerdict(run)) {
    const lasted = run.finished
      ? `This run lasted ${watched}.`
      : `This run has lasted ${watched} of the ${duration(run.planned_seconds)} planned.`;
    return `${lasted} It is not the 168-hour verdict.`;
  }
  const planned = duration(run.planned_seconds);
  if (run.finished) return `This is the verdict of a run of ${planned}: ${verdict}.`;
  return verdict === 'FAIL'
    ? `This run of ${planned} has failed after ${watched}.`
    : `This run of ${planned} has not ended: ${run.watched_seconds < 1 ? 'nothing was' : `${watched} were`} watched so far. It is not the verdict yet.`;
}

function outcome({ finished }: Stated, judgements: readonly Judgement[]): string {
  const titles = (verdict: Verdict): string[] => judgements.filter((judgement) => judgement.verdict === verdict).map(({ title }) => title);
  const failed = titles('FAIL');
  const incomplete = titles('INCOMPLETE');
  if (judgements.length === CRITERIA.length && failed.length + incomplete.length === 0) return 'All six criteria are met.';
  return [
    failed.length > 0 ? `Failed: ${enumeration(failed)}.` : `Nothing has failed${finished ? '' : ' so far'}.`,
    incomplete.length > 0 ? `Evidence is missing for ${enumeration(incomplete)}.` : '',
  ]
    .join(' ')
    .trim();
}

function absence({ absent_seconds, origin }: Stated): string {
  if (absent_seconds < 1) return '';
  return origin === 'watched'
    ? `For another ${duration(absent_seconds)} in between nobody watched; that counts neither for nor against the service.`
    : `For ${duration(absent_seconds)} nothing was collected.`;
}
