import t from 'tap';
import { type Exit, type KnownRun, ProcessSupervisor } from './supervisor.ts';

const before = (pid: number | null): KnownRun => ({ started: 'a', version: '1', pid, invocation: null, restarts: null, bootId: null });

t.test('returns the exits that the harness recorded', async (t) => {
  const exits: Exit[] = [];
  let pid: number | null = 10;
  const supervisor = new (class extends ProcessSupervisor {
    pid = () => pid;
    exits = () => exits;
  })();
  t.same(await supervisor.now(), { pid: 10, invocation: null, restarts: 0, controlGroup: null, cpuSeconds: null });
  t.equal(await supervisor.between(before(10)), null, 'it was not recorded');
  exits.push({ at: 1, pid: 10, code: null, signal: 'KILL' });
  t.same(await supervisor.between(before(10)), { cause: 'signal', detail: 'SIGKILL', unseen: 0 });
  exits.push({ at: 2, pid: 11, code: null, signal: 'SIGSEGV' }, { at: 3, pid: 12, code: 70, signal: null });
  t.same(await supervisor.between(before(10)), { cause: 'exit', detail: 'exit status 70', unseen: 2 });
  t.same(await supervisor.between(before(12)), { cause: 'exit', detail: 'exit status 70', unseen: 0 });
  exits.push({ at: 4, pid: 10, code: 0, signal: null, stopped: true });
  t.same(
    await supervisor.between(before(10)),
    { cause: 'stopped', detail: 'with the harness', unseen: 0 },
    'the same process id once more',
  );
  t.equal(await supervisor.between(before(99)), null);
  t.equal(await supervisor.between(before(null)), null);
  pid = null;
  t.equal(await supervisor.now(), null);
});
