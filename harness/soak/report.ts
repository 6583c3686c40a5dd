import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatDuration } from '../../src/core/time/duration.ts';
import { type TestVerdict, worst } from '../engine/judgement.ts';
import { md } from '../report/escape.ts';
import { enumeration, figure, moment } from '../report/figures.ts';
import { judgementTable, section, table } from '../report/markdown.ts';
import { type Check, checksOf, count, type Findings } from './checks.ts';

export interface SoakReport {
  readonly verdict: TestVerdict;
  readonly statement: string;
  readonly checks: readonly Check[];
}

export function judgeSoak(findings: Findings): SoakReport {
  const checks = checksOf(findings);
  const verdict = worst(checks.map((check) => check.verdict));
  const titles = (of: TestVerdict): string => enumeration(checks.filter((check) => check.verdict === of).map(({ title }) => title));
  const outcome = {
    PASS: 'All checks passed',
    FAIL: `Failed: ${titles('FAIL')}`,
    INCOMPLETE: `Nothing has failed. Evidence is missing for ${titles('INCOMPLETE')}`,
  }[verdict];
  const { evidence, facts, fromMs, toMs } = findings;
  const length = `${count(evidence.reliability.expected)} of ${count(facts.samples)} samples at ${facts.hertz} Hz`;
  return { verdict, statement: `${outcome}. Length of the run: ${length} in ${formatDuration((toMs - fromMs) / 1000, 'h')}.`, checks };
}

/** Writes soak.md and soak.json. */
export function writeSoakReport(folder: string, findings: Findings): SoakReport {
  const report = judgeSoak(findings);
  const { alerts, facts, requests } = findings;
  const document = { schema: 'edge-health-soak/2', ...report, facts, alerts, requests };
  writeFileSync(join(folder, 'soak.json'), `${JSON.stringify(document, null, 1)}\n`);
  writeFileSync(join(folder, 'soak.md'), render(findings, report));
  return report;
}

function render(findings: Findings, { checks, statement, verdict }: SoakReport): string {
  const { began, hertz, kernel, machine, max_megabytes, network, transport, transport_reason, version } = findings.facts;
  const { cpu } = findings.evidence;
  const facts: readonly (readonly [string, string])[] = [
    ['Began', moment(began)],
    ['Machine', `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGigabytes} GB, ${machine.os}, ${kernel}`],
    ['Service', `edge-health ${version}, ${hertz} Hz, ROS 2 transport ${transport} (${transport_reason})`],
    ['Network', network],
    ...(typeof findings.peer === 'string' ? ([['Independent subscriber', `none: ${findings.peer}`]] as const) : []),
    ['Size limit of the database', `${max_megabytes} MB`],
    [
      'CPU of the service',
      `${figure((100 * cpu.cpuSeconds) / cpu.awakeSeconds, '%')} of one core, including its responses to all requests`,
    ],
  ];
  const milliseconds = (value: number | null): string => figure(value, 'ms');
  return [
    `# edge-health soak: ${verdict}`,
    `**${md(statement)}**`,
    judgementTable(checks),
    '## The run',
    table(
      ['', ''],
      facts.map((row) => row.map(md)),
    ),
    'The report of the harness is run/report.html. Its six criteria are for a week at 1 Hz: Uptime is incomplete, and Performance may fail.',
    '## REST requests, for information',
    table(
      ['Path', 'Requests', 'Failed', 'Median', 'p99', 'Maximum'],
      findings.requests.map(({ failed, maxMs, medianMs, p99Ms, path, requests }) => [
        md(path),
        String(requests),
        String(failed),
        ...[medianMs, p99Ms, maxMs].map(milliseconds),
      ]),
    ),
    ...checks.map(section),
  ]
    .join('\n\n')
    .concat('\n');
}
