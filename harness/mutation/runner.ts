import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin';
import {
  type DryRunResult,
  DryRunStatus,
  type MutantRunOptions,
  type MutantRunResult,
  type TestResult,
  type TestRunner,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner';
import fc from 'fast-check';
import { type Collected, collected } from './tap.ts';
import { TESTS } from './tests.ts';

/** What the instrumented code asks for, in `globalThis.__stryker__`. */
interface Instrumented {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  mutantCoverage?: { static: Record<string, number>; perTest: Record<string, Record<string, number>> };
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
}

const everywhere = globalThis as { __stryker__?: Instrumented };
everywhere.__stryker__ ??= {};
const instrumented: Instrumented = everywhere.__stryker__;

/** The same numbers for every mutant, and fewer of them than in a run by hand. */
const PROPERTY_SEED = 20_260_304;
const PROPERTY_RUNS = 30;

/**
 * Runs the tests of the engine in this process, the fastest files first. Stryker starts another process for a mutant that acts while
 * modules are loaded, and ends one that hangs.
 */
export class EngineTests implements TestRunner {
  #tests: readonly Collected[] | null = null;

  capabilities(): { reloadEnvironment: boolean } {
    return { reloadEnvironment: false };
  }

  async dryRun(): Promise<DryRunResult> {
    const tests = await this.#load();
    const results: TestResult[] = [];
    for (const { name, run } of tests) {
      instrumented.currentTestId = name;
      results.push(await resultOf(name, run));
      instrumented.currentTestId = undefined;
    }
    const { mutantCoverage } = instrumented;
    return { status: DryRunStatus.Complete, tests: results, ...(mutantCoverage === undefined ? {} : { mutantCoverage }) };
  }

  async mutantRun({ activeMutant, hitLimit, mutantActivation, testFilter }: MutantRunOptions): Promise<MutantRunResult> {
    if (mutantActivation === 'static') instrumented.activeMutant = activeMutant.id;
    const tests = await this.#load();
    instrumented.activeMutant = activeMutant.id;
    instrumented.hitLimit = hitLimit;
    instrumented.hitCount = hitLimit === undefined ? undefined : 0;
    const results: TestResult[] = [];
    for (const { name, run } of tests) {
      if (testFilter !== undefined && !testFilter.includes(name)) continue;
      results.push(await resultOf(name, run));
      if ((instrumented.hitCount ?? 0) > (hitLimit ?? Number.POSITIVE_INFINITY)) return toMutantRunResult({ status: DryRunStatus.Timeout });
      if (results.at(-1)?.status === TestStatus.Failed) break;
    }
    if (mutantActivation === 'runtime') instrumented.activeMutant = undefined;
    return toMutantRunResult({ status: DryRunStatus.Complete, tests: results });
  }

  async #load(): Promise<readonly Collected[]> {
    if (this.#tests !== null) return this.#tests;
    const standIn = new URL('./tap.ts', import.meta.url).href;
    registerHooks({
      resolve: (specifier, context, next) => (specifier === 'tap' ? { url: standIn, shortCircuit: true } : next(specifier, context)),
    });
    fc.configureGlobal({ seed: PROPERTY_SEED, numRuns: PROPERTY_RUNS });
    const tests: Collected[] = [];
    for (const file of TESTS) {
      collected.length = 0;
      await import(pathToFileURL(join(process.cwd(), file)).href);
      for (const { name, run } of collected) tests.push({ name: `${file}: ${name}`, run });
    }
    this.#tests = tests;
    return tests;
  }
}

async function resultOf(name: string, run: () => Promise<void>): Promise<TestResult> {
  const began = performance.now();
  const base = { id: name, name };
  try {
    await run();
    return { ...base, status: TestStatus.Success, timeSpentMs: performance.now() - began };
  } catch (error) {
    return { ...base, status: TestStatus.Failed, timeSpentMs: performance.now() - began, failureMessage: String(error) };
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'engine-tests', EngineTests)];
