/** Runs tap over all suites (or the files given) and closes with one line of counts, which CI reads. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';

/**
 * Suites that last long and mostly wait. They run one after the other beside the others, which keep two processes busy: at their
 * places in the alphabet they would be waited for at the end.
 */
const PATIENT = [
  'test/harness/gauntlet.test.ts',
  'test/harness/run.test.ts',
  'test/harness/soak.test.ts',
  'test/ros/embedded-hosts.test.ts',
  'test/ros/embedded-reliability.test.ts',
];

const totals = { passed: 0, failed: 0, skipped: 0 };

/** Reads what one tap prints, counts its leaves (assertions of every depth that are not the summary of a subtest) and tells of each suite. */
class Reader {
  #suite = '';
  #indentOfFailure = -1;
  #rest = '';

  chunk(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#line(line);
  }

  #line(text: string): void {
    const subtest = /^# Subtest: (.*)/.exec(text);
    if (subtest) this.#suite = subtest[1] ?? '';
    const point = /^( *)(not )?ok \d+(?: - (.*?))?(?: # (SKIP|TODO)(?: (.*))?)?(?: # time=(.*?))?( \{)?$/.exec(text);
    if (point) {
      const [, indent = '', not, name = '', directive, reason, time] = point;
      if (directive === 'SKIP') {
        totals.skipped += 1;
        process.stdout.write(`skipped  ${this.#suite}: ${name} (${reason ?? 'no reason given'})\n`);
      } else if (not) {
        if (time === undefined) totals.failed += 1;
        process.stdout.write(`FAILED   ${this.#suite}: ${name}\n`);
        this.#indentOfFailure = indent.length;
        return;
      } else if (time === undefined) {
        totals.passed += 1;
      } else if (indent === '') {
        process.stdout.write(`ok       ${this.#suite} (${seconds(time)} s)\n`);
      }
      this.#indentOfFailure = -1;
      return;
    }
    // What tap says about a failure follows it, indented further.
    if (this.#indentOfFailure >= 0 && text.startsWith(' '.repeat(this.#indentOfFailure + 2))) process.stdout.write(`  ${text}\n`);
  }
}

/** tap tells milliseconds, seconds or minutes: `12.5ms`, `1.5s`, `2m`. */
function seconds(time: string): string {
  const factor = time.endsWith('ms') ? 0.001 : time.endsWith('m') ? 60 : 1;
  return (Number.parseFloat(time) * factor).toFixed(1);
}

/** Resolves with the exit code. */
async function tap(files: readonly string[], jobs: number): Promise<number | null> {
  const reader = new Reader();
  const child = spawn('node_modules/.bin/tap', ['--reporter=tap', `--jobs=${jobs}`, ...files], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PATH: `${process.cwd()}/node_modules/.bin:${process.env['PATH']}` },
  });
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => reader.chunk(chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return code;
}

function everything(): Promise<number | null>[] {
  const all = globSync(['{src,ops,harness,dashboard/src,test}/**/*.test.ts']).filter((file) => !file.includes('node_modules'));
  const others = all.filter((file) => !PATIENT.includes(file));
  return [tap(others, 2), tap(PATIENT, 1)];
}

const given = process.argv.slice(2);
const codes = await Promise.all(given.length > 0 ? [tap(given, 2)] : everything());
if (codes.some((code) => code !== 0) && totals.failed === 0) totals.failed = 1;
// A gate that ran nothing has not passed.
if (totals.passed === 0) totals.failed += 1;
process.stdout.write(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped\n`);
process.exitCode = totals.failed > 0 ? 1 : 0;
