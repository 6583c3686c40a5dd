import t from 'tap';
import { account, compare, type Mutant, type MutationReport, type Reviewed, survivorsOf } from './report.ts';

const source = 'const a = 1;\nif (a <\n  b) c();\nif (a < b) c();\n';

function mutant(status: string, line: number, columns: readonly [number, number], replacement: string, endLine = line): Mutant {
  const location = { start: { line, column: columns[0] }, end: { line: endLine, column: columns[1] } };
  return { mutatorName: 'EqualityOperator', replacement, status, location };
}

function report(...mutants: Mutant[]): MutationReport {
  return { files: { 'x.ts': { source, mutants } } };
}

const review: Reviewed = { file: 'x.ts', original: 'a < b', replacement: 'a <= b', because: 'equivalent', reason: 'they differ' };
const survived = mutant('Survived', 4, [5, 10], 'a <= b');

t.test('what no test noticed is told by its text', async (t) => {
  const split = mutant('NoCoverage', 2, [5, 4], 'a  >=\n b', 3);
  t.same(survivorsOf(report(mutant('Killed', 1, [1, 2], ''), mutant('Timeout', 1, [1, 2], ''), mutant('Ignored', 1, [1, 2], ''), split)), [
    { file: 'x.ts', line: 2, mutator: 'EqualityOperator (NoCoverage)', original: 'a < b', replacement: 'a >= b' },
  ]);
  t.equal(survivorsOf(report(mutant('RuntimeError', 1, [1, 2], ''))).length, 1, 'one that could not be tried was not noticed');
});

t.test('reviewed survivors are let pass, others are not, and a review of none is stale', async (t) => {
  t.same(compare(report(survived), [review]), { counts: { Survived: 1 }, unknown: [], stale: [] });
  t.match(compare(report(survived), []), { unknown: [{ line: 4 }], stale: [] });
  t.match(compare(report(mutant('Killed', 4, [5, 10], 'a <= b')), [review]), { unknown: [], stale: [review] });
  t.match(compare(report(survived, survived), [review]), { stale: [review] }, 'there are two');
  t.match(compare(report(survived, survived), [{ ...review, count: 2 }]), { unknown: [], stale: [] });
  t.equal(compare(report(survived), [{ ...review, replacement: 'a == b' }]).unknown.length, 1);
});

t.test('the account tells all of it', async (t) => {
  const outcome = compare(report(survived, mutant('Killed', 1, [1, 2], ''), mutant('Ignored', 1, [1, 2], '')), [review]);
  const text = account(outcome, [review]);
  t.match(text, '2 changes were made');
  t.match(text, '| a test failed | 1 |');
  t.match(text, '| no test noticed: reviewed, does the same | 1 |');
  t.match(text, '| x.ts | `a < b` | `a <= b` | equivalent: they differ |');
  t.notMatch(text, 'not noticed:');
  t.match(account(compare(report(survived), []), []), '- not noticed: x.ts:4 EqualityOperator: `a < b` → `a <= b`');
  t.match(account(compare(report(), [review]), [review]), '- reviewed, but not so: x.ts');
});
