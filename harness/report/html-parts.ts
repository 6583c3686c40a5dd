import type { Table } from '../engine/judgement.ts';
import { figure } from './figures.ts';
import { html, type Markup } from './markup.ts';

/** Rows of a table beyond which report.html names report.json for the others. */
const MOST_ROWS = 500;

/** A table that scrolls by itself where the page is narrow; a number stands at the right. */
export function table({ columns, rows, title }: Table, caption: string | null = title): Markup {
  if (rows.length === 0) return html`${caption === null ? null : html`<h4>${caption}</h4>`}<p class="muted">None.</p>`;
  const numeric = columns.map((_, column) => rows.every((row) => typeof row[column] !== 'string'));
  const side = (column: number): Markup => (numeric[column] ? html` class="number"` : html``);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
${caption === null ? null : html`<caption>${caption}</caption>`}
<thead><tr>${columns.map((name, column) => html`<th scope="col"${side(column)}>${name}</th>`)}</tr></thead>
<tbody>
${rows.slice(0, MOST_ROWS).map((row) => html`<tr>${columns.map((_, column) => html`<td${side(column)}>${cell(row[column] ?? null)}</td>`)}</tr>\n`)}
</tbody></table></div>
${rows.length > MOST_ROWS ? html`<p class="muted">… and ${figure(rows.length - MOST_ROWS, '')} more in report.json.</p>` : null}`;
}

function cell(value: string | number | null): string {
  return typeof value === 'string' ? value : value === null ? '–' : figure(value, '');
}

export function facts(pairs: readonly (readonly [name: string, value: string])[]): Markup {
  return html`<dl class="facts">${pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}
