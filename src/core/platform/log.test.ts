import { createWriteStream, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { anyText } from '../../../testkit/text.ts';
import { until } from '../../../testkit/wait.ts';
import { createLogger, formatLine, rateLimited } from './log.ts';

/** Up to this length, the journal does not split a line. */
const LINE_MAX_BYTES = 48 * 1024;

t.test('a message is written with its fields', async (t) => {
  t.equal(
    formatLine(true, 'warning', 'not stopped', { unit: 'a.service', why: 'no "such" unit', code: 5, none: null, left: undefined }),
    '<4>not stopped unit=a.service why="no \\"such\\" unit" code=5\n',
  );
  t.equal(formatLine(false, 'info', 'running', { list: ['a', 'b'] }), 'running list="[\\"a\\",\\"b\\"]"\n');
  t.equal(formatLine(false, 'error', 'failed', { path: 'C:\\x y' }), 'error: failed path="C:\\\\x y"\n');
});

t.test('the name of a node that can be mistaken for another one is spelled', async (t) => {
  const node = 'm\u043en';
  t.equal(formatLine(false, 'info', 'discovered', { node }), `discovered node="${node} (m\\\\u{43e}n)"\n`);
  t.match(formatLine(false, 'info', 'raised', { alert_id: `${node}/cpu_percent/1` }), '(m\\\\u{43e}n/cpu_percent/1)');
  t.equal(formatLine(false, 'info', 'raised', { alert_id: 'робот/cpu_percent/1' }), 'raised alert_id=робот/cpu_percent/1\n');
});

t.test('no text can begin another line with its own priority or control a terminal', async (t) => {
  t.equal(
    formatLine(true, 'notice', 'node left\n<0>forged', { node: 'a\u202eb\x1b[2J', by: 'x y\n<0>forged\u2028\x85' }),
    '<5>node left\\n<0>forged node=a\\u{202e}b\\x1b[2J by="x y\\n<0>forged\\u{2028}\\x85"\n',
  );
  const level = fc.constantFrom('error' as const, 'warning' as const, 'notice' as const, 'info' as const, 'debug' as const);
  fc.assert(
    fc.property(fc.boolean(), level, anyText(40), anyText(40), fc.jsonValue(), (forJournal, level, message, text, value) => {
      const line = formatLine(forJournal, level, message, { text, value });
      return line.endsWith('\n') && !/\p{C}/u.test(line.slice(0, -1)) && (!forJournal || /^<[3-7]>/.test(line));
    }),
    { numRuns: runs(200, 5000), seed: SEED },
  );
});

t.test('a line is never long enough for the journal to split it', async (t) => {
  for (const text of ['x', '🤖', '\n', '<0>'])
    t.ok(Buffer.byteLength(formatLine(true, 'error', text.repeat(100_000), { text: text.repeat(100_000) })) < LINE_MAX_BYTES, text);
});

t.test('only the journal gets priorities, not a pipe or a file of a process that systemd started', async (t) => {
  const file = join(t.testdir(), 'log');
  const stream = createWriteStream(file, { fd: openSync(file, 'w') }) as unknown as NodeJS.WriteStream & { readonly fd: number };
  const { dev, ino } = statSync(file);
  const environment = { ...process.env };
  t.teardown(() => Object.assign(process.env, { JOURNAL_STREAM: '' }, environment));
  for (const journal of ['', `${dev}:${ino + 1}`, `${dev}:${ino}`]) {
    process.env['JOURNAL_STREAM'] = journal;
    createLogger(stream, 'info').log('notice', 'running');
  }
  // Files are written by the thread pool.
  await until('all lines are written', () => readFileSync(file, 'utf8').split('\n').length > 3);
  t.equal(readFileSync(file, 'utf8'), 'notice: running\nnotice: running\n<5>running\n');
});

t.test('each message is logged once a minute, then with the number of suppressed ones', async (t) => {
  let now = 100;
  const lines: unknown[] = [];
  const log = rateLimited(
    (level, message, fields) => lines.push([level, message, fields]),
    () => now,
  );
  log('warning', 'a', { n: 1 });
  log('warning', 'a', { n: 2 });
  log('info', 'b');
  now += 59.9;
  log('warning', 'a', { n: 3 });
  t.same(lines, [
    ['warning', 'a', { n: 1 }],
    ['info', 'b', {}],
  ]);
  now += 0.1;
  log('warning', 'a', { n: 4 });
  log('warning', 'a', { n: 5 });
  t.same(lines[2], ['warning', 'a', { n: 4, suppressed: 2 }]);
  now += 1000;
  log('warning', 'a', { n: 6 });
  t.same(lines[3], ['warning', 'a', { n: 6, suppressed: 1 }]);
  now += 1000;
  log('warning', 'a', { n: 7 });
  t.same(lines[4], ['warning', 'a', { n: 7 }], 'none in between');
});

t.test('the remembered messages are bounded', async (t) => {
  let lines = 0;
  const log = rateLimited(
    () => (lines += 1),
    () => 0,
  );
  for (let i = 0; i < 100_000; i += 1) log('info', `line ${i % 1000}`);
  t.ok(lines <= 100_000);
  const before = lines;
  log('info', 'line 999');
  t.equal(lines, before, 'the last ones are');
});
