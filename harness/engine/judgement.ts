/** The criteria of the seven-day reliability test, in the order of the specification. */
export const CRITERIA = ['uptime', 'reliability', 'stability', 'alerts', 'performance', 'integrity'] as const;
export type Criterion = (typeof CRITERIA)[number];

/** Of one criterion, or of the whole test. INCOMPLETE: nothing has failed, and evidence is missing. */
export const VERDICTS = ['PASS', 'FAIL', 'INCOMPLETE'] as const;
export type TestVerdict = (typeof VERDICTS)[number];

/** What the test of the specification asks for, in seconds: 168 hours. */
export const REQUIRED_SECONDS = 604_800;

export interface Quantity {
  readonly label: string;
  /** Null: it could not be measured. */
  readonly value: number | null;
  /** Such as `%`, `s`, `MB`, `h`; empty: a count. */
  readonly unit: string;
  /** Beside it for information; decides nothing. */
  readonly informative?: true;
}

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  /** A cell for each column; null: not known. */
  readonly rows: readonly (readonly (string | number | null)[])[];
}

/** How one criterion was judged. */
export interface Judgement {
  readonly criterion: Criterion;
  /** For people: `Uptime`. */
  readonly title: string;
  readonly verdict: TestVerdict;
  /** As the specification has it. */
  readonly requirement: string;
  /** How it was computed, in words and symbols that can be followed by hand from the evidence. */
  readonly formula: string;
  /** The value that was compared. */
  readonly measured: Quantity;
  readonly limit: { readonly comparison: '<' | '<=' | '>' | '>='; readonly value: number; readonly unit: string };
  /** How far the measured value is on the right side of the limit, in the limit's unit; negative: on the wrong side. Null: not measured. */
  readonly margin: number | null;
  /** One sentence. */
  readonly summary: string;
  readonly evidence: readonly Quantity[];
  readonly tables: readonly Table[];
  /** What evidence is missing; empty unless INCOMPLETE, though a FAIL may lack some too. */
  readonly missing: readonly string[];
}

export type Limit = Judgement['limit'];

/** See Judgement.margin. */
export function marginOf(value: number, limit: Limit): number {
  return limit.comparison.startsWith('<') ? limit.value - value : value - limit.value;
}

/** FAIL outweighs INCOMPLETE, which outweighs PASS: nothing passes on missing evidence, and nothing that failed is excused by it. */
export function worst(verdicts: readonly TestVerdict[]): TestVerdict {
  if (verdicts.includes('FAIL')) return 'FAIL';
  return verdicts.length > 0 && verdicts.every((verdict) => verdict === 'PASS') ? 'PASS' : 'INCOMPLETE';
}

/** Exit codes of the harness. */
export const VERDICT_EXIT: Readonly<Record<TestVerdict, number>> = { PASS: 0, FAIL: 1, INCOMPLETE: 2 };
