import type { Judgement, Verdict } from '../engine/judgement.ts';
import { limit, margin, measured, quantity } from './figures.ts';
import { table } from './html-parts.ts';
import { marginBar } from './margin-bar.ts';
import { html, Markup, type Piece } from './markup.ts';

/** Every verdict has a shape of its own, so that nobody needs to tell colours apart. The word stands beside each. */
const icon = (shape: string): Markup =>
  new Markup(
    `<svg class="icon" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.4" aria-hidden="true" focusable="false">${shape}</svg>`,
  );

export const VERDICT_ICONS: Readonly<Record<Verdict, Markup>> = {
  PASS: icon('<circle cx="12" cy="12" r="10"/><path d="M7.2 12.4l3.2 3.3 6.4-7"/>'),
  FAIL: icon('<path d="M8 2h8l6 6v8l-6 6H8l-6-6V8z" stroke-linejoin="round"/><path d="M8.4 8.4l7.2 7.2M15.6 8.4l-7.2 7.2"/>'),
  INCOMPLETE: icon(
    '<circle cx="12" cy="12" r="10" stroke-dasharray="4 2.3"/><path d="M7 12h.1M12 12h.1M17 12h.1" stroke-width="3" stroke-linecap="round"/>',
  ),
};

/** A criterion: what was measured against what, and below, to be opened, how that came about. */
export function criterion(judgement: Judgement): Markup {
  const { criterion: name, requirement, summary, title, verdict } = judgement;
  return html`<article class="criterion card ${verdict.toLowerCase()}" id="criterion-${name}">
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
${missing(judgement)}
${evidence(judgement)}
${judgement.tables.map((one) => table(one))}
</div>
</details>
</article>
`;
}

/** Drawn with attributes: the page's policy allows no styles in elements. */
function bar(judgement: Judgement): Piece {
  const place = marginBar(judgement);
  if (place === null) return null;
  const { goodSide, limit: at, measured: to } = place;
  const [badFrom, badWidth] = goodSide === 'left' ? [at, 100 - at] : [0, at];
  return html`<svg class="bar" width="100%" height="18" aria-hidden="true" focusable="false">
<rect class="track" x="0" y="5" width="100%" height="8" rx="4"/>
<rect class="beyond" x="${badFrom}%" y="5" width="${badWidth}%" height="8" rx="4"/>
<rect class="value" x="0" y="5" width="${Math.max(to, 0.8)}%" height="8" rx="4"/>
<line class="limit" x1="${at}%" x2="${at}%" y1="0" y2="18"/>
</svg>`;
}

function missing({ missing: texts }: Judgement): Piece {
  if (texts.length === 0) return null;
  return html`<h4>Missing evidence</h4><ul class="notes">${texts.map((text) => html`<li>${text}</li>`)}</ul>`;
}

function evidence({ evidence: quantities }: Judgement): Piece {
  if (quantities.length === 0) return null;
  const row = (one: (typeof quantities)[number]): Markup =>
    html`<div><dt>${one.label}${one.informative ? html` <span class="muted">(for information)</span>` : null}</dt><dd>${quantity(one)}</dd></div>`;
  return html`<h4>Evidence</h4><dl class="facts">${quantities.map(row)}</dl>`;
}
