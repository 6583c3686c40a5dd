import type { Measured, Results, Row } from './outcome.ts';

/** Three significant digits, with thousands separators. */
export function number(value: number): string {
  if (value === 0) return '0';
  const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toLocaleString('en-US', { minimumFractionDigits: 0, maximumFractionDigits: digits });
}

export function quantity(value: number | null, unit: string): string {
  if (value === null) return 'not measured';
  return unit === '' ? number(value) : `${number(value)} ${unit}`;
}

function ratio({ value, baseline }: Row): string {
  if (!baseline || value === null || value <= 0 || baseline.value <= 0) return '';
  const times = baseline.value / value;
  return times >= 1 ? `${number(times)} × less` : `${number(1 / times)} × more`;
}

function targets({ atMost, timesLess, unit }: Row): string {
  const words: string[] = [];
  if (atMost !== undefined) words.push(`at most ${quantity(atMost, unit)}`);
  if (timesLess !== undefined) words.push(`${number(timesLess)} × less`);
  return words.join(', ');
}

/** Null if there is no target, or no figure to compare with it. */
export function isMet(row: Row): boolean | null {
  const { value, baseline, atMost, timesLess } = row;
  if (value === null || (timesLess !== undefined && !baseline)) return null;
  if (atMost === undefined && timesLess === undefined) return null;
  return (atMost === undefined || value <= atMost) && (timesLess === undefined || !baseline || baseline.value >= value * timesLess);
}

export function verdict(row: Row): string {
  const met = isMet(row);
  return met === null ? '' : met ? 'met' : '**missed**';
}

function line(row: Row): string {
  const baseline = row.baseline ? `${quantity(row.baseline.value, row.unit)}, ${row.baseline.name}` : '';
  return `| ${row.figure} | ${quantity(row.value, row.unit)} | ${baseline} | ${ratio(row)} | ${targets(row)} | ${verdict(row)} |`;
}

/** The page bench/RESULTS.md. */
export function renderResults(results: Results): string {
  const measured = Object.entries(results);
  return `# Benchmark results

Written by \`npm run bench\` from \`bench/results.json\`; each figure was measured in the same run as its baseline.
Programs may have run on different machines, which "How it was measured" names. Smaller is better in every row. MB are 10^6 bytes.

| figure | edge-health | baseline | edge-health is | target | |
|---|---|---|---|---|---|
${measured.flatMap(([, { rows }]) => rows.map(line)).join('\n')}

## How it was measured

${measured.map(([name, one]) => `### ${name}\n\n${where(one)}\n\n${one.notes.map((note) => `- ${note}`).join('\n')}\n`).join('\n')}`;
}

function where({ measured, node, kernel, machine }: Measured): string {
  const { cpu, cores, memoryGigabytes, os } = machine;
  return `${measured} UTC, Node ${node.slice(1)}, ${kernel}; ${cpu}, ${cores} cores, ${memoryGigabytes} GB, ${os}.`;
}
