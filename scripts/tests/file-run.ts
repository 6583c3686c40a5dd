import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Parser, type Result } from 'tap-parser';

/** A failed assertion. */
export interface Failure {
  /** Names of its test and of the enclosing tests. */
  readonly name: string;
  readonly detail: string;
}

export interface Skip {
  readonly name: string;
  readonly reason: string;
}

/** Result of a test file. */
export interface FileResult {
  readonly file: string;
  readonly seconds: number;
  readonly passed: number;
  readonly failures: readonly Failure[];
  readonly skips: readonly Skip[];
  /** The last part of its standard error. */
  readonly stderr: string;
}

export interface FileOptions {
  readonly environment: NodeJS.ProcessEnv;
  /** Time after which the file's process is killed; it limits only hanging tests. */
  readonly limitSeconds: number;
  readonly signal: AbortSignal;
}

const COMPILE_CACHE = new URL('./compile-cache.ts', import.meta.url).href;
const STDERR_CHARACTERS = 4000;

/** Runs a test file in its own process. Its standard error is shown only if it fails. */
export async function runFile(file: string, { environment, limitSeconds, signal }: FileOptions): Promise<FileResult> {
  const begun = performance.now();
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--import', COMPILE_CACHE, file], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...environment, TAP: '1', TAP_TIMEOUT: String(limitSeconds) },
  });
  const failures: Failure[] = [];
  const skips: Skip[] = [];
  let passed = 0;
  const read = (parser: Parser, names: readonly string[]): void => {
    let failuresBefore = 0;
    let passedBefore = 0;
    parser.on('child', (inner: Parser) => {
      failuresBefore = failures.length;
      passedBefore = passed;
      read(inner, [...names, inner.name]);
    });
    parser.on('assert', (result: Result) => {
      const name = [...names, result.name].filter((part) => part !== '').join(' › ');
      if (result.skip) skips.push({ name, reason: result.skip === true ? 'no reason given' : result.skip });
      else if (result.todo) return;
      // The summary of a subtest counts only if the subtest failed outside of its assertions.
      else if (!result.ok && !(result.closingTestPoint && failures.length > failuresBefore))
        failures.push({ name, detail: describe(result.diag) });
      // A passed test without tap assertions has fast-check assertions.
      else if (result.ok && (!result.closingTestPoint || passed === passedBefore)) passed += 1;
    });
  };
  const parser = new Parser();
  read(parser, []);
  child.stdout.pipe(parser);
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_CHARACTERS);
  });
  const end = (): boolean => child.kill('SIGTERM');
  signal.addEventListener('abort', end, { once: true });
  let isOverLimit = false;
  // tap itself ends the file at the limit. This timer kills a process in which tap no longer runs.
  const timer = setTimeout(
    () => {
      isOverLimit = child.kill('SIGKILL');
    },
    (limitSeconds + 30) * 1000,
  );
  const [code, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  signal.removeEventListener('abort', end);
  if (!signal.aborted) {
    if (isOverLimit) failures.push({ name: 'the file', detail: `did not end within ${limitSeconds} s` });
    else if (code !== 0 && failures.length === 0) failures.push({ name: 'the file', detail: `ended with ${by ?? `status ${code}`}` });
    if (passed + failures.length + skips.length === 0) failures.push({ name: 'the file', detail: 'asserted nothing' });
  }
  return { file, seconds: (performance.now() - begun) / 1000, passed, failures, skips, stderr: stderr.trim() };
}

interface Diagnostics {
  readonly at?: { readonly fileName?: string; readonly lineNumber?: number };
  readonly diff?: string;
  readonly error?: unknown;
  readonly [key: string]: unknown;
}

/** tap's diagnostics without the quoted source. */
function describe(diagnostics: Diagnostics | null): string {
  if (diagnostics === null) return '';
  const { at, diff, source: _, stack, compare: __, ...rest } = diagnostics;
  const location = at?.fileName === undefined ? [] : [`at ${at.fileName}:${at.lineNumber}`];
  const others = Object.entries(rest).map(
    ([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value, null, 2)}`,
  );
  return [
    ...location,
    ...(diff === undefined ? [] : [diff.trim()]),
    ...others,
    ...(location.length === 0 && stack ? [String(stack)] : []),
  ].join('\n');
}
