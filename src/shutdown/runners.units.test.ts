import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { RunningItem, ShutdownContext } from '../core/shutdown/shutdown.ts';
import { unitItems } from './runners.ts';

const CONTEXT = {} as ShutdownContext; // A unit gets no information about the shutdown.

/** A systemctl that records its arguments and fails for b.service. */
function systemctl(folder: string): NodeJS.ProcessEnv {
  const script = `#!/bin/sh\nprintf '%s|' "$@" >> ${folder}/calls\necho >> ${folder}/calls\n[ "$4" != b.service ] || { echo "Unit b.service not loaded." >&2; exit 5; }\n`;
  writeFileSync(join(folder, 'systemctl'), script);
  chmodSync(join(folder, 'systemctl'), 0o755);
  return { PATH: `${folder}:${process.env['PATH']}` };
}

function start(units: readonly string[], environment: NodeJS.ProcessEnv, helperSocket: string | null): (() => RunningItem)[] {
  const items = unitItems({ units, environment, log: () => undefined, helperSocket });
  return items.map((item) => () => item.start(CONTEXT));
}

async function stopAll(units: readonly string[], environment: NodeJS.ProcessEnv, helperSocket: string | null): Promise<(string | null)[]> {
  const outcomes: (string | null)[] = [];
  for (const begin of start(units, environment, helperSocket)) outcomes.push(await begin().ended);
  return outcomes;
}

/** A stand-in for the helper that runs as root. */
async function helper(t: Test, answer: (request: string, connection: Socket) => void): Promise<string> {
  const path = join(temporaryFolder(t), 'helper.sock');
  const server = createServer((connection) => {
    connection.once('data', (text) => answer(text.toString(), connection));
    connection.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => {
    server.listen(path, resolve);
  });
  t.teardown(() => server.close());
  return path;
}

t.test('units are stopped one by one, by their exact names', async (t) => {
  const folder = temporaryFolder(t);
  for (const helperSocket of [null, join(folder, 'no-helper-here')]) {
    const outcomes = await stopAll(['a.service', 'b.service', 'robot@left arm.service'], systemctl(folder), helperSocket);
    t.match(outcomes, [null, /^exit code 5; last output: Unit b\.service not loaded\./, null]);
    t.equal(outcomes[1]?.includes('no-helper-here is missing (edge-health-stop.socket)'), helperSocket !== null);
    t.same(readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n'), [
      '--no-ask-password|stop|--|a.service|',
      '--no-ask-password|stop|--|b.service|',
      '--no-ask-password|stop|--|robot@left arm.service|',
    ]);
    rmSync(join(folder, 'calls'));
  }
});

t.test('without systemd the stop fails with the reason', async (t) => {
  t.match(await stopAll(['a.service'], { PATH: '/nowhere' }, null), [/cannot be started: ENOENT/]);
});

t.test('with a helper, systemctl is not run directly', async (t) => {
  const requests: string[] = [];
  const path = await helper(t, (request, connection) => {
    requests.push(request);
    connection.end(request.includes('b.') ? 'b.service is not in safe_shutdown.stop_units\u0007\n' : 'ok\n');
  });
  const outcomes = await stopAll(['a.service', 'b.service', 'c.service'], { PATH: '/nowhere' }, path);
  t.same(outcomes, [null, 'b.service is not in safe_shutdown.stop_units\\x07', null]);
  t.same(requests, ['stop a.service\n', 'stop b.service\n', 'stop c.service\n']);
});

t.test('a failure of the helper is reported', async (t) => {
  const closing = await helper(t, (_, connection) => connection.end());
  t.match(await stopAll(['a.service'], { PATH: '/nowhere' }, closing), [/helper\.sock closed without a response; see its journal/]);
  const endless = await helper(t, (_, connection) => {
    for (let n = 0; n < 100; n += 1) connection.write('x'.repeat(10_000));
    connection.end('\n');
  });
  const [problem] = await stopAll(['a.service'], { PATH: '/nowhere' }, endless);
  t.ok(problem && problem.length <= 1000);
  const stale = join(temporaryFolder(t), 'stale.sock');
  writeFileSync(stale, '');
  t.match(await stopAll(['a.service'], { PATH: '/nowhere' }, stale), [/stale\.sock cannot be reached: (ECONNREFUSED|ENOTSOCK)/]);
});

t.test('waiting for a unit that does not stop can be ended, and the helper cancels the request', async (t) => {
  let cancelled = (): void => undefined;
  const gone = new Promise<void>((resolve) => {
    cancelled = resolve;
  });
  let asked = (): void => undefined;
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const path = await helper(t, (_, connection) => {
    connection.once('close', cancelled);
    asked();
  });
  const [begin] = start(['hangs.service'], { PATH: '/nowhere' }, path);
  const running = (begin as () => RunningItem)();
  await isAsked;
  t.equal(await running.end(5), 'terminated');
  await gone;
  t.match(await running.ended, /without a response/);
  t.equal(await running.end(5), 'ended');

  const early = (start(['a.service'], { PATH: '/nowhere' }, `${path}.none`) as [() => RunningItem])[0]();
  t.equal(await early.end(5), 'terminated', 'cancelled before the absence of the helper is known');
  t.notMatch(await early.ended, /cannot be started/, 'nothing was run after that');
});
