import { createHash } from 'node:crypto';
import type { Judgement, Table, TestVerdict } from '../engine/judgement.ts';
import type { ReportDocument } from './document.ts';
import { data, Markup, markup, type Piece } from './escape.ts';
import { cell, figure, limit, margin, measured, moment, quantity } from './figures.ts';
import { eventTable, periodTable, runFacts } from './tables.ts';

/** Script and style sheet of report.html, bundled from page/. */
export interface PageAssets {
  readonly script: string;
  readonly style: string;
}

/** Longer tables are truncated; report.json has all rows. */
const MAX_ROWS = 500;

/**
 * report.html is a single file that loads nothing. Its content security policy allows only this style sheet and this script, by their
 * hashes. All figures are readable without the script, which only draws the charts.
 */
export function page(document: ReportDocument, reportDigest: string, { script, style }: PageAssets): string {
  const { judgements, run, verdict } = document;
  const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = `default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; img-src data:; base-uri 'none'; form-action 'none'`;
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${new Markup(policy)}">
<meta name="report-json-sha256" content="${reportDigest}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${verdict} · reliability of ${run.node_name} · edge-health</title>
<link rel="icon" href="${TAB_ICONS[verdict]}">
<style>${new Markup(style)}</style>
</head>
<body>
<header class="top"><h1>Reliability report</h1><p>${run.node_name} · ${moment(run.begun)} to ${moment(run.ended)}</p></header>
<main>
${verdictBanner(document)}
<section aria-labelledby="criteria"><h2 id="criteria">The six criteria</h2>
${judgements.length === 0 ? markup`<p class="card">No criterion was judged.</p>` : markup`<div class="criteria">${judgements.map(criterion)}</div>`}
</section>
${document.notes.length === 0 ? null : markup`<section class="card" aria-labelledby="notes"><h2 id="notes">Notes</h2>${bullets(document.notes)}</section>`}
${charts(document, script !== '')}
<section aria-labelledby="run"><h2 id="run">The run</h2>
<div class="card">${facts(runFacts(document))}</div>
</section>
</main>
<footer>${footer(document, reportDigest)}</footer>
<script type="application/json" id="series">${data(document.series)}</script>
<script>${new Markup(script)}</script>
</body>
</html>
`.text;
}

function verdictBanner({ is_168_hour_verdict, statement, verdict }: ReportDocument): Markup {
  return markup`<section class="hero ${verdict.toLowerCase()}" aria-label="Verdict">
${VERDICT_ICONS[verdict]}
<p class="word">${verdict}</p>
${is_168_hour_verdict ? null : markup`<p class="badge">Not the 168-hour verdict</p>`}
<p class="sentence">${statement}</p>
</section>`;
}

/** Renders a criterion: the measured value and its limit, then formula and evidence, collapsed. */
function criterion(judgement: Judgement): Markup {
  const { criterion: name, evidence, missing, requirement, summary, tables, title, verdict } = judgement;
  const quantities = evidence.map(
    (one) => [one.informative ? markup`${one.label} <span class="muted">(for information)</span>` : one.label, quantity(one)] as const,
  );
  return markup`<article class="criterion card ${verdict.toLowerCase()}" id="criterion-${name}">
<div class="name"><h3>${title}</h3><p class="muted">${requirement}</p></div>
<p class="verdict ${verdict.toLowerCase()}">${VERDICT_ICONS[verdict]}${verdict}</p>
<dl class="figures">
<div><dt>${judgement.measured.label}</dt><dd class="amount">${measured(judgement)}</dd></div>
<div><dt>Limit</dt><dd>${limit(judgement)}</dd></div>
<div class="margin"><dt>Margin</dt><dd>${margin(judgement)}${bar(judgement)}</dd></div>
</dl>
<p class="summary">${summary}</p>
<details><summary>Formula and evidence<span class="hidden"> of ${title}</span></summary>
<div class="inside">
<h4>Formula</h4><p class="formula">${judgement.formula}</p>
${missing.length === 0 ? null : markup`<h4>Missing evidence</h4>${bullets(missing)}`}
${quantities.length === 0 ? null : markup`<h4>Evidence</h4>${facts(quantities)}`}
${tables.map((one) => table(one, true))}
</div>
</details>
</article>
`;
}

interface MarginBar {
  /** Position of the measured value from the left end, 0 to 100. */
  readonly measured: number;
  /** Position of the limit from the left end, 0 to 100. */
  readonly limit: number;
  /** The side on which values pass. */
  readonly goodSide: 'left' | 'right';
}

/**
 * The bar of a criterion. If lower is better, the limit is at three quarters. If higher is better, the bar ends 10 % beyond the limit
 * and starts at 0, or close below a limit near 100 %, because 98 and 99.9 % would look the same. Values outside the bar are shown at its
 * end. Null if not measured.
 */
export function marginBar({ limit, measured: { unit, value } }: Pick<Judgement, 'limit' | 'measured'>): MarginBar | null {
  if (value === null || !Number.isFinite(value) || unit !== limit.unit) return null;
  const isLess = limit.comparison.startsWith('<');
  const isNearAll = !isLess && unit === '%' && limit.value >= 90 && limit.value < 100;
  const from = isNearAll ? 100 - 4 * (100 - limit.value) : 0;
  const to = isNearAll ? 100 : (isLess ? limit.value / 0.75 : limit.value * 1.1) || 1;
  const position = (of: number): number => Math.round(Math.min(100, Math.max(0, ((of - from) / (to - from)) * 100)) * 100) / 100;
  return { measured: position(value), limit: position(limit.value), goodSide: isLess ? 'left' : 'right' };
}

/** Uses presentation attributes, because the page's policy allows no style attributes. */
function bar(judgement: Judgement): Piece {
  const positions = marginBar(judgement);
  if (positions === null) return null;
  const { goodSide, limit: at, measured: to } = positions;
  const [badFrom, badWidth] = goodSide === 'left' ? [at, 100 - at] : [0, at];
  return markup`<svg class="bar" width="100%" height="18" aria-hidden="true" focusable="false">
<rect class="track" x="0" y="5" width="100%" height="8" rx="4"/>
<rect class="beyond" x="${badFrom}%" y="5" width="${badWidth}%" height="8" rx="4"/>
<rect class="value" x="0" y="5" width="${Math.max(to, 0.8)}%" height="8" rx="4"/>
<line class="limit" x1="${at}%" x2="${at}%" y1="0" y2="18"/>
</svg>`;
}

function charts(document: ReportDocument, hasScript: boolean): Markup {
  const period = periodTable(document);
  const events = eventTable(document);
  return markup`<section aria-labelledby="charts"><h2 id="charts">The run over time</h2>
${chartArea(period !== null, hasScript)}
${period === null ? null : markup`<details class="card figures"><summary>${period.title}</summary>${table(period, false)}</details>`}
<details class="card figures"><summary>${events.title} (${figure(events.rows.length, '')})</summary>${table(events, false)}</details>
</section>`;
}

/** The script fills this element. */
function chartArea(hasData: boolean, hasScript: boolean): Markup {
  if (!hasScript) return markup`<p class="card">The charts are missing: this installation lacks the program that draws them.</p>`;
  if (!hasData) return markup`<p class="card">There is nothing to draw: no minute was recorded.</p>`;
  return markup`<noscript><p class="card">The charts need JavaScript; the tables below and above do not.</p></noscript>
<div id="chart" class="card" hidden></div>`;
}

function footer({ made, record }: ReportDocument, digest: string): Markup {
  return markup`<p>All times are UTC. report.json has the same figures, unrounded, and the values of the charts.</p>
<dl>
<div><dt>Report written</dt><dd>${moment(made)}</dd></div>
${
  record === null
    ? markup`<div><dt>Record</dt><dd>none: from collected files</dd></div>`
    : markup`<div><dt>Record</dt><dd>${record.file}, ${figure(record.entries, '')} entries, ${figure(record.bytes, 'bytes')}</dd></div>
<div><dt>Its last hash</dt><dd class="hash">${record.head}</dd></div>`
}
<div><dt>SHA-256 of report.json</dt><dd class="hash">${digest}</dd></div>
</dl>
<p>To check that nothing was changed: <code>edge-health harness verify</code> with the folder of this file.</p>`;
}

/** A table that scrolls separately on a narrow page; columns of numbers are right-aligned. */
function table({ columns, rows, title }: Table, hasCaption: boolean): Markup {
  if (rows.length === 0) return markup`${hasCaption ? markup`<h4>${title}</h4>` : null}<p class="muted">None.</p>`;
  const alignment = columns.map((_, column) => (rows.some((row) => typeof row[column] === 'string') ? null : markup` class="number"`));
  const cells = (row: Table['rows'][number]): Markup[] =>
    alignment.map((side, column) => markup`<td${side}>${cell(row[column] ?? null)}</td>`);
  return markup`<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
${hasCaption ? markup`<caption>${title}</caption>` : null}
<thead><tr>${columns.map((name, column) => markup`<th scope="col"${alignment[column] ?? null}>${name}</th>`)}</tr></thead>
<tbody>
${rows.slice(0, MAX_ROWS).map((row) => markup`<tr>${cells(row)}</tr>\n`)}
</tbody></table></div>
${rows.length > MAX_ROWS ? markup`<p class="muted">… and ${figure(rows.length - MAX_ROWS, '')} more in report.json.</p>` : null}`;
}

function facts(pairs: readonly (readonly [name: Piece, value: string])[]): Markup {
  return markup`<dl class="facts">${pairs.map(([name, value]) => markup`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function bullets(texts: readonly string[]): Markup {
  return markup`<ul class="notes">${texts.map((text) => markup`<li>${text}</li>`)}</ul>`;
}

/** Every verdict has a different shape, so that it is not shown by colour alone. */
const verdictIcon = (shape: string): Markup =>
  new Markup(
    `<svg class="icon" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.4" aria-hidden="true" focusable="false">${shape}</svg>`,
  );

const VERDICT_ICONS: Readonly<Record<TestVerdict, Markup>> = {
  PASS: verdictIcon('<circle cx="12" cy="12" r="10"/><path d="M7.2 12.4l3.2 3.3 6.4-7"/>'),
  FAIL: verdictIcon('<path d="M8 2h8l6 6v8l-6 6H8l-6-6V8z" stroke-linejoin="round"/><path d="M8.4 8.4l7.2 7.2M15.6 8.4l-7.2 7.2"/>'),
  INCOMPLETE: verdictIcon(
    '<circle cx="12" cy="12" r="10" stroke-dasharray="4 2.3"/><path d="M7 12h.1M12 12h.1M17 12h.1" stroke-width="3" stroke-linecap="round"/>',
  ),
};

function tabIcon(color: string, path: string): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${color}"/><path d="${path}" fill="none" stroke="#fff" stroke-width="4"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

const TAB_ICONS: Readonly<Record<TestVerdict, string>> = {
  PASS: tabIcon('#15603a', 'M8 17l5 5 11-13'),
  FAIL: tabIcon('#b3161b', 'M9 9l14 14M23 9L9 23'),
  INCOMPLETE: tabIcon('#46505c', 'M9 16h3M15 16h3M21 16h3'),
};
