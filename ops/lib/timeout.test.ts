import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { until } from '../../testkit/wait.ts';
import { findProgram, runProgram } from './run-program.ts';
import { sharePending, TimeoutError, withTimeout } from './timeout.ts';

/** Whether a process with exactly these arguments runs; a zombie has none. */
function isRunning(...argv: readonly string[]): boolean {
  return readdirSync('/proc').some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `${argv.join('\0')}\0`;
    } catch {
      return false; // No process, or one that has just ended.
    }
  });
}

const { signal } = new AbortController();
const never = new Promise<never>(() => undefined);

t.test('a timeout and the end of a run reject at once', async (t) => {
  t.equal(await withTimeout(5, Promise.resolve(1), signal), 1);
  await t.rejects(withTimeout(0.05, never, signal), TimeoutError);
  const ending = new AbortController();
  const given = withTimeout(600, never, ending.signal);
  ending.abort(new Error('ended'));
  await t.rejects(given, /ended/);
  await t.rejects(withTimeout(600, never, ending.signal), /ended/, 'also when it was ended before');
  t.notOk(process.getActiveResourcesInfo().includes('Timeout'), 'and no timer is left');
});

t.test('a pending call is not repeated', async (t) => {
  let calls = 0;
  let settle: (value: number) => void = () => undefined;
  const call = (): Promise<number> => {
    calls += 1;
    return new Promise((resolve) => {
      settle = resolve;
    });
  };
  const runs = [1, 2, 3].map(() => withTimeout(0.02, sharePending('a mount', call), signal));
  for (const run of runs) await t.rejects(run, TimeoutError);
  await t.rejects(withTimeout(0.02, sharePending('a mount', call), signal), TimeoutError);
  t.equal(calls, 1);
  settle(7);
  await new Promise(setImmediate);
  const next = sharePending('a mount', call);
  t.equal(calls, 2, 'repeated after its result');
  settle(8);
  t.equal(await next, 8);
  await t.rejects(
    sharePending('a broken disk', () => Promise.reject(new Error('EIO'))),
    /EIO/,
  );
  t.equal(await sharePending('a broken disk', async () => 1), 1, 'a failure is a result');
});

t.test('programs are run without a shell, and their output and exit code are returned', async (t) => {
  const options = { environment: process.env, timeoutSeconds: 600, signal };
  t.same(await runProgram(['printf', '%s|', "it's", '$HOME; echo', 'a b'], options), {
    exitCode: 0,
    stdout: "it's|$HOME; echo|a b|",
    complaint: '',
  });
  t.match(await runProgram(['sh', '-c', 'echo first >&2; echo last >&2; exit 3'], options), { exitCode: 3, complaint: 'last' });
  t.match(await runProgram(['sh', '-c', 'kill -9 $$'], options), { exitCode: null });
  t.equal(await findProgram('no-such-program', process.env), null);
  t.match(await findProgram('sh', process.env), /\/sh$/);
  t.equal(await findProgram('sh', {}), null);
});

t.test('a program that hangs is killed with its children', async (t) => {
  const marker = `86400.${process.pid}`;
  await t.rejects(
    runProgram(['sh', '-c', `sleep ${marker} & wait`], { environment: process.env, timeoutSeconds: 0.5, signal }),
    /sh -c: no response within 0.5 s/,
  );
  const ending = new AbortController();
  const running = runProgram(['sleep', marker], { environment: process.env, timeoutSeconds: 600, signal: ending.signal });
  await until('it runs', () => isRunning('sleep', marker));
  ending.abort(new Error('the run is over'));
  await t.rejects(running, /the run is over/);
  await until('none of them runs', () => !isRunning('sleep', marker));
});
