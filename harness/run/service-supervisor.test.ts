import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { startTime } from '../../src/client/running-service.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { ServiceSupervisor } from './service-supervisor.ts';

t.setTimeout(300_000);
// These tests spend nearly all of their time waiting for timers of the supervisor.
t.jobs = 5;

const SCRIPT = fileURLToPath(new URL('service-supervisor.sh', import.meta.url));
const UNTIL_STOPPED = 'trap "exit 0" TERM; while :; do sleep 0.1; done';

/** A supervisor of two shell scripts, `service` and `ops`; stopped at the end of the test. */
function supervise(t: Test, service: string, ops = UNTIL_STOPPED): { supervisor: ServiceSupervisor; process: ChildProcess } {
  const folder = temporaryFolder(t);
  const supervisor = new ServiceSupervisor(folder);
  mkdirSync(supervisor.folder);
  const program = join(folder, 'edge-health');
  writeFileSync(program, `#!/bin/sh\nif [ "$1" = ops ]; then ${ops}; fi\n${service}\n`, { mode: 0o755 });
  const child = spawn('/bin/sh', [SCRIPT, supervisor.folder, program, '/config.yaml'], { stdio: 'ignore', detached: true });
  t.teardown(() => supervisor.stop());
  return { supervisor, process: child };
}

const signals = (supervisor: ServiceSupervisor): unknown[] => supervisor.exits().map(({ code, signal }) => signal ?? code);

/** All exits of the service, once both programs have ended for good and the supervisor has ended as well. */
async function exitsToTheEnd(t: Test, service: string): Promise<ServiceSupervisor> {
  const { supervisor, process } = supervise(t, service, 'exit 0');
  await once(process, 'exit');
  return supervisor;
}

t.test('a service that is killed is started again, and each exit is recorded', async (t) => {
  const { supervisor } = supervise(t, 'exec sleep 1000');
  const first = await until('the service is started', () => supervisor.pid());
  t.ok(supervisor.running);
  process.kill(first, 'SIGKILL');
  const second = await until('it is started again', () => {
    const pid = supervisor.pid();
    return pid !== first && pid;
  });
  t.match(supervisor.exits(), [{ pid: first, code: null, signal: 'KILL', at: Number }]);
  t.equal(supervisor.exits()[0]?.stopped, undefined);

  await supervisor.stop();
  t.equal(supervisor.running, null);
  t.equal(startTime(second), null, 'it ends with the supervisor');
  t.match(supervisor.exits()[1], { pid: second, stopped: true });
  t.equal(supervisor.pid(), null);
  await supervisor.stop();
});

t.test('a service that exits with 0 is not started again, as under systemd', async (t) => {
  const supervisor = await exitsToTheEnd(t, 'echo "I am done"; exit 0');
  t.same(signals(supervisor), [0]);
  t.equal(supervisor.lastLogLines(), 'I am done');
});

t.test('a service that exits with a code of RestartPreventExitStatus is not started again', async (t) => {
  t.same(signals(await exitsToTheEnd(t, 'exit 78')), [78]);
});

t.test('a service that fails five times within a minute is not started again', async (t) => {
  t.same(signals(await exitsToTheEnd(t, 'exit 1')), [1, 1, 1, 1, 1]);
});

t.test('all processes end when the folder is removed', async (t) => {
  const { supervisor } = supervise(t, 'exec sleep 1000');
  await until('both programs are started', () => supervisor.pid() !== null && existsSync(join(supervisor.folder, 'ops.pid')));
  const pids = [supervisor.running as number, supervisor.pid() as number, Number(readFileSync(join(supervisor.folder, 'ops.pid'), 'utf8'))];
  // Renamed first: a file created meanwhile would make the removal fail.
  renameSync(supervisor.folder, `${supervisor.folder}-removed`);
  rmSync(`${supervisor.folder}-removed`, { recursive: true });
  await until('all have ended', () => pids.every((pid) => startTime(pid) === null));
  t.notOk(existsSync(supervisor.folder));
});
