import { type Judgement, marginOf, type Quantity } from '../engine/judgement.ts';

/** As the harness judges its criteria, so a soak its own. */
export type Check = Omit<Judgement, 'criterion'> & { readonly check: string };

export interface CheckParts extends Pick<Check, 'check' | 'title' | 'requirement' | 'formula' | 'limit' | 'summary'> {
  readonly measured: Quantity;
  readonly evidence?: readonly Quantity[];
  readonly tables?: Check['tables'];
  readonly missing?: readonly string[];
}

/** Judges the measured value by its limit; null is INCOMPLETE. */
export function checked({ evidence = [], limit, measured, missing = [], tables = [], ...rest }: CheckParts): Check {
  const { value } = measured;
  const margin = value === null ? null : marginOf(value, limit);
  const isMet = margin !== null && (limit.comparison.endsWith('=') ? margin >= 0 : margin > 0);
  const verdict = value === null ? 'INCOMPLETE' : isMet ? 'PASS' : 'FAIL';
  return { ...rest, verdict, measured, limit, margin, evidence, tables, missing: value === null ? missing : [] };
}
