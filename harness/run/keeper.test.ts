import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { startTime } from '../../src/system/running-service.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { Keeper } from './keeper.ts';

t.setTimeout(300_000);
// They wait for timers of the supervisor nearly all of the time.
t.jobs = 5;

const SUPERVISOR = fileURLToPath(new URL('keeper.sh', import.meta.url));
const UNTIL_STOPPED = 'trap "exit 0" TERM; while :; do sleep 0.1; done';

/** A supervisor of two shell scripts, `service` and `ops`; stopped at the end of the test. */
function supervise(t: Test, service: string, ops = UNTIL_STOPPED): { keeper: Keeper; process: ChildProcess } {
  const folder = temporaryFolder(t);
  const keeper = new Keeper(folder);
  mkdirSync(keeper.folder);
  const program = join(folder, 'edge-health');
  writeFileSync(program, `#!/bin/sh\nif [ "$1" = ops ]; then ${ops}; fi\n${service}\n`, { mode: 0o755 });
  const child = spawn('/bin/sh', [SUPERVISOR, keeper.folder, program, '/config.yaml'], { stdio: 'ignore', detached: true });
  t.teardown(() => keeper.stop());
  return { keeper, process: child };
}

const signals = (keeper: Keeper): unknown[] => keeper.exits().map(({ code, signal }) => signal ?? code);

/** All exits of the service, once the supervisor has nothing left to start: both programs have ended for good, and it ends as well. */
async function exitsToTheEnd(t: Test, service: string): Promise<Keeper> {
  const { keeper, process } = supervise(t, service, 'exit 0');
  await once(process, 'exit');
  return keeper;
}

t.test('a service that is killed is started again, and each exit is recorded', async (t) => {
  const { keeper } = supervise(t, 'exec sleep 1000');
  const first = await until('the service is started', () => keeper.pid());
  t.ok(keeper.running);
  process.kill(first, 'SIGKILL');
  const second = await until('it is started again', () => {
    const pid = keeper.pid();
    return pid !== first && pid;
  });
  t.match(keeper.exits(), [{ pid: first, code: null, signal: 'KILL', at: Number }]);
  t.equal(keeper.exits()[0]?.asked, undefined);

  await keeper.stop();
  t.equal(keeper.running, null);
  t.equal(startTime(second), null, 'it ends with the supervisor');
  t.match(keeper.exits()[1], { pid: second, asked: true });
  t.equal(keeper.pid(), null);
  await keeper.stop();
});

t.test('a service that exits with 0 is not started again, as under systemd', async (t) => {
  const keeper = await exitsToTheEnd(t, 'echo "I am done"; exit 0');
  t.same(signals(keeper), [0]);
  t.equal(keeper.lastWords(), 'I am done');
});

t.test('neither is one whose exit code says that a restart does not help', async (t) => {
  t.same(signals(await exitsToTheEnd(t, 'exit 78')), [78]);
});

t.test('one that fails five times within a minute is given up', async (t) => {
  t.same(signals(await exitsToTheEnd(t, 'exit 1')), [1, 1, 1, 1, 1]);
});

t.test('everything ends when the folder is removed', async (t) => {
  const { keeper } = supervise(t, 'exec sleep 1000');
  await until('both programs are started', () => keeper.pid() !== null && existsSync(join(keeper.folder, 'ops.pid')));
  const pids = [keeper.running as number, keeper.pid() as number, Number(readFileSync(join(keeper.folder, 'ops.pid'), 'utf8'))];
  // Renamed first: a file that is made meanwhile would fail the removal.
  renameSync(keeper.folder, `${keeper.folder}-removed`);
  rmSync(`${keeper.folder}-removed`, { recursive: true });
  await until('all have ended', () => pids.every((pid) => startTime(pid) === null));
  t.notOk(existsSync(keeper.folder));
});
