import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { thisKernel, thisMachine } from '../../testkit/machine/machine-info.ts';
import type { Measured, Outcome, Results } from './outcome.ts';
import { renderResults } from './render.ts';

const DATA = fileURLToPath(new URL('../results.json', import.meta.url));
const PAGE = fileURLToPath(new URL('../RESULTS.md', import.meta.url));

/** Replaces the results of one program in results.json and RESULTS.md. */
export function saveOutcome(name: string, outcome: Outcome, order: readonly string[]): void {
  const before: Results = existsSync(DATA) ? (JSON.parse(readFileSync(DATA, 'utf8')) as Results) : {};
  const measured: Measured = {
    measured: new Date().toISOString().slice(0, 16).replace('T', ' '),
    node: process.version,
    kernel: thisKernel(),
    machine: thisMachine(),
    ...outcome,
  };
  const all: Results = { ...before, [name]: measured };
  const results: Results = Object.fromEntries(order.filter((key) => all[key]).map((key) => [key, all[key] as Measured]));
  writeFileSync(DATA, `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(PAGE, renderResults(results));
}
