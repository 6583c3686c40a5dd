/**
 * Registers faults as tests of tap, one file for each family. `npm run test:system -- faults` runs those of the core, `npm run faults` runs
 * all or the given ones and collects the results. Environment:
 *
 * - EDGE_HEALTH_FAULTS: `core` (default), `all`, `list` (registers no test, only writes what there is), or names of faults and families
 * - EDGE_HEALTH_FAULTS_RESULTS: folder that takes a JSON file for each selected fault, with its result once it has run
 * - EDGE_HEALTH_FAULTS_SUITE: the Debian release of the containers, where a fault does not need a certain one; default bookworm
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { containersUnavailable, SUITES, type Suite } from '../../../testkit/container/images.ts';
import { peersUnavailable } from '../../../testkit/dds/peers.ts';
import type { FaultBench } from './bench.ts';
import { type BootOptions, Machines } from './machines.ts';
import type { FaultDescription, FaultRecord, FaultResult, Figures } from './report.ts';

export interface FaultOptions {
  /** Whether it belongs to the core, which runs with the other system tests. */
  readonly core?: boolean;
  /** What must hold during and after the fault, in a sentence. */
  readonly expected: string;
  readonly boot?: BootOptions;
}

const SELECTION = process.env['EDGE_HEALTH_FAULTS'] || 'core';
const RESULTS = process.env['EDGE_HEALTH_FAULTS_RESULTS'];
/** Only bounds a broken test: every fault has limits of its own. */
const LIMIT_MS = 3_600_000;

const suite = SUITES.find((name) => name === (process.env['EDGE_HEALTH_FAULTS_SUITE'] || 'bookworm'));
if (suite === undefined) throw new Error(`EDGE_HEALTH_FAULTS_SUITE: allowed are ${SUITES.join(', ')}`);

const machines = new Machines(suite);
let registered = 0;
const written = new Set<string>();
let unavailable: string | false | undefined;

t.setTimeout(LIMIT_MS);
t.teardown(() => machines.stop());
process.nextTick(() => {
  if (registered === 0) t.pass('no fault of this family is selected');
});

function isSelected({ name, family, core }: FaultDescription): boolean {
  if (SELECTION === 'core') return core;
  const wanted = SELECTION.split(',');
  return SELECTION === 'all' || SELECTION === 'list' || wanted.includes(name) || wanted.includes(family);
}

function write(fault: FaultDescription, suite: Suite, result: FaultResult | null): void {
  if (RESULTS === undefined) return;
  mkdirSync(RESULTS, { recursive: true });
  const record: FaultRecord = { fault, suite, result };
  // In the order of registration when sorted by name.
  const order = written.has(fault.name) ? [...written].indexOf(fault.name) : written.add(fault.name).size - 1;
  writeFileSync(join(RESULTS, `${fault.family}-${String(order).padStart(3, '0')}.json`), `${JSON.stringify(record, null, 2)}\n`);
}

/** Registers a fault by a name in lower case with hyphens. */
export type RegisterFault = (name: string, options: FaultOptions, run: (bench: FaultBench) => Promise<Figures>) => void;

/**
 * The faults of a family. `run` begins on a machine that is proven healthy, checks with `bench.check` what must hold, and ends with
 * `bench.finish`, which adds what must hold after every fault. Faults with equal `boot` options that follow each other share a machine.
 */
export function faultsOf(family: string): RegisterFault {
  return (name, { expected, core = false, boot = {} }, run) => {
    const description: FaultDescription = { name, family, core, expected };
    if (!isSelected(description)) return;
    const ownSuite = boot.suite ?? machines.suite;
    write(description, ownSuite, null);
    if (SELECTION === 'list') return;
    registered += 1;
    unavailable ??= containersUnavailable() || peersUnavailable();
    t.test(name, { skip: unavailable, timeout: LIMIT_MS }, async (t) => {
      t.comment(`${name}: ${expected}`);
      const begun = performance.now();
      const result = await machines.run(t, boot, run);
      const seconds = (performance.now() - begun) / 1000;
      write(description, ownSuite, { ...result, seconds });
      t.comment(`${name}: ${result.passed ? 'passed' : 'FAILED'} after ${seconds.toFixed(0)} s: ${result.observed}`);
      if (result.error !== null) t.fail(result.error, { journal: result.journal });
      else t.ok(result.checks.length >= 3, `${result.checks.length} checks`);
    });
  };
}
