import type { Reviewed } from './report.ts';

/** Mutants that no test notices, and why that is right. Stale entries fail the check. */
export const REVIEWED: readonly Reviewed[] = [];
