import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Machine, thisKernel } from '../../testkit/machine/machine-info.ts';
import type { Measured, Outcome, Results } from './outcome.ts';
import { renderResults } from './render.ts';

const DATA = fileURLToPath(new URL('../results.json', import.meta.url));
const PAGE = fileURLToPath(new URL('../RESULTS.md', import.meta.url));

/** Earlier results of this machine; results of another machine are not merged. */
export function loadResults(machine: Machine): Results {
  if (!existsSync(DATA)) return { machine, programs: {} };
  const results = JSON.parse(readFileSync(DATA, 'utf8')) as Results;
  const same = JSON.stringify(results.machine) === JSON.stringify(machine);
  return same ? results : { machine, programs: {} };
}

/** Replaces the results of one program in results.json and RESULTS.md. */
export function saveOutcome(machine: Machine, name: string, outcome: Outcome, order: readonly string[]): void {
  const before = loadResults(machine).programs;
  const measured: Measured = {
    measured: new Date().toISOString().slice(0, 16).replace('T', ' '),
    node: process.version,
    kernel: thisKernel(),
    ...outcome,
  };
  const all: Record<string, Measured> = { ...before, [name]: measured };
  const programs = Object.fromEntries(order.filter((key) => all[key]).map((key) => [key, all[key] as Measured]));
  const results: Results = { machine, programs };
  writeFileSync(DATA, `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(PAGE, renderResults(results));
}
