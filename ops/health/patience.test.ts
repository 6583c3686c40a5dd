import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { until } from '../../testkit/wait.ts';
import { askOnce, TooLong, within } from './patience.ts';
import { find, runTool } from './tool.ts';

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

t.test('what takes too long is given up, and a run that is ended gives up at once', async (t) => {
  t.equal(await within(5, Promise.resolve(1), signal), 1);
  await t.rejects(within(0.05, never, signal), TooLong);
  const ending = new AbortController();
  const given = within(600, never, ending.signal);
  ending.abort(new Error('ended'));
  await t.rejects(given, /ended/);
  await t.rejects(within(600, never, ending.signal), /ended/, 'also when it was ended before');
  t.notOk(process.getActiveResourcesInfo().includes('Timeout'), 'and no timer is left');
});

t.test('a question that hangs is not asked again', async (t) => {
  let asked = 0;
  let answer: (value: number) => void = () => undefined;
  const ask = (): Promise<number> => {
    asked += 1;
    return new Promise((resolve) => {
      answer = resolve;
    });
  };
  const runs = [1, 2, 3].map(() => within(0.02, askOnce('a mount', ask), signal));
  for (const run of runs) await t.rejects(run, TooLong);
  await t.rejects(within(0.02, askOnce('a mount', ask), signal), TooLong);
  t.equal(asked, 1);
  answer(7);
  await new Promise(setImmediate);
  const next = askOnce('a mount', ask);
  t.equal(asked, 2, 'once it was answered it is asked anew');
  answer(8);
  t.equal(await next, 8);
  await t.rejects(
    askOnce('a broken disk', () => Promise.reject(new Error('EIO'))),
    /EIO/,
  );
  t.equal(await askOnce('a broken disk', async () => 1), 1, 'a failure is an answer');
});

t.test('programs', async (t) => {
  const options = { environment: process.env, seconds: 600, signal };
  t.same(await runTool(['printf', '%s|', "it's", '$HOME; echo', 'a b'], options), {
    code: 0,
    stdout: "it's|$HOME; echo|a b|",
    complaint: '',
  });
  t.match(await runTool(['sh', '-c', 'echo first >&2; echo last >&2; exit 3'], options), { code: 3, complaint: 'last' });
  t.match(await runTool(['sh', '-c', 'kill -9 $$'], options), { code: null });
  t.equal(await find('no-such-program', process.env), null);
  t.match(await find('sh', process.env), /\/sh$/);
  t.equal(await find('sh', {}), null);
});

t.test('a program that hangs is killed with its children', async (t) => {
  const marker = `86400.${process.pid}`;
  await t.rejects(
    runTool(['sh', '-c', `sleep ${marker} & wait`], { environment: process.env, seconds: 0.5, signal }),
    /sh -c gave no answer within 0.5 s/,
  );
  const ending = new AbortController();
  const running = runTool(['sleep', marker], { environment: process.env, seconds: 600, signal: ending.signal });
  await until('it runs', () => isRunning('sleep', marker));
  ending.abort(new Error('the run is over'));
  await t.rejects(running, /the run is over/);
  await until('none of them runs', () => !isRunning('sleep', marker));
});
