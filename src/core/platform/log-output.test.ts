import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { until } from '../../../testkit/wait.ts';
import { LogOutput } from './log-output.ts';

/** A pipe that nobody reads until `read` is called. */
function pipe(t: Test): { descriptor: number; read: () => string } {
  const path = join(t.testdir(), 'pipe');
  execFileSync('mkfifo', [path]);
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  t.teardown(() => closeSync(descriptor));
  const read = (): string => {
    const buffer = Buffer.alloc(1024 * 1024);
    let text = '';
    for (;;) {
      try {
        text += buffer.toString('utf8', 0, readSync(descriptor, buffer));
      } catch {
        return text; // EAGAIN: it is empty.
      }
    }
  };
  return { descriptor, read };
}

const dropped = (lines: number): string => `${lines} dropped\n`;

t.test('a line is written before write returns', async (t) => {
  const { descriptor, read } = pipe(t);
  const output = new LogOutput(descriptor, dropped);
  output.write('one\n');
  t.equal(read(), 'one\n');
});

t.test('lines for which there is no space are counted, and reported where they are missing', async (t) => {
  const { descriptor, read } = pipe(t);
  const output = new LogOutput(descriptor, dropped);
  const line = (n: number): string => `${n} ${'x'.repeat(1000)}\n`;
  for (let n = 0; n < 1000; n += 1) output.write(line(n));
  let text = '';
  await until('the report', () => {
    text += read();
    return text.includes('dropped');
  });
  output.write('next\n');
  text += read();
  const lines = text.trimEnd().split('\n');
  const report = lines.at(-2) as string;
  const written = lines.slice(0, -2);
  t.same(
    written,
    Array.from({ length: written.length }, (_, n) => line(n).trimEnd()),
    'complete and in order',
  );
  t.ok(written.length > 100, `${written.length} lines`);
  t.equal(report, `${1000 - written.length} dropped`);
  t.equal(lines.at(-1), 'next');
});

t.test('a regular file has each line once, in order', async (t) => {
  const path = join(t.testdir(), 'log');
  const descriptor = openSync(path, 'w');
  t.teardown(() => closeSync(descriptor));
  const output = new LogOutput(descriptor, dropped);
  const lines = Array.from({ length: 100 }, (_, n) => `${n}\n`);
  for (const line of lines) output.write(line);
  await until('the last line', () => readFileSync(path, 'utf8') === lines.join(''));
});

t.test('a device without space loses the line only', async (t) => {
  const descriptor = openSync('/dev/full', 'w');
  t.teardown(() => closeSync(descriptor));
  const output = new LogOutput(descriptor, dropped);
  for (let n = 0; n < 3; n += 1) output.write('x\n');
  t.throws(() => writeSync(descriptor, 'x'), { code: 'ENOSPC' });
});

/** Runs a program that logs lines of 1 kB to its standard error and ends. */
const PROGRAM = `
  import { LogOutput } from '${join(import.meta.dirname, 'log-output.ts')}';
  const output = new LogOutput(process.stderr.fd, (lines) => lines + ' dropped\\n');
  for (let n = 0; n < 100; n += 1) output.write(n + ' ' + 'x'.repeat(1000) + '\\n');
`;
const run = (end: string, reader: string): ReturnType<typeof spawnSync> => {
  const script = `{ "$0" --input-type=module-typescript -e "$1" 2>&1 >/dev/null; echo "status $?"; } | ${reader}`;
  return spawnSync('bash', ['-c', script, process.execPath, `${PROGRAM}${end}`], { encoding: 'utf8' });
};

t.test('at the exit, what waits is written if the reader reads', async (t) => {
  for (const end of ['', 'process.exit(3);', 'throw new Error("the last words");']) {
    const { stdout } = run(end, 'cat');
    t.match(String(stdout), /^99 x+$/m, end);
    t.match(String(stdout), end === '' ? /^status 0$/m : end.startsWith('throw') ? /the last words[\s\S]*^status 1$/m : /^status 3$/m, end);
  }
});
