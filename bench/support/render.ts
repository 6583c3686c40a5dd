import type { Results, Row } from './outcome.ts';

/** Three digits that count, and thousands set apart. */
export function number(value: number): string {
  if (value === 0) return '0';
  const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toLocaleString('en-US', { minimumFractionDigits: 0, maximumFractionDigits: digits });
}

export function quantity(value: number | null, unit: string): string {
  if (value === null) return 'not measured';
  return unit === '' ? number(value) : `${number(value)} ${unit}`;
}

function ratio({ ours, rival }: Row): string {
  if (!rival || ours === null || ours <= 0 || rival.value <= 0) return '';
  const times = rival.value / ours;
  return times >= 1 ? `${number(times)} × less` : `${number(1 / times)} × more`;
}

function targets({ atMost, timesLess, unit }: Row): string {
  const words: string[] = [];
  if (atMost !== undefined) words.push(`at most ${quantity(atMost, unit)}`);
  if (timesLess !== undefined) words.push(`${number(timesLess)} × less`);
  return words.join(', ');
}

/** Null: there is no target, or nothing to hold it against. */
export function isMet(row: Row): boolean | null {
  const { ours, rival, atMost, timesLess } = row;
  if (ours === null || (timesLess !== undefined && !rival)) return null;
  if (atMost === undefined && timesLess === undefined) return null;
  return (atMost === undefined || ours <= atMost) && (timesLess === undefined || !rival || rival.value >= ours * timesLess);
}

export function verdict(row: Row): string {
  const met = isMet(row);
  return met === null ? '' : met ? 'met' : '**missed**';
}

function line(row: Row): string {
  const rival = row.rival ? `${quantity(row.rival.value, row.unit)}, ${row.rival.name}` : '';
  return `| ${row.figure} | ${quantity(row.ours, row.unit)} | ${rival} | ${ratio(row)} | ${targets(row)} | ${verdict(row)} |`;
}

/** The page bench/RESULTS.md. */
export function renderResults({ machine, programs }: Results): string {
  const { cpu, cores, memoryGigabytes, os } = machine;
  const measured = Object.entries(programs);
  return `# Benchmark results

Written by \`npm run bench\` from \`bench/results.json\`; each figure was measured beside its rival in the same run.
Smaller is better everywhere. MB are 10^6 bytes.

| machine | |
|---|---|
| CPU | ${cpu}, ${cores} cores |
| memory | ${memoryGigabytes} GB |
| OS | ${os} |

| figure | ours | rival | ours is | target | |
|---|---|---|---|---|---|
${measured.flatMap(([, { rows }]) => rows.map(line)).join('\n')}

## How it was measured

${measured
  .map(
    ([name, { measured: at, node, kernel, notes }]) =>
      `### ${name}\n\n${at} UTC, Node ${node.slice(1)}, ${kernel}.\n\n${notes.map((note) => `- ${note}`).join('\n')}\n`,
  )
  .join('\n')}`;
}
