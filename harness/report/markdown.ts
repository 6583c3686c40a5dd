import type { Judgement, Table } from '../engine/judgement.ts';
import type { ReportDocument } from './document.ts';
import { figure, limit, margin, measured, moment, quantity } from './figures.ts';
import { happened, periodTable, runFacts } from './overview.ts';
import { visible } from './visible.ts';

/** Rows of a table beyond which report.md names report.json for the others. */
const MOST_ROWS = 200;

/** report.md: the verdict, the six criteria and their evidence, for a pull request or a terminal. */
export function markdown(document: ReportDocument, reportDigest: string): string {
  const { judgements, made, notes, record, statement, verdict } = document;
  return [
    `# edge-health reliability report: ${verdict}`,
    `**${md(statement)}**`,
    table(
      ['Criterion', 'Verdict', 'Measured', 'Limit', 'Margin', 'In a sentence'],
      judgements.map((judgement) => [
        judgement.title,
        `**${judgement.verdict}**`,
        md(measured(judgement)),
        md(limit(judgement)),
        md(margin(judgement)),
        md(judgement.summary),
      ]),
    ),
    '## The run',
    table(
      ['', ''],
      runFacts(document).map(([name, value]) => [md(name), md(value)]),
    ),
    ...(notes.length > 0 ? ['## Notes', notes.map((note) => `- ${md(note)}`).join('\n')] : []),
    ...judgements.map(section),
    ...[periodTable(document), happened(document)].flatMap((one) => (one === null ? [] : [titled(one, '## ')])),
    '## Where this comes from',
    'Times are UTC. report.json holds the same figures, unrounded, and the values of the charts; docs/harness-report.schema.json describes it.',
    record === null
      ? 'There is no record: the figures come from files that operations collected.'
      : `Record: ${md(record.file)}, ${figure(record.entries, '')} entries, ${figure(record.bytes, 'bytes')}, last hash ${md(record.head)}.`,
    `Made: ${moment(made)}`,
    `SHA-256 of report.json: \`${reportDigest}\``,
  ]
    .join('\n\n')
    .concat('\n');
}

function section(judgement: Judgement): string {
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
    ...tables.map((one) => titled(one, '### ')),
  ].join('\n\n');
}

function titled({ columns, rows, title }: Table, heading: string): string {
  const shown = rows.slice(0, MOST_ROWS).map((row) => row.map((value) => md(cell(value))));
  const more = rows.length > MOST_ROWS ? [`… and ${figure(rows.length - MOST_ROWS, '')} more in report.json.`] : [];
  return [`${heading}${md(title)}`, rows.length === 0 ? 'None.' : table(columns.map(md), shown), ...more].join('\n\n');
}

function cell(value: string | number | null): string {
  return typeof value === 'string' ? value : value === null ? '–' : figure(value, '');
}

function list(pairs: readonly (readonly [string, string])[]): string {
  return pairs.map(([name, value]) => `- ${md(name)}: ${md(value)}`).join('\n');
}

function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Text that stays text in Markdown: no markup, no HTML, no link, no cell of its own. An underscore within a word means nothing there. */
export function md(text: string): string {
  return visible(text)
    .replaceAll(/[\\`*[\]|~$]/g, '\\$&')
    .replaceAll(/&(?=[#\w]+;)/g, '&amp;')
    .replaceAll(/<(?![ \d=])/g, '&lt;')
    .replaceAll(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, '\\_')
    .replace(/^ *(?:>|#+(?=\s|$)|[+-](?=[\s+-]|$))/, '\\$&')
    .replace(/^( *\d+)(?=[.)](?:\s|$))/, '$1\\');
}
