import type { Judgement, Table } from '../engine/judgement.ts';
import type { ReportDocument } from './document.ts';
import { md } from './escape.ts';
import { cell, figure, limit, margin, measured, moment, quantity } from './figures.ts';
import { eventTable, periodTable, runFacts } from './tables.ts';

/** Longer tables are truncated; report.json has all rows. */
const MAX_ROWS = 200;

/** report.md: the verdict, the six criteria and their evidence, for a pull request or a terminal. */
export function markdown(document: ReportDocument, reportDigest: string): string {
  const { judgements, made, notes, record, statement, verdict } = document;
  const period = periodTable(document);
  return [
    `# edge-health reliability report: ${verdict}`,
    `**${md(statement)}**`,
    judgementTable(judgements),
    '## The run',
    table(
      ['', ''],
      runFacts(document).map(([name, value]) => [md(name), md(value)]),
    ),
    ...(notes.length > 0 ? ['## Notes', notes.map((note) => `- ${md(note)}`).join('\n')] : []),
    ...judgements.map(section),
    ...(period === null ? [] : [titledTable('##', period)]),
    titledTable('##', eventTable(document)),
    '## Source',
    'Times are UTC. report.json has the same figures, unrounded, and the values of the charts; docs/harness-report.schema.json describes it.',
    record === null
      ? 'There is no record: the figures come from collected files.'
      : `Record: ${md(record.file)}, ${figure(record.entries, '')} entries, ${figure(record.bytes, 'bytes')}, last hash ${md(record.head)}.`,
    `Written: ${moment(made)}`,
    `SHA-256 of report.json: \`${reportDigest}\``,
  ]
    .join('\n\n')
    .concat('\n');
}

/** A table with one row per judgement. */
export function judgementTable(judgements: readonly Omit<Judgement, 'criterion'>[]): string {
  return table(
    ['Criterion', 'Verdict', 'Measured', 'Limit', 'Margin', 'Summary'],
    judgements.map((judgement) => [
      md(judgement.title),
      `**${judgement.verdict}**`,
      md(measured(judgement)),
      md(limit(judgement)),
      md(margin(judgement)),
      md(judgement.summary),
    ]),
  );
}

/** Heading, formula and evidence of one judgement. */
export function section(judgement: Omit<Judgement, 'criterion'>): string {
  const { evidence, formula, missing, requirement, summary, tables, title, verdict } = judgement;
  return [
    `## ${md(title)}: ${verdict}`,
    md(summary),
    list([
      ['Requirement', requirement],
      [judgement.measured.label, `${measured(judgement)} (limit ${limit(judgement)}; ${margin(judgement)})`],
      ['Formula', formula],
    ]),
    ...(missing.length > 0 ? [list(missing.map((what) => ['Missing', what]))] : []),
    ...(evidence.length > 0
      ? [
          table(
            ['Evidence', 'Value', ''],
            evidence.map((one) => [md(one.label), md(quantity(one)), one.informative ? 'for information' : '']),
          ),
        ]
      : []),
    ...tables.map((one) => titledTable('###', one)),
  ].join('\n\n');
}

function titledTable(heading: string, { columns, rows, title }: Table): string {
  const shown = rows.slice(0, MAX_ROWS).map((row) => row.map((value) => md(cell(value))));
  const more = rows.length > MAX_ROWS ? [`… and ${figure(rows.length - MAX_ROWS, '')} more in report.json.`] : [];
  return [`${heading} ${md(title)}`, rows.length === 0 ? 'None.' : table(columns.map(md), shown), ...more].join('\n\n');
}

function list(pairs: readonly (readonly [string, string])[]): string {
  return pairs.map(([name, value]) => `- ${md(name)}: ${md(value)}`).join('\n');
}

/** The cells are Markdown. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}
