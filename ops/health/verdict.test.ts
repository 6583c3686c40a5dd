import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { EXIT, type JobStatus, worst } from '../lib/job.ts';
import { finding, fine, lineOf, note, overall, sorted, type Verdict } from './verdict.ts';

const STATUSES = Object.keys(EXIT) as JobStatus[];
/** As `unit: 'binary'`, whose tables take a second to build. */
const text = fc.string({ unit: fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code)) });
const anyVerdict: fc.Arbitrary<Verdict> = fc.record({
  name: fc.string(),
  status: fc.constantFrom(...STATUSES),
  message: text,
  remedy: fc.option(text),
  isNote: fc.boolean(),
  measured: fc.constant({}),
});

t.test('the summary counts what is wrong and names it, worst first', async (t) => {
  t.same(overall([fine('disk /', 'x'), note('clock', 'x')]), { status: 'OK', summary: '2 checks' });
  t.same(overall([fine('disk /', 'x')]), { status: 'OK', summary: '1 check' });
  const found = [
    fine('a', ''),
    finding('clock', 'UNKNOWN', 'x', 'y'),
    finding('backup', 'WARNING', 'x', 'y'),
    finding('disk /', 'CRITICAL', 'x', 'y'),
  ];
  t.same(overall(found), { status: 'CRITICAL', summary: '3 of 4 checks: disk /, backup, clock' });
  const many = Array.from({ length: 9 }, (_, index) => finding(`container c${index}`, 'WARNING', 'x', 'y'));
  t.match(overall(many).summary, /^9 of 9 checks: container c0, .*c4 and 4 more$/);
});

t.test('whatever was found: the status is the worst, the order is by weight, and a line is one line', async () => {
  fc.assert(
    fc.property(fc.array(anyVerdict, { maxLength: 12 }), (verdicts) => {
      const { status } = overall(verdicts);
      const order = sorted(verdicts);
      const weights = order.map((verdict) => ['CRITICAL', 'WARNING', 'UNKNOWN', 'OK'].indexOf(verdict.status));
      const isInOrder = weights.every((weight, index) => index === 0 || weight >= (weights[index - 1] as number));
      const areLines = order.map(lineOf).every((line) => !/[\r\n\u2028]/.test(line) && line.length < 1000);
      return status === worst(verdicts.map((verdict) => verdict.status)) && isInOrder && areLines && order.length === verdicts.length;
    }),
    { numRuns: runs(30, 1000), seed: SEED },
  );
});

t.test('a line says what to do', async (t) => {
  t.equal(lineOf(finding('disk /', 'CRITICAL', 'full', 'remove files')), 'CRITICAL  disk /: full; remove files');
  t.equal(lineOf(fine('disk /', 'well')), 'OK  disk /: well');
});
