import type { Judgement } from '../engine/judgement.ts';
import type { ReportDocument } from './document.ts';
import { type Markup, markup } from './escape.ts';
import { limit, margin, measured, quantity } from './figures.ts';

/**
 * junit.xml: a test case for each criterion, in the order and with the attributes that the schema of Ant's JUnit task requires and
 * that all readers of such files accept. INCOMPLETE is an error and not a skipped test: CI ignores skipped tests, and a run with
 * missing evidence must not pass.
 */
export function junit(document: ReportDocument, reportDigest: string): string {
  const { judgements, run, statement, verdict } = document;
  const count = (wanted: Judgement['verdict']): number => judgements.filter((judgement) => judgement.verdict === wanted).length;
  const hostname = String(run.machine?.['hostname'] ?? '') || 'localhost';
  // The schema requires a timestamp without a zone; it is UTC.
  return markup`<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite id="0" package="edge-health" name="harness" timestamp="${run.begun.slice(0, 19)}" hostname="${hostname}" tests="${judgements.length}" failures="${count('FAIL')}" errors="${count('INCOMPLETE')}" skipped="0" time="${run.observed_seconds.toFixed(3)}">
    <properties>
${properties(document, reportDigest).map(([name, value]) => markup`      <property name="${name}" value="${value}"/>\n`)}    </properties>
${judgements.map(testCase)}    <system-out>${verdict}: ${statement}\n${judgements.map((judgement) => markup`\n${output(judgement)}`)}</system-out>
    <system-err></system-err>
  </testsuite>
</testsuites>
`.text;
}

function properties(document: ReportDocument, digest: string): (readonly [name: string, value: string])[] {
  return [
    ['verdict', document.verdict],
    ['statement', document.statement],
    ['is_168_hour_verdict', String(document.is_168_hour_verdict)],
    ['node_name', document.run.node_name],
    ['version', document.run.version ?? ''],
    ['report.json.sha256', digest],
    ...document.judgements.flatMap((judgement) => [
      [`${judgement.criterion}.verdict`, judgement.verdict] as const,
      [`${judgement.criterion}.measured`, measured(judgement)] as const,
      [`${judgement.criterion}.limit`, limit(judgement)] as const,
      [`${judgement.criterion}.margin`, margin(judgement)] as const,
    ]),
  ];
}

function testCase(judgement: Judgement): Markup {
  const { criterion, requirement, summary, title, verdict } = judgement;
  const content = markup` type="${verdict}" message="${summary}">${output(judgement)}`;
  const problem = verdict === 'FAIL' ? markup`<failure${content}</failure>` : markup`<error${content}</error>`;
  const attributes = markup`classname="harness.${criterion}" name="${title}: ${requirement}" time="0"`;
  return verdict === 'PASS'
    ? markup`    <testcase ${attributes}/>\n`
    : markup`    <testcase ${attributes}>\n      ${problem}\n    </testcase>\n`;
}

/** Formats the judgement as lines of text. */
function output(judgement: Judgement): Markup {
  const { evidence, formula, missing, summary, title, verdict } = judgement;
  const lines = [
    `${title}: ${verdict}`,
    summary,
    `${judgement.measured.label}: ${measured(judgement)} (limit ${limit(judgement)}; ${margin(judgement)})`,
    `Formula: ${formula}`,
    ...missing.map((what) => `Missing: ${what}`),
    ...evidence.map((one) => `${one.label}: ${quantity(one)}`),
  ];
  return markup`${lines.map((line) => markup`${line}\n`)}`;
}
