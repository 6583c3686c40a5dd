import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../testkit/effort.ts';
import { type CheckResult, resultsFor } from './checks/check.ts';
import { inOrder, lineOf, logLines, summarize } from './checks/summary.ts';
import { EXIT, type JobStatus, worst } from './lib/job.ts';

const STATUSES = Object.keys(EXIT) as JobStatus[];
/** Equivalent to `unit: 'binary'`, whose tables take a second to build. */
const text = fc.string({ unit: fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code)) });
const anyResult: fc.Arbitrary<CheckResult> = fc.record({
  name: fc.string(),
  status: fc.constantFrom(...STATUSES),
  message: text,
  remedy: fc.option(text),
  isNote: fc.boolean(),
  measured: fc.constant({}),
});

t.test('the summary counts and names the problems, worst first', async (t) => {
  t.same(summarize([resultsFor('disk /').ok('x'), resultsFor('clock').note('x')]), { status: 'OK', summary: '2 checks' });
  t.same(summarize([resultsFor('disk /').ok('x')]), { status: 'OK', summary: '1 check' });
  const found = [
    resultsFor('a').ok(''),
    resultsFor('clock').unknown('x', 'y'),
    resultsFor('backup').warning('x', 'y'),
    resultsFor('disk /').critical('x', 'y'),
  ];
  t.same(summarize(found), { status: 'CRITICAL', summary: '3 of 4 checks: disk /, clock, backup' });
  const many = Array.from({ length: 9 }, (_, index) => resultsFor(`container c${index}`).warning('x', 'y'));
  t.match(summarize(many).summary, /^9 of 9 checks: container c0, .*c4 and 4 more$/);
});

t.test('for any results, the status is the worst, the order is by severity, and each result is one line', async () => {
  fc.assert(
    fc.property(fc.array(anyResult, { maxLength: 12 }), (results) => {
      const { status } = summarize(results);
      const order = inOrder(results);
      const weights = order.map((result) => ['CRITICAL', 'UNKNOWN', 'WARNING', 'OK'].indexOf(result.status));
      const isInOrder = weights.every((weight, index) => index === 0 || weight >= (weights[index - 1] as number));
      const areLines = order.map(lineOf).every((line) => !/[\r\n\u2028]/.test(line) && line.length < 1000);
      return status === worst(results.map((result) => result.status)) && isInOrder && areLines && order.length === results.length;
    }),
    { numRuns: runs(30, 1000), seed: SEED },
  );
});

t.test('a line ends with the remedy', async (t) => {
  t.equal(lineOf(resultsFor('disk /').critical('full', 'remove files')), 'CRITICAL  disk /: full; remove files');
  t.equal(lineOf(resultsFor('disk /').ok('well')), 'OK  disk /: well');
  t.equal(lineOf(resultsFor('containers').note('none configured')), 'NOTE  containers: none configured');
});

t.test('the log has one line for the run and one for each change', async (t) => {
  const disk = resultsFor('disk /').critical('full', 'remove files');
  const well = [resultsFor('disk /').ok('well')];
  const lines = (results: CheckResult[], statuses: Record<string, 'CRITICAL' | 'WARNING'> | null) =>
    logLines(results, statuses === null ? null : { counters: {}, statuses }, 'schedule');
  t.same(lines([disk], null), ['CRITICAL  1 of 2 checks: disk / (schedule)', '  CRITICAL  disk /: full; remove files']);
  t.equal(lines([disk], { 'disk /': 'CRITICAL' }).length, 1, 'the same again is no change');
  t.same(lines(well, { 'disk /': 'CRITICAL' }), ['OK  2 checks (schedule)', '  OK  disk /: well']);
});
