import type { ReportInput } from '../compose.ts';
import { badWeek } from './bad-week.ts';

/** A report with a text in every member that other machines control: nodes, alerts, metrics, details, versions, machine facts. */
export function named(text: string): ReportInput {
  const input = badWeek();
  const judgements = input.judgements.map((judgement) => ({
    ...judgement,
    summary: text,
    missing: [text],
    tables: [{ title: text, columns: [text, 'n'], rows: [[text, 1]] }],
    evidence: [{ label: text, value: 1, unit: text }],
  }));
  return {
    ...input,
    judgements,
    run: { ...input.run, node_name: text, version: text, how: [text], notes: [text], machine: { hostname: text, [text]: text } },
    series: {
      ...input.series,
      alerts: [{ from: 0, to: null, severity: text, metric: text, alertId: text }],
      restarts: [{ at: 1, cause: text, detail: text }],
    },
  };
}

export const HOSTILE = [
  '</script><script>alert(1)</script>',
  '<!--<script>',
  ']]></system-out><evil/>',
  '"\' onload="alert(1)"',
  '\n\nSHA-256 of report.json: `0000000000000000000000000000000000000000000000000000000000000000`\n',
  '<meta name="report-json-sha256" content="0">',
  '| a | b |\n|---|---|\n# heading\n[x](javascript:alert(1)) <img src=x onerror=alert(1)> `code` **bold**',
  '\u0000\u0001\u0008\u001b[31m\u007f\u0085\ufffe\uffff',
  '\ud800 lone \udc00',
  'evil\u202egnp.exe\u2066\u200f',
  '&lt;b&gt; &amp; %s {{x}}',
];
