/** Fails on a mutant that survived and is not reviewed, and on a review of a mutant that does not survive: `check.ts MUTATION_JSON`. */
import { existsSync, readFileSync } from 'node:fs';
import { REVIEWED, type Reviewed } from './reviewed-survivors.ts';

interface Position {
  readonly line: number;
  readonly column: number;
}

/** The members of Stryker's report (mutation-testing-report-schema) that are used. */
export interface MutationReport {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly Mutant[] }>>;
}

export interface Mutant {
  readonly status: string;
  readonly replacement?: string;
  readonly location: { readonly start: Position; readonly end: Position };
}

/** A mutant that could not be run (RuntimeError, NoCoverage) was not noticed either. */
const NOTICED = ['Killed', 'Timeout', 'CompileError', 'Ignored'];

/** A message for each disagreement between the report and the reviews; none: the check holds. */
export function disagreements({ files }: MutationReport, reviewed: readonly Reviewed[]): string[] {
  const survivors = Object.entries(files).flatMap(([file, { mutants, source }]) =>
    mutants
      .filter(({ status }) => !NOTICED.includes(status))
      .map(({ location: { end, start }, replacement = '', status }) => {
        const lines = source.split('\n').slice(start.line - 1, end.line);
        lines.push((lines.pop() ?? '').slice(0, end.column - 1));
        const original = lines.join('\n').slice(start.column - 1);
        return { file, original: oneLine(original), replacement: oneLine(replacement), at: `${file}:${start.line} (${status})` };
      }),
  );
  const key = ({ file, original, replacement }: Pick<Reviewed, 'file' | 'original' | 'replacement'>): string =>
    `${file}: ${original} → ${replacement}`;
  const found = Map.groupBy(survivors, key);
  // A run with --mutate reports on some files only.
  const due = reviewed.filter(({ file }) => file in files || !existsSync(file));
  const known = new Set(due.map(key));
  return [
    ...survivors.filter((one) => !known.has(key(one))).map((one) => `${one.at}: no test notices ${one.original} → ${one.replacement}`),
    ...due
      .filter((one) => (found.get(key(one))?.length ?? 0) !== (one.count ?? 1))
      .map((one) => `reviewed ${one.count ?? 1} time(s), survived ${found.get(key(one))?.length ?? 0} time(s): ${key(one)}`),
  ];
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, 200);
}

if (import.meta.main) {
  const report = JSON.parse(readFileSync(process.argv[2] as string, 'utf8')) as MutationReport;
  const killed = Object.values(report.files).flatMap(({ mutants }) => mutants.filter(({ status }) => status === 'Killed')).length;
  const problems = disagreements(report, REVIEWED);
  if (killed === 0) problems.push('no mutant was killed: no test was run with one');
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stdout.write(`mutation: ${killed} mutants killed, ${problems.length} problems\n`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
