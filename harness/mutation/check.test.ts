import t from 'tap';
import { disagreements, type Mutant, type MutationReport } from './check.ts';
import type { Reviewed } from './reviewed-survivors.ts';

// This file stands for a reviewed one: it has to exist.
const FILE = 'harness/mutation/check.test.ts';
const source = 'const a = 1;\nif (a <\n  b) c();\nif (a < b) c();\n';

function mutant(status: string, line: number, columns: readonly [number, number], replacement: string, endLine = line): Mutant {
  return { replacement, status, location: { start: { line, column: columns[0] }, end: { line: endLine, column: columns[1] } } };
}

function report(...mutants: Mutant[]): MutationReport {
  return { files: { [FILE]: { source, mutants } } };
}

const review: Reviewed = { file: FILE, original: 'a < b', replacement: 'a <= b', because: 'equivalent', reason: 'they differ' };
const survived = mutant('Survived', 4, [5, 10], 'a <= b');
const killed = mutant('Killed', 4, [5, 10], 'a <= b');

t.test('a survivor is reported by its text, on one line', async (t) => {
  const split = mutant('NoCoverage', 2, [5, 4], 'a  >=\n b', 3);
  const noticed = ['Killed', 'Timeout', 'CompileError', 'Ignored'].map((status) => mutant(status, 1, [1, 2], ''));
  t.same(disagreements(report(...noticed, split), []), [`${FILE}:2 (NoCoverage): no test notices a < b → a >= b`]);
  t.equal(disagreements(report(mutant('RuntimeError', 1, [1, 2], '')), []).length, 1, 'a mutant that could not be run was not noticed');
});

t.test('reviewed survivors pass, others do not, and a review of none is stale', async (t) => {
  t.same(disagreements(report(survived), [review]), []);
  t.match(disagreements(report(survived), []), [/:4 \(Survived\): no test notices/]);
  t.match(disagreements(report(killed), [review]), [/^reviewed 1 time\(s\), survived 0/]);
  t.match(disagreements(report(survived, survived), [review]), [/survived 2/], 'there are two');
  t.same(disagreements(report(survived, survived), [{ ...review, count: 2 }]), []);
  t.equal(disagreements(report(survived), [{ ...review, replacement: 'a == b' }]).length, 2);
});

t.test('reviews of files that were not mutated are left out, those of removed files are stale', async (t) => {
  t.same(disagreements({ files: {} }, [review]), []);
  t.match(disagreements({ files: {} }, [{ ...review, file: 'removed.ts' }]), [/removed\.ts/]);
});
