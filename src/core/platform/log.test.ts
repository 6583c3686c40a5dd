import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { anyText } from '../../../testkit/text.ts';
import { formatLine } from './log.ts';

/** Up to this length, the journal does not split a line. */
const LINE_MAX_BYTES = 48 * 1024;

t.test('a message is written with its fields', async (t) => {
  t.equal(
    formatLine(false, 'warning', 'not stopped', { unit: 'a.service', why: 'no "such" unit', code: 5, none: null, left: undefined }),
    '<4>not stopped unit=a.service why="no \\"such\\" unit" code=5\n',
  );
  t.equal(formatLine(true, 'info', 'running', { list: ['a', 'b'] }), 'running list="[\\"a\\",\\"b\\"]"\n');
  t.equal(formatLine(true, 'error', 'failed', { path: 'C:\\x y' }), 'error: failed path="C:\\\\x y"\n');
});

t.test('no text can begin another line with its own priority or control a terminal', async (t) => {
  t.equal(
    formatLine(false, 'notice', 'node left\n<0>forged', { node: 'a\u202eb\x1b[2J', by: 'x y\n<0>forged\u2028\x85' }),
    '<5>node left\\n<0>forged node=a\\u{202e}b\\x1b[2J by="x y\\n<0>forged\\u{2028}\\x85"\n',
  );
  const level = fc.constantFrom('error' as const, 'warning' as const, 'notice' as const, 'info' as const, 'debug' as const);
  fc.assert(
    fc.property(fc.boolean(), level, anyText(40), anyText(40), fc.jsonValue(), (isTerminal, level, message, text, value) => {
      const line = formatLine(isTerminal, level, message, { text, value });
      return line.endsWith('\n') && !/\p{C}/u.test(line.slice(0, -1)) && (isTerminal || /^<[3-7]>/.test(line));
    }),
    { numRuns: runs(200, 5000), seed: SEED },
  );
});

t.test('a line is never long enough for the journal to split it', async (t) => {
  for (const text of ['x', '🤖', '\n', '<0>'])
    t.ok(Buffer.byteLength(formatLine(false, 'error', text.repeat(100_000), { text: text.repeat(100_000) })) < LINE_MAX_BYTES, text);
});
