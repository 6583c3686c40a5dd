/** What is read of Stryker's report (mutation-testing-report-schema). */
export interface MutationReport {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly Mutant[] }>>;
}

interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Mutant {
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly status: string;
  readonly statusReason?: string;
  readonly location: { readonly start: Position; readonly end: Position };
}

/** A mutant that no test noticed, looked at by a person. It is found by its text, wherever in the file that is. */
export interface Reviewed {
  readonly file: string;
  /** The code, and what stands in its place; white space counts as one blank, and what is beyond 200 characters not at all. */
  readonly original: string;
  readonly replacement: string;
  /** How many there are alike in the file; 1 where it is not said. */
  readonly count?: number;
  /** `equivalent`: it does the same; `informative`: only figures or words change that decide nothing. */
  readonly because: 'equivalent' | 'informative';
  readonly reason: string;
}

export interface Survivor {
  readonly file: string;
  readonly line: number;
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
}

const NOTICED = ['Killed', 'Timeout', 'CompileError', 'Ignored'];
const LONGEST = 200;

export function survivorsOf({ files }: MutationReport): Survivor[] {
  return Object.entries(files).flatMap(([file, { mutants, source }]) =>
    mutants
      .filter(({ status }) => !NOTICED.includes(status))
      .map(({ location, mutatorName, replacement = '', status }) => ({
        file,
        line: location.start.line,
        mutator: status === 'Survived' ? mutatorName : `${mutatorName} (${status})`,
        original: oneLine(textOf(source, location)),
        replacement: oneLine(replacement),
      })),
  );
}

function textOf(source: string, { end, start }: Mutant['location']): string {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  const last = lines.length - 1;
  return lines.map((line, index) => line.slice(index === 0 ? start.column - 1 : 0, index === last ? end.column - 1 : undefined)).join('\n');
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, LONGEST);
}

export interface Outcome {
  readonly counts: Readonly<Record<string, number>>;
  /** Survivors that nobody looked at. */
  readonly unknown: readonly Survivor[];
  /** Reviews of mutants that do not survive, or not so many of them. */
  readonly stale: readonly Reviewed[];
}

/** Holds the survivors against the reviewed ones. */
export function compare(report: MutationReport, reviewed: readonly Reviewed[]): Outcome {
  const counts: Record<string, number> = {};
  for (const { status } of Object.values(report.files).flatMap(({ mutants }) => mutants)) counts[status] = (counts[status] ?? 0) + 1;
  const left = new Map<string, Survivor[]>();
  for (const survivor of survivorsOf(report)) left.set(keyOf(survivor), [...(left.get(keyOf(survivor)) ?? []), survivor]);
  const stale = reviewed.filter((review) => {
    const alike = left.get(keyOf(review)) ?? [];
    left.delete(keyOf(review));
    return alike.length !== (review.count ?? 1);
  });
  return { counts, unknown: [...left.values()].flat(), stale };
}

function keyOf({ file, original, replacement }: Pick<Reviewed, 'file' | 'original' | 'replacement'>): string {
  return [file, original, replacement].join('\n');
}

/** A short account for people. */
export function account({ counts, stale, unknown }: Outcome, reviewed: readonly Reviewed[]): string {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const { Ignored: ignored = 0, Killed: killed = 0, Timeout: hung = 0 } = counts;
  const by = (because: Reviewed['because']): number =>
    reviewed.filter((review) => review.because === because).reduce((sum, { count = 1 }) => sum + count, 0);
  const lines = [
    '# Mutation testing of the engine',
    '',
    `${all - ignored} changes were made to the code that judges, one at a time (${ignored} more, of nothing but wording, were left out).`,
    '',
    '| outcome | mutants |',
    '|---|---|',
    `| a test failed | ${killed} |`,
    `| the tests did not end | ${hung} |`,
    `| no test noticed: reviewed, does the same | ${by('equivalent')} |`,
    `| no test noticed: reviewed, changes no verdict | ${by('informative')} |`,
    `| no test noticed | ${unknown.length} |`,
    '',
  ];
  if (reviewed.length > 0) {
    lines.push('## Reviewed', '', '| file | code | instead | why it is left |', '|---|---|---|---|');
    for (const { because, file, original, reason, replacement } of reviewed) {
      lines.push(`| ${file} | ${code(original)} | ${code(replacement)} | ${because}: ${reason} |`);
    }
    lines.push('');
  }
  for (const { file, line, mutator, original, replacement } of unknown) {
    lines.push(`- not noticed: ${file}:${line} ${mutator}: ${code(original)} → ${code(replacement)}`);
  }
  for (const { file, original, replacement } of stale)
    lines.push(`- reviewed, but not so: ${file}: ${code(original)} → ${code(replacement)}`);
  return `${lines.join('\n').trimEnd()}\n`;
}

function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|').replaceAll('`', "'")}\``;
}
