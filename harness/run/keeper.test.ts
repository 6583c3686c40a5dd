import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Keeper, startTime } from './keeper.ts';

t.setTimeout(180_000);

const KEEPER = new URL('keeper.sh', import.meta.url).pathname;

/** A keeper of programs that do what the test says; ended with it. */
function kept(t: Test, service: string, ops = 'trap "exit 0" TERM; while :; do sleep 0.1; done'): Keeper {
  const run = temporaryFolder(t);
  const keeper = new Keeper(run);
  mkdirSync(keeper.folder);
  const program = join(run, 'edge-health');
  writeFileSync(program, `#!/bin/sh\nif [ "$1" = ops ]; then ${ops}; fi\n${service}\n`, { mode: 0o755 });
  const child = spawn('/bin/sh', [KEEPER, keeper.folder, program, '/config.yaml'], { stdio: 'ignore', detached: true });
  t.teardown(async () => {
    await keeper.stop();
    child.unref();
  });
  return keeper;
}

async function until(holds: () => boolean, seconds = 60): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`after ${seconds} s still not: ${holds}`);
    await new Promise((later) => setTimeout(later, 50));
  }
}

const signals = (keeper: Keeper): unknown[] => keeper.exits().map(({ code, signal }) => signal ?? code);

t.test('a service that is killed is started again, and each end is noted', async (t) => {
  const keeper = kept(t, 'exec sleep 1000');
  await until(() => keeper.pid() !== null);
  t.ok(keeper.running);
  const first = keeper.pid() as number;
  process.kill(first, 'SIGKILL');
  // Asked once each time: what was killed may end between two questions.
  await until(() => ![null, first].includes(keeper.pid()));
  t.match(keeper.exits(), [{ pid: first, code: null, signal: 'KILL', at: Number }]);
  const second = keeper.pid() as number;
  t.not(second, first);
  t.equal(keeper.exits()[0]?.asked, undefined);

  await keeper.stop();
  t.equal(keeper.running, null);
  t.equal(startTime(second), null, 'it ends with the keeper');
  t.match(keeper.exits()[1], { pid: second, asked: true });
  t.equal(keeper.pid(), null);
  await keeper.stop();
});

t.test('a service that ends in order stays so, as under systemd', async (t) => {
  const keeper = kept(t, 'echo "I am done"; exit 0');
  await until(() => keeper.exits().length > 0);
  await new Promise((later) => setTimeout(later, 1500));
  t.same(signals(keeper), [0]);
  t.equal(keeper.lastWords(), 'I am done');
});

t.test('neither does one that nothing can be done for', async (t) => {
  const keeper = kept(t, 'exit 78');
  await until(() => keeper.exits().length > 0);
  await new Promise((later) => setTimeout(later, 1500));
  t.same(signals(keeper), [78]);
});

t.test('one that fails again and again is given up', async (t) => {
  const keeper = kept(t, 'exit 1');
  await until(() => keeper.exits().length >= 5);
  await new Promise((later) => setTimeout(later, 1500));
  t.same(signals(keeper), [1, 1, 1, 1, 1]);
});

t.test('everything ends where the folder goes away', async (t) => {
  const keeper = kept(t, 'exec sleep 1000');
  await until(() => keeper.pid() !== null);
  const pids = [keeper.running as number, keeper.pid() as number, Number(readFileSync(join(keeper.folder, 'ops.pid'), 'utf8'))];
  rmSync(keeper.folder, { recursive: true });
  await until(() => pids.every((pid) => startTime(pid) === null));
  t.same(
    pids.map((pid) => startTime(pid)),
    [null, null, null],
  );
  t.notOk(existsSync(keeper.folder));
});
