import type { Judgement } from '../engine/judgement.ts';
import type { ReportDocument } from './document.ts';
import { limit, margin, measured, quantity } from './figures.ts';
import { visible } from './visible.ts';

/**
 * junit.xml: a test case for each criterion, in the order and with the attributes that the schema of Ant's JUnit task asks for, which
 * every reader of such files takes. INCOMPLETE is an error, not a skipped test: continuous integration passes over skipped tests, and
 * nothing may pass on missing evidence.
 */
export function junit(document: ReportDocument, reportDigest: string): string {
  const { judgements, run, statement, verdict } = document;
  const count = (wanted: Judgement['verdict']): number => judgements.filter((judgement) => judgement.verdict === wanted).length;
  const suite = attributes({
    id: '0',
    package: 'edge-health',
    name: 'harness',
    timestamp: run.begun.slice(0, 19), // Without a zone, as the schema wants it: UTC.
    hostname: String(run.machine?.['hostname'] ?? '') || 'localhost',
    tests: String(judgements.length),
    failures: String(count('FAIL')),
    errors: String(count('INCOMPLETE')),
    skipped: '0',
    time: run.watched_seconds.toFixed(3),
  });
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite${suite}>
    <properties>
${[...properties(document, reportDigest)].map(([name, value]) => `      <property${attributes({ name, value })}/>\n`).join('')}    </properties>
${judgements.map(testCase).join('')}    <system-out>${xml([`${verdict}: ${visible(statement)}`, ...judgements.map(told)].join('\n\n'))}</system-out>
    <system-err></system-err>
  </testsuite>
</testsuites>
`;
}

function* properties(
  { is_168_hour_verdict, judgements, run, statement, verdict }: ReportDocument,
  digest: string,
): Generator<[string, string]> {
  yield ['verdict', verdict];
  yield ['statement', statement];
  yield ['is_168_hour_verdict', String(is_168_hour_verdict)];
  yield ['node_name', run.node_name];
  yield ['version', run.version ?? ''];
  yield ['report.json.sha256', digest];
  for (const judgement of judgements) {
    yield [`${judgement.criterion}.verdict`, judgement.verdict];
    yield [`${judgement.criterion}.measured`, measured(judgement)];
    yield [`${judgement.criterion}.limit`, limit(judgement)];
    yield [`${judgement.criterion}.margin`, margin(judgement)];
  }
}

function testCase(judgement: Judgement): string {
  const { criterion, requirement, summary, title, verdict } = judgement;
  const head = `    <testcase${attributes({ classname: `harness.${criterion}`, name: `${title}: ${requirement}`, time: '0' })}`;
  if (verdict === 'PASS') return `${head}/>\n`;
  const element = verdict === 'FAIL' ? 'failure' : 'error';
  return `${head}>
      <${element}${attributes({ type: verdict, message: summary })}>${xml(told(judgement))}</${element}>
    </testcase>
`;
}

function told(judgement: Judgement): string {
  const { evidence, formula, missing, summary, title, verdict } = judgement;
  const { label } = judgement.measured;
  return [
    `${title}: ${verdict}`,
    summary,
    `${label}: ${measured(judgement)} (limit ${limit(judgement)}; ${margin(judgement)})`,
    `Formula: ${formula}`,
    ...missing.map((what) => `Missing: ${what}`),
    ...evidence.map((one) => `${one.label}: ${quantity(one)}`),
  ]
    .map(visible)
    .join('\n');
}

function attributes(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${xml(visible(value))}"`)
    .join('');
}

/** What has a meaning in XML as entities; `>` too, for the end of a CDATA section. */
function xml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };
