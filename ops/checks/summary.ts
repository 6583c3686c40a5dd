/** The wording of a run: its summary, its output lines and its log lines. */
import { worstFirst } from '../../src/core/alerts/alert.ts';
import { printable } from '../../src/core/text.ts';
import { type JobStatus, worst } from '../lib/job.ts';
import { type CheckResult, resultsFor } from './check.ts';
import { hasChanged, type PreviousRun } from './previous-run.ts';

const MAX_CHARACTERS = 400;
const MAX_NAMED = 5;

/** Worst first, and notes before other OK results; otherwise in the given order. */
export function inOrder(results: readonly CheckResult[]): CheckResult[] {
  return results.toSorted((a, b) => worstFirst(a.status, b.status) || Number(b.isNote) - Number(a.isNote));
}

/** Names and messages may come from outside: they must not start a new line or fill a screen. */
export function lineOf({ isNote, message, name, remedy, status }: CheckResult): string {
  return `${isNote ? 'NOTE' : status}  ${printable(`${name}: ${message}${remedy === null ? '' : `; ${remedy}`}`, MAX_CHARACTERS)}`;
}

/** `2 of 11 checks: disk /, container web`, or `11 checks`. */
export function summarize(results: readonly CheckResult[]): { readonly status: JobStatus; readonly summary: string } {
  const status = worst(results.map((result) => result.status));
  const names = inOrder(results).flatMap((result) => (result.status === 'OK' ? [] : [result.name]));
  const checks = results.length === 1 ? '1 check' : `${results.length} checks`;
  if (names.length === 0) return { status, summary: checks };
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return { status, summary: printable(`${names.length} of ${checks}: ${names.slice(0, MAX_NAMED).join(', ')}${more}`, MAX_CHARACTERS) };
}

/** Lines for the log: one for the run, and one for each thing whose status has changed. */
export function logLines(results: readonly CheckResult[], previous: PreviousRun | null, trigger: string): string[] {
  const { status, summary } = summarize([...results, resultsFor('history').ok('')]); // Counts `history` too, as printed.
  const changed = results.filter((result) => hasChanged(previous, result.name, result.status));
  return [`${status}  ${summary} (${trigger})`, ...changed.map((result) => `  ${lineOf(result)}`)];
}
