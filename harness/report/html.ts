import { createHash } from 'node:crypto';
import type { PageAssets } from './assets.ts';
import type { ReportDocument } from './document.ts';
import { figure, moment } from './figures.ts';
import { criterion, VERDICT_ICONS } from './html-criteria.ts';
import { facts, table } from './html-parts.ts';
import { data, html, Markup, type Piece } from './markup.ts';
import { happened, periodTable, runFacts } from './overview.ts';

/**
 * report.html: one file that loads nothing, whatever is in it: its policy allows this style sheet and this script, by their hashes,
 * and nothing else. All figures stand in it without the script, which draws the charts.
 */
export function page(document: ReportDocument, reportDigest: string, { script, style }: PageAssets): string {
  const { judgements, run, verdict } = document;
  const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = `default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; img-src data:; base-uri 'none'; form-action 'none'`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${new Markup(policy)}">
<meta name="report-json-sha256" content="${reportDigest}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${verdict} · reliability of ${run.node_name} · edge-health</title>
<link rel="icon" href="${ICONS[verdict]}">
<style>${new Markup(style)}</style>
</head>
<body>
<header class="top"><h1>Reliability report</h1><p>${run.node_name} · ${moment(run.begun)} to ${moment(run.ended)}</p></header>
<main>
${hero(document)}
<section aria-labelledby="criteria"><h2 id="criteria">The six criteria</h2>
${judgements.length === 0 ? html`<p class="card">No criterion was judged.</p>` : html`<div class="criteria">${judgements.map(criterion)}</div>`}
</section>
${notes(document)}
${charts(document, script !== '')}
${details(document)}
</main>
<footer>${footer(document, reportDigest)}</footer>
<script type="application/json" id="series">${data(document.series)}</script>
<script>${new Markup(script)}</script>
</body>
</html>
`.text;
}

function hero({ is_168_hour_verdict, statement, verdict }: ReportDocument): Markup {
  return html`<section class="hero ${verdict.toLowerCase()}" aria-label="Verdict">
${VERDICT_ICONS[verdict]}
<p class="word">${verdict}</p>
${is_168_hour_verdict ? null : html`<p class="badge">Not the 168-hour verdict</p>`}
<p class="sentence">${statement}</p>
</section>`;
}

function notes({ notes: texts }: ReportDocument): Piece {
  if (texts.length === 0) return null;
  return html`<section class="card" aria-labelledby="notes"><h2 id="notes">Notes</h2><ul class="notes">${texts.map((text) => html`<li>${text}</li>`)}</ul></section>`;
}

function charts(document: ReportDocument, hasScript: boolean): Markup {
  const period = periodTable(document);
  const events = happened(document);
  const drawn = period === null ? html`<p class="card">There is nothing to draw: no minute was recorded.</p>` : CHARTS;
  return html`<section aria-labelledby="charts"><h2 id="charts">The run over time</h2>
${hasScript ? drawn : html`<p class="card">The charts are missing: this installation lacks the program that draws them.</p>`}
${period === null ? null : html`<details class="card figures"><summary>${period.title}</summary>${table(period, null)}</details>`}
<details class="card figures"><summary>${events.title} (${figure(events.rows.length, '')})</summary>${table(events, null)}</details>
</section>`;
}

/** Filled by the script; without one, said so. */
const CHARTS = html`<noscript><p class="card">The charts need JavaScript; the tables below and above do not.</p></noscript>
<div id="chart" class="card" hidden></div>`;

function details(document: ReportDocument): Markup {
  return html`<section aria-labelledby="run"><h2 id="run">The run</h2>
<div class="card">${facts(runFacts(document))}</div>
</section>`;
}

function footer({ made, record }: ReportDocument, digest: string): Markup {
  return html`<p>All times are UTC. report.json holds the same figures, unrounded, and what the charts draw.</p>
<dl>
<div><dt>Report made</dt><dd>${moment(made)}</dd></div>
${
  record === null
    ? html`<div><dt>Record</dt><dd>none: from files that operations collected</dd></div>`
    : html`<div><dt>Record</dt><dd>${record.file}, ${figure(record.entries, '')} entries, ${figure(record.bytes, 'bytes')}</dd></div>
<div><dt>Its last hash</dt><dd class="hash">${record.head}</dd></div>`
}
<div><dt>SHA-256 of report.json</dt><dd class="hash">${digest}</dd></div>
</dl>
<p>To check that nothing was changed: <code>edge-health harness verify</code> with the folder of this file.</p>`;
}

/** As the icon of a tab: a colour and a sign for each verdict. */
function icon(color: string, path: string): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${color}"/><path d="${path}" fill="none" stroke="#fff" stroke-width="4"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

const ICONS = {
  PASS: icon('#15603a', 'M8 17l5 5 11-13'),
  FAIL: icon('#b3161b', 'M9 9l14 14M23 9L9 23'),
  INCOMPLETE: icon('#46505c', 'M9 16h3M15 16h3M21 16h3'),
};
