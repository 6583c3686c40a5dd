import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestVerdict, worst } from '../engine/judgement.ts';
import { md } from '../report/escape.ts';
import { duration, figure, limit, margin, measured, moment, quantity } from '../report/figures.ts';
import type { Check } from './check.ts';
import { checksOf } from './checks.ts';
import { count } from './figures.ts';
import type { Findings } from './findings.ts';

export const SOAK_FILES = { json: 'soak.json', markdown: 'soak.md' } as const;
/** Readings of so many points are kept for whoever wants to draw them. */
const MOST_POINTS = 600;

export interface SoakReport {
  readonly verdict: TestVerdict;
  readonly statement: string;
  readonly checks: readonly Check[];
}

export function judgeSoak(findings: Findings): SoakReport {
  const checks = checksOf(findings);
  const verdict = worst(checks.map((check) => check.verdict));
  const { expected, hertz, samples, seconds } = findings;
  const length = `${count(expected)} of ${count(samples)} slots at ${hertz} Hz in ${duration(seconds)}`;
  const said = {
    PASS: 'Everything held',
    FAIL: `Did not hold: ${names(checks, 'FAIL')}`,
    INCOMPLETE: `Nothing failed, but evidence is missing: ${names(checks, 'INCOMPLETE')}`,
  }[verdict];
  return { verdict, statement: `${said}. ${length}.`, checks };
}

/** Writes soak.md and soak.json. */
export function writeSoak(folder: string, findings: Findings): SoakReport {
  const report = judgeSoak(findings);
  const { readings, ...rest } = findings;
  const stride = Math.max(1, Math.ceil(readings.at.length / MOST_POINTS));
  const thinned = Object.fromEntries(
    Object.entries(readings).map(([name, values]) => [name, values.filter((_: number, i: number) => i % stride === 0)]),
  );
  mkdirSync(folder, { recursive: true });
  const document = { schema: 'edge-health-soak/1', ...report, findings: { ...rest, readings: thinned } };
  writeFileSync(join(folder, SOAK_FILES.json), `${JSON.stringify(document, null, 1)}\n`);
  writeFileSync(join(folder, SOAK_FILES.markdown), renderSoak(findings, report));
  return report;
}

function names(checks: readonly Check[], verdict: TestVerdict): string {
  return checks
    .filter((check) => check.verdict === verdict)
    .map(({ title }) => title)
    .join(', ');
}

function renderSoak(findings: Findings, { checks, statement, verdict }: SoakReport): string {
  const { machine, medianSeconds, warmUpSeconds } = findings;
  const cpu = findings.cpuSeconds;
  const percent = (seconds: number | null): number | null => (seconds === null ? null : (100 * seconds) / findings.seconds);
  const facts: readonly (readonly [string, string])[] = [
    ['Began', moment(findings.began)],
    ['Machine', `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGigabytes} GB, ${machine.os}, ${findings.kernel}`],
    [
      'Service',
      `edge-health ${findings.version}, bin/edge-health run, ${findings.hertz} Hz, ROS 2 by ${findings.transport} (${findings.transportReason})`,
    ],
    ['Listened to by', [findings.watcher ?? 'not on the topic', '/events', '/health/history every 30 s'].join('; ')],
    ['Where', findings.place],
    [
      'CPU of the service',
      `${figure(percent(cpu), '%')} of one core, ${figure(cpu === null ? null : (1e6 * cpu) / findings.expected, 'µs')} a sample, all that was asked of it included`,
    ],
    ['CPU of the soak itself', `${figure(percent(findings.watcherCpuSeconds), '%')} of one core`],
    [
      'Memory',
      `left out: the first ${duration(warmUpSeconds)}; medians of ${figure(medianSeconds, 's')}. The seven-day test leaves out an hour and takes medians of five minutes`,
    ],
  ];
  return [
    `# edge-health soak: ${verdict}`,
    `**${md(statement)}**`,
    table(
      ['What must hold', 'Verdict', 'Measured', 'Limit', 'Margin', 'In a sentence'],
      checks.map((check) =>
        [check.title, `**${check.verdict}**`, measured(check), limit(check), margin(check), check.summary].map((cell, i) =>
          i === 1 ? cell : md(cell),
        ),
      ),
    ),
    'A slot is lost where it has no sample, or where its sample did not arrive by that way. The window is told by time stamps.',
    '## The run',
    table(
      ['', ''],
      facts.map(([name, value]) => [md(name), md(value)]),
    ),
    '## REST, for information',
    table(
      ['Path', 'Asked', 'Failed', 'Median', 'p99', 'Most'],
      findings.rest.map(({ asked, failed, medianMs, mostMs, p99Ms, path }) => [
        md(path),
        String(asked),
        String(failed),
        ...[medianMs, p99Ms, mostMs].map((ms) => figure(ms, 'ms')),
      ]),
    ),
    ...(findings.notes.length > 0 ? ['## Notes', findings.notes.map((note) => `- ${md(note)}`).join('\n')] : []),
    ...checks.map(section),
  ]
    .join('\n\n')
    .concat('\n');
}

function section(check: Check): string {
  const { evidence, formula, missing, requirement, summary, tables, title, verdict } = check;
  return [
    `## ${md(title)}: ${verdict}`,
    md(summary),
    [
      `- Requirement: ${md(requirement)}`,
      `- ${md(check.measured.label)}: ${md(measured(check))} (limit ${md(limit(check))})`,
      `- Formula: ${md(formula)}`,
      ...missing.map((what) => `- Missing: ${md(what)}`),
    ].join('\n'),
    ...(evidence.length > 0
      ? [evidence.map((one) => `- ${md(one.label)}: ${md(quantity(one))}${one.informative ? ' (for information)' : ''}`).join('\n')]
      : []),
    ...tables.map(
      (one) =>
        `### ${md(one.title)}\n\n${table(
          one.columns.map(md),
          one.rows.slice(0, 50).map((row) => row.map((cell) => md(String(cell ?? '–')))),
        )}`,
    ),
  ].join('\n\n');
}

function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}
