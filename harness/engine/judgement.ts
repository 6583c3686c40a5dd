/** The criteria of the seven-day reliability test, in the order of the specification. */
export const CRITERIA = ['uptime', 'reliability', 'stability', 'alerts', 'performance', 'integrity'] as const;
export type Criterion = (typeof CRITERIA)[number];

/** The verdict of one criterion, or of the whole test. INCOMPLETE means that nothing has failed but evidence is missing. */
export const VERDICTS = ['PASS', 'FAIL', 'INCOMPLETE'] as const;
export type TestVerdict = (typeof VERDICTS)[number];

/** The duration that the specification requires, in seconds: 168 hours. */
export const REQUIRED_SECONDS = 604_800;

export interface Quantity {
  readonly label: string;
  /** Null if it could not be measured. */
  readonly value: number | null;
  /** Such as `%`, `s`, `MB`, `h`; empty for a count. */
  readonly unit: string;
  /** Set for a value that is shown for information and does not affect the verdict. */
  readonly informative?: true;
}

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  /** One cell per column; null if unknown. */
  readonly rows: readonly (readonly (string | number | null)[])[];
}

/** How one criterion was judged. */
export interface Judgement {
  readonly criterion: Criterion;
  /** Title for display: `Uptime`. */
  readonly title: string;
  readonly verdict: TestVerdict;
  /** The wording of the specification. */
  readonly requirement: string;
  /** The computation in words and symbols, so that it can be repeated by hand from the evidence. */
  readonly formula: string;
  /** The value that was compared with the limit. */
  readonly measured: Quantity;
  readonly limit: { readonly comparison: '<' | '<=' | '>' | '>='; readonly value: number; readonly unit: string };
  /**
   * Distance of the measured value from the limit, in the limit's unit: positive on the passing side, negative on the failing
   * side. Null if not measured.
   */
  readonly margin: number | null;
  /** A single sentence. */
  readonly summary: string;
  readonly evidence: readonly Quantity[];
  readonly tables: readonly Table[];
  /** Missing evidence; empty unless INCOMPLETE, although a FAIL may also list some. */
  readonly missing: readonly string[];
}

export type Limit = Judgement['limit'];

/** Computes Judgement.margin. */
export function marginOf(value: number, limit: Limit): number {
  return limit.comparison.startsWith('<') ? limit.value - value : value - limit.value;
}

/** FAIL outweighs INCOMPLETE, which outweighs PASS: missing evidence never leads to PASS, and never excuses a FAIL. */
export function worst(verdicts: readonly TestVerdict[]): TestVerdict {
  if (verdicts.includes('FAIL')) return 'FAIL';
  return verdicts.length > 0 && verdicts.every((verdict) => verdict === 'PASS') ? 'PASS' : 'INCOMPLETE';
}

/** Exit codes of the harness. */
export const VERDICT_EXIT: Readonly<Record<TestVerdict, number>> = { PASS: 0, FAIL: 1, INCOMPLETE: 2 };
