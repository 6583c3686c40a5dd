import { mock } from 'node:test';
import t from 'tap';
import { Supervision } from './supervision.ts';

const status = {
  cpu_percent: 1,
  memory_percent: 2,
  disk_percent: 3,
  temperature: null,
  status: 'OK',
  node_name: 'n',
  timestamp: '2026-01-01T00:00:00.000Z',
} as const;
const QUIET = { restProblem: null, rosProblem: null, restartNeeded: [], storageError: null, shutdown: null };

t.test('a ping is sent only if the service made progress', async (t) => {
  const sent: string[] = [];
  const logged: string[] = [];
  let now = 100;
  let last: number | null = null;
  let openAlerts = 0;
  const supervision = new Supervision({
    manager: { via: 'test', notify: (state) => sent.push(state) },
    watchdogSeconds: 3600,
    periodSeconds: 1,
    monotonicSeconds: () => now,
    lastSampleSeconds: () => last,
    summary: () => ({ status, openAlerts, otherNodes: 0, transport: 'off', ...QUIET }),
    log: (_level, message) => logged.push(message),
  });
  supervision.beat();
  t.same(sent, [], 'nothing before it is ready');
  last = 99.5;
  supervision.ready();
  supervision.ready();
  t.equal(sent.length, 1, 'ready once');
  t.match(sent[0], /^READY=1\nWATCHDOG=1\nSTATUS=OK: /);
  supervision.beat();
  t.equal(sent[1], 'WATCHDOG=1', 'the line is sent when it changes');
  now = 110;
  supervision.beat();
  supervision.beat();
  t.equal(sent[2], 'STATUS=STALLED: the last sample is 10.5 s old', 'no ping, and why');
  t.equal(sent.length, 3);
  t.same(logged, ['watchdog ping withheld: the last sample is 10.5 s old'], 'logged once');
  last = 110;
  openAlerts = 1;
  supervision.beat();
  t.match(sent[3], /^WATCHDOG=1\nSTATUS=OK: .*1 open alert;/);
  t.match(logged[1], /watchdog pings resumed/);
  supervision.stop();
  supervision.ready();
  supervision.beat();
  t.match(sent[4], /^STOPPING=1\n/);
  t.equal(sent.length, 5, 'and nothing after the end');
});

t.test('a withheld ping is sent as soon as there is a sample again', async (t) => {
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const sent: string[] = [];
  let last = 94;
  const supervision = new Supervision({
    manager: { via: 'test', notify: (state) => sent.push(state) },
    watchdogSeconds: 10,
    periodSeconds: 1,
    monotonicSeconds: () => 100,
    lastSampleSeconds: () => last,
    summary: () => ({ status, openAlerts: 0, otherNodes: 0, transport: 'off', ...QUIET }),
    log: () => undefined,
  });
  t.teardown(() => supervision.stop());
  // State after the process was stopped for seconds: the ping is due before the sample.
  supervision.ready();
  t.match(sent, ['READY=1\nSTATUS=STALLED: the last sample is 6.0 s old']);
  mock.timers.tick(1000);
  t.equal(sent.length, 1, 'not before');
  last = 100;
  mock.timers.tick(300);
  t.match(sent[1], /^WATCHDOG=1\n/, 'long before the next regular one');
});

t.test('without a service manager nothing is sent', async (t) => {
  const supervision = new Supervision({
    manager: null,
    watchdogSeconds: null,
    periodSeconds: 1,
    monotonicSeconds: () => t.fail('asked for the time') as never,
    lastSampleSeconds: () => t.fail('asked for the last sample') as never,
    summary: () => t.fail('asked for the summary') as never,
    log: () => undefined,
  });
  supervision.setStatusLine('starting');
  supervision.ready();
  supervision.beat();
  supervision.stop();
});

t.test('ready once REST answers, and never after the end', async (t) => {
  const sent: string[] = [];
  const logged: string[] = [];
  let now = 0;
  const supervision = (): Supervision =>
    new Supervision({
      manager: { via: 'test', notify: (state) => sent.push(state) },
      watchdogSeconds: null,
      periodSeconds: 1,
      monotonicSeconds: () => now,
      lastSampleSeconds: () => now,
      summary: () => ({ status, openAlerts: 0, otherNodes: 0, transport: 'off', ...QUIET }),
      log: (_level, message) => logged.push(message),
    });
  let asked = 0;
  const late = supervision();
  await late.readyOnce(async () => {
    asked += 1;
    return asked === 3;
  });
  t.equal(asked, 3);
  t.match(sent, [/^READY=1/]);
  t.same(logged, ['REST API not responding yet'], 'logged once');
  late.stop();
  const ended = supervision();
  await ended.readyOnce(async () => {
    ended.stop();
    return true;
  });
  t.equal(sent.filter((state) => state.startsWith('READY=1')).length, 1);
  const unreachable = supervision();
  await unreachable.readyOnce(async () => {
    now += 15;
    return false;
  });
  t.equal(now, 30, 'asked for half a minute, half of TimeoutStartSec of the unit');
  t.match(sent.at(-1), /^READY=1/, 'a monitor that measures is not restarted because of its network');
  unreachable.stop();
});
