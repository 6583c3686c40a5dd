/** Runs tap over all suites (or the files given) and closes with one line of counts, which CI reads. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const child = spawn('node_modules/.bin/tap', ['--reporter=tap', ...process.argv.slice(2)], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, PATH: `${process.cwd()}/node_modules/.bin:${process.env['PATH']}` },
});

let passed = 0;
let failed = 0;
let skipped = 0;
let suite = '';
let indentOfFailure = -1;
let rest = '';

/** Counts the leaves: assertions of every depth that are not the summary of a subtest. */
function line(text: string): void {
  const subtest = /^# Subtest: (.*)/.exec(text);
  if (subtest) suite = subtest[1] ?? '';
  const point = /^( *)(not )?ok \d+(?: - (.*?))?(?: # (SKIP|TODO)(?: (.*))?)?(?: # time=.*)?( \{)?$/.exec(text);
  if (point) {
    const [, indent = '', not, name = '', directive, reason] = point;
    const timed = /# time=/.test(text);
    if (directive === 'SKIP') {
      skipped += 1;
      process.stdout.write(`skipped  ${suite}: ${name} (${reason ?? 'no reason given'})\n`);
    } else if (not) {
      if (!timed) failed += 1;
      process.stdout.write(`FAILED   ${suite}: ${name}\n`);
      indentOfFailure = indent.length;
      return;
    } else if (!timed) {
      passed += 1;
    } else if (indent === '') {
      process.stdout.write(`ok       ${suite}\n`);
    }
    indentOfFailure = -1;
    return;
  }
  // What tap says about a failure follows it, indented further.
  if (indentOfFailure >= 0 && text.startsWith(' '.repeat(indentOfFailure + 2))) process.stdout.write(`  ${text}\n`);
}

child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop() ?? '';
  for (const text of lines) line(text);
});
const [code] = (await once(child, 'close')) as [number | null];
if (code !== 0 && failed === 0) failed = 1;
// A gate that ran nothing has not passed.
if (passed === 0) failed += 1;
process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
process.exitCode = failed > 0 ? 1 : 0;
