import t from 'tap';
import { endOfProcess, endOfUnit, signalName, type UnitEnd, unseenRuns } from './causes.ts';

const NOTHING: UnitEnd = { result: null, code: null, status: null, asked: false, outOfMemory: false };

t.test('why a run of a unit ended', async (t) => {
  const cases: readonly (readonly [Partial<UnitEnd>, string, string])[] = [
    [{ result: 'signal', code: 'killed', status: '9' }, 'signal', 'SIGKILL'],
    [{ result: 'signal', code: 'killed', status: '11' }, 'signal', 'SIGSEGV'],
    [{ result: 'core-dump', code: 'dumped', status: '11' }, 'core-dump', 'SIGSEGV'],
    [{ result: 'watchdog', code: 'killed', status: '6' }, 'watchdog', 'SIGABRT'],
    [{ result: 'exit-code', code: 'exited', status: '70' }, 'exit', 'exit status 70'],
    [{ result: 'oom-kill', code: 'killed', status: '9', outOfMemory: true }, 'oom-kill', 'SIGKILL'],
    [{ result: 'signal', code: 'killed', status: '9', outOfMemory: true }, 'oom-kill', 'SIGKILL'],
    [{ result: 'exit-code', code: 'exited', status: '1', outOfMemory: true }, 'exit', 'exit status 1'],
    [{ result: 'signal', code: 'killed', status: '11', outOfMemory: true }, 'signal', 'SIGSEGV'],
    [{ result: 'timeout', code: 'killed', status: '9', asked: true }, 'timeout', 'SIGKILL'],
    [{ result: 'exit-code', code: 'exited', status: '3', asked: true }, 'exit', 'exit status 3'],
    [{ result: 'success', asked: true }, 'stopped', ''],
    [{ asked: true }, 'stopped', ''],
    [{ result: 'success' }, 'exit', 'it ended by itself, without an error'],
    [{ code: 'exited', status: '0' }, 'exit', 'exit status 0'],
    [{ code: 'killed', status: '15' }, 'signal', 'SIGTERM'],
    [{ result: 'protocol', code: 'exited', status: '0' }, 'unknown', 'result "protocol", exit status 0'],
    [{ result: 'resources' }, 'unknown', 'result "resources"'],
    [{}, 'unknown', ''],
  ];
  for (const [found, cause, detail] of cases) t.same(endOfUnit({ ...NOTHING, ...found }), { cause, detail }, JSON.stringify(found));
});

t.test('why a process ended', async (t) => {
  t.same(endOfProcess(null, 'SIGKILL'), { cause: 'signal', detail: 'SIGKILL' });
  t.same(endOfProcess(null, 'KILL'), { cause: 'signal', detail: 'SIGKILL' });
  t.same(endOfProcess(0, null), { cause: 'exit', detail: 'exit status 0' });
  t.same(endOfProcess(null, null), { cause: 'unknown', detail: '' });
  t.equal(signalName('200'), 'signal 200');
});

t.test('restarts that systemd counted and nobody saw', async (t) => {
  t.equal(unseenRuns(0, 1), 0, 'the one that is seen now');
  t.equal(unseenRuns(0, 3), 2);
  t.equal(unseenRuns(2, 3), 0);
  t.equal(unseenRuns(2, 0), 0, 'somebody started it');
  t.equal(unseenRuns(2, 2), 2, 'somebody started it, and it was restarted twice since');
  t.equal(unseenRuns(5, 1), 1);
  t.equal(unseenRuns(null, 4), 0);
  t.equal(unseenRuns(1, null), 0);
});
