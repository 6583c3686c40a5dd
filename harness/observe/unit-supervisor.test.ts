import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { endOfProcess, type KnownRun, type SupervisedRun, signalName } from './supervisor.ts';
import { endOfUnit, parseJournal, type UnitEnd, UnitSupervisor, unseenRuns } from './unit-supervisor.ts';

const recorded = (name: string): string => readFileSync(join(import.meta.dirname, 'testing/recorded', name), 'utf8');
const JOURNAL = recorded('journal-systemd-257.jsonl');
const RUNS = parseJournal(JOURNAL);
const UNIT = 'edge-health.service';
const invocationOf = (at: number): string => RUNS[at]?.invocation ?? '';

interface Answers {
  readonly show?: string | null;
  readonly journal?: string | null;
  readonly kernel?: string | null;
}

function supervisor({ journal = JOURNAL, kernel = '', show = null }: Answers) {
  const calls: string[] = [];
  const unit = new UnitSupervisor({
    unit: UNIT,
    environment: {},
    runProgram: async (file, parameters) => {
      calls.push([file, ...parameters].join(' '));
      if (file === 'systemctl') return show;
      return parameters.includes('_TRANSPORT=kernel') ? kernel : journal;
    },
  });
  return { unit, calls };
}

const known = (at: number, restarts: number | null = 0): KnownRun => ({
  started: 'a',
  version: '1',
  pid: 777,
  invocation: invocationOf(at),
  restarts,
  bootId: 'x',
});
const present = (at: number, restarts: number | null = 0): SupervisedRun => ({
  pid: 778,
  invocation: invocationOf(at),
  restarts,
  controlGroup: null,
  cpuSeconds: null,
});

t.test('reads the runs from a journal of systemd 257', async (t) => {
  t.same(
    RUNS.map(({ end }) => `${end.cause} ${end.detail}`.trim()),
    [
      ...['signal SIGKILL', 'signal SIGKILL', 'signal SIGKILL', 'signal SIGSEGV', 'watchdog SIGABRT'],
      ...['stopped', 'exit it exited without an error', 'signal SIGKILL', 'stopped', 'exit exit status 78'],
      'stopped',
      'signal SIGKILL',
      'unknown',
    ],
    'the last one is running',
  );
  t.equal(RUNS[0]?.endedMs, 1_795_304_965_557.097);
  t.equal(RUNS[5]?.endedMs, null, 'after a stop on request the journal has no end of the main process');
});

t.test('reports what happened between two runs', async (t) => {
  const { unit } = supervisor({});
  t.same(await unit.between(known(0), present(1, 1)), { cause: 'signal', detail: 'SIGKILL', unseen: 0 });
  t.same(
    await unit.between(known(0), present(4, 1)),
    { cause: 'signal', detail: 'SIGSEGV', unseen: 3 },
    'the journal has more than the counter',
  );
  t.same(await unit.between(known(4, 4), present(5, 5)), { cause: 'watchdog', detail: 'SIGABRT', unseen: 0 });
  t.same(await unit.between(known(8), present(10)), { cause: 'exit', detail: 'exit status 78', unseen: 1 });
  const lost = { ...known(0), invocation: 'rotated away' };
  t.same(await unit.between(lost, present(5, 4)), { cause: 'watchdog', detail: 'SIGABRT', unseen: 3 }, 'the counter then');
  const late = { ...present(0), invocation: 'not in the journal yet' };
  t.match(await unit.between(known(12), late), { cause: 'unknown', unseen: 0 });
});

t.test('recognizes an out-of-memory kill: by systemd, and with control groups of version 1 by the kernel', async (t) => {
  const oom = JSON.stringify({
    MESSAGE_ID: 'fe6faa94e7774663a0da52717891d8ef',
    INVOCATION_ID: invocationOf(0),
    __REALTIME_TIMESTAMP: '1795304965550000',
  });
  t.match(await supervisor({ journal: `${oom}\n${JOURNAL}` }).unit.between(known(0), present(1, 1)), {
    cause: 'oom-kill',
    detail: 'SIGKILL',
  });
  const kernel = 'Memory cgroup out of memory: Killed process 777 (node) total-vm:1kB\n';
  const { calls, unit } = supervisor({ kernel });
  t.match(await unit.between(known(0), present(1, 1)), { cause: 'oom-kill', detail: 'SIGKILL' });
  t.equal(calls.at(-1), 'journalctl --quiet --no-pager --output=cat --since=@1795304956 --until=@1795304976 _TRANSPORT=kernel');
  t.match(await supervisor({ kernel: kernel.replace('777', '7770') }).unit.between(known(0), present(1, 1)), { cause: 'signal' });
  t.match(await unit.between(known(3), present(4, 1)), { cause: 'signal', detail: 'SIGSEGV' }, 'which the kernel does not do');
});

t.test('a failed reload is a process of its own, not the end of the main process', async (t) => {
  const invocation = invocationOf(12);
  const reload = {
    MESSAGE_ID: '98e322203f7a4ed290d09fe03c09fe15',
    COMMAND: 'ExecReload',
    EXIT_CODE: 'exited',
    EXIT_STATUS: '78',
    INVOCATION_ID: invocation,
  };
  t.match(parseJournal(`${JSON.stringify(reload)}\nno JSON\n{"MESSAGE_ID":"x"}\n`), [
    { invocation, end: { cause: 'unknown', detail: '' } },
  ]);
});

t.test('without permission to read the journal, uses the state observed meanwhile and the restart counter', async (t) => {
  const show = recorded('show-auto-restart.txt');
  const invocation = /InvocationID=(\w+)/.exec(show)?.[1] ?? '';
  const before = { ...known(0), invocation };
  for (const journal of [null, '']) {
    const { unit } = supervisor({ journal, show });
    t.match(await unit.between(before, present(1, 1)), { cause: 'unknown', detail: /restarted it by itself; the journal/, unseen: 0 });
    t.match(await unit.between(before, present(1, 0)), { cause: 'unknown', detail: /^the journal/, unseen: 0 });
    await unit.onNoResponse('another');
    t.match(await unit.between(before, present(1, 1)), { cause: 'unknown' });
    await unit.onNoResponse(invocation);
    t.same(await unit.between(before, present(1, 1)), { cause: 'signal', detail: 'SIGKILL', unseen: 0 });
    t.match(await unit.between(before, present(1, 2)), { cause: 'unknown', unseen: 1 }, 'that was of an earlier one');
  }
  const stopped = show.replace('SubState=auto-restart', 'SubState=dead').replace('ActiveState=activating', 'ActiveState=inactive');
  const { unit } = supervisor({
    journal: null,
    show: stopped.replace('Result=signal', 'Result=success').replace('ExecMainCode=2', 'ExecMainCode=1'),
  });
  await unit.onNoResponse(invocation);
  t.match(await unit.between(before, present(1, 0)), { cause: 'stopped' });
});

t.test('returns the current run', async (t) => {
  const show = recorded('show-systemd-257.txt');
  const { calls, unit } = supervisor({ show });
  const invocation = '444609f7a3474ebf8d7e1d0d785fa12f';
  t.same(await unit.now(), { pid: 69, invocation, restarts: 0, controlGroup: '/system.slice/edge-health.service', cpuSeconds: null });
  t.match(calls, [/^systemctl show --property=\S+ -- edge-health.service$/]);
  t.match(await supervisor({ show: show.replace('[not set]', '1500000000') }).unit.now(), { cpuSeconds: 1.5 });
  t.match(await supervisor({ show: show.replace('[not set]', '18446744073709551615') }).unit.now(), { cpuSeconds: null });
  t.equal(await supervisor({ show: show.replace('MainPID=69', 'MainPID=0') }).unit.now(), null, 'between two of them');
  t.equal(await supervisor({ show: null }).unit.now(), null, 'no systemd');
  t.equal(await supervisor({ show: '' }).unit.now(), null);
});

t.test('returns null if systemctl is missing', async (t) => {
  t.equal(await new UnitSupervisor({ unit: UNIT, environment: { PATH: '/nowhere' } }).now(), null);
});

const NOTHING: UnitEnd = { result: null, code: null, status: null, isRequested: false, outOfMemory: false };

t.test('derives the cause from the end of a unit', async (t) => {
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
    [{ result: 'timeout', code: 'killed', status: '9', isRequested: true }, 'timeout', 'SIGKILL'],
    [{ result: 'exit-code', code: 'exited', status: '3', isRequested: true }, 'exit', 'exit status 3'],
    [{ result: 'success', isRequested: true }, 'stopped', ''],
    [{ isRequested: true }, 'stopped', ''],
    [{ result: 'success' }, 'exit', 'it exited without an error'],
    [{ code: 'exited', status: '0' }, 'exit', 'exit status 0'],
    [{ code: 'killed', status: '15' }, 'signal', 'SIGTERM'],
    [{ result: 'protocol', code: 'exited', status: '0' }, 'unknown', 'result "protocol", exit status 0'],
    [{ result: 'resources' }, 'unknown', 'result "resources"'],
    [{}, 'unknown', ''],
  ];
  for (const [found, cause, detail] of cases) t.same(endOfUnit({ ...NOTHING, ...found }), { cause, detail }, JSON.stringify(found));
});

t.test('derives the cause from the end of a process', async (t) => {
  t.same(endOfProcess(null, 'SIGKILL'), { cause: 'signal', detail: 'SIGKILL' });
  t.same(endOfProcess(null, 'KILL'), { cause: 'signal', detail: 'SIGKILL' });
  t.same(endOfProcess(0, null), { cause: 'exit', detail: 'exit status 0' });
  t.same(endOfProcess(null, null), { cause: 'unknown', detail: '' });
  t.equal(signalName('200'), 'signal 200');
});

t.test('returns the number of restarts that systemd counted and the observer missed', async (t) => {
  t.equal(unseenRuns(0, 1), 0, 'the one that is observed now');
  t.equal(unseenRuns(0, 3), 2);
  t.equal(unseenRuns(2, 3), 0);
  t.equal(unseenRuns(2, 0), 0, 'it was started on request');
  t.equal(unseenRuns(2, 2), 2, 'it was started on request and restarted twice since');
  t.equal(unseenRuns(5, 1), 1);
  t.equal(unseenRuns(null, 4), 0);
  t.equal(unseenRuns(1, null), 0);
});
