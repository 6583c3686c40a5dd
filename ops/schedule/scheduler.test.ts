import { mock } from 'node:test';
import t, { type Test } from 'tap';
import type { Run } from './jobs.ts';
import { SimulatedMachine, settle } from './testing/simulated.ts';

/** Timeouts that pass when the test lets them pass. */
function virtualTimers(t: Test): typeof mock.timers {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  return mock.timers;
}

/** One job alone: the others are off. */
const ONLY_BACKUP = { health_check: 'off', collect_metrics: 'off', collect_alerts: 'off' };

t.test('jobs run at their times, and what came of it is kept', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T11:59:30Z');
  machine.start();
  await machine.run(331);
  t.same(machine.took('collect_metrics').length, 6);
  t.same(machine.took('health_check'), ['health_check schedule 2026-06-10T12:00:00', 'health_check schedule 2026-06-10T12:05:00']);
  t.same(machine.took('collect_alerts').length, 2);
  t.same(machine.took(), [], 'and no other');
  t.match(machine.job('health_check'), {
    schedule: '*/5 * * * *',
    next: '2026-06-10T12:10:00.000Z',
    running_since: null,
    last: { started: '2026-06-10T12:05:00.000Z', status: 'OK', exit_code: 0, trigger: 'schedule', lines: ['OK  done'] },
    last_success: '2026-06-10T12:05:00.000Z',
    runs: 2,
    failures: 0,
    missed: 0,
    overlaps: 0,
  });
  t.match(machine.job('generate_7day_report'), { schedule: 'off', next: null, last: null });
  t.equal(machine.runs.length, 10, 'each was told');
  t.match(machine.live.scheduler, { state: 'running', started: '2026-06-10T11:59:30.000Z' });
  await machine.scheduler.stop();
  t.match(machine.live.scheduler, { state: 'stopped' });
  t.same(machine.durable.at(-1), machine.live);
});

t.test('the live copy beats, the disk is spared', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T12:00:01Z', {
    health_check: 'off',
    collect_alerts: 'off',
    collect_metrics: '0 * * * *',
  });
  machine.start();
  for (let minute = 0; minute < 20; minute += 1) {
    await machine.run(60);
    t.ok(machine.clocks.wallMs - Date.parse(machine.live.scheduler.beat as string) < 60_000);
  }
  t.ok(machine.durable.length <= 6, `${machine.durable.length} writes in 20 minutes`);
  await machine.scheduler.stop();
});

t.test('a job never runs beside itself', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T12:00:30Z');
  machine.result = null;
  machine.start();
  await machine.run(240);
  t.equal(machine.begun.filter(({ name }) => name === 'collect_metrics').length, 1);
  t.match(machine.job('collect_metrics'), { overlaps: 3, running_since: '2026-06-10T12:01:00.000Z', runs: 0 });
  for (const one of machine.begun) await one.end();
  t.match(machine.job('collect_metrics'), { overlaps: 3, running_since: null, runs: 1 });
  await machine.run(60);
  t.equal(machine.begun.filter(({ name }) => name === 'collect_metrics').length, 2);
  for (const one of machine.begun) await one.end();

  machine.result = 'busy';
  await machine.run(60);
  t.match(machine.job('collect_metrics'), { overlaps: 4, runs: 2, running_since: null }, 'nor beside one of another process');
  await machine.scheduler.stop();
});

t.test('a job beyond its timeout is ended; one that does not end is left alone', async (t) => {
  const timers = virtualTimers(t);
  const timeouts = { health_check: 60, collect_metrics: 60, collect_alerts: 60, backup_logs: 60, generate_7day_report: 60 };
  const machine = new SimulatedMachine('2026-06-10T23:59:59Z', { ...ONLY_BACKUP, backup_logs: '*/5 * * * *', timeouts });
  machine.result = null;
  machine.start('kill', 10);
  await machine.run(1);
  const [first] = machine.begun;
  timers.tick(59_999);
  t.notOk(first?.signal.aborted);
  timers.tick(1);
  t.ok(first?.signal.aborted);
  await first?.end({ status: 'OK', lines: ['half of it'] });
  t.match(machine.job('backup_logs').last, { status: 'CRITICAL', exit_code: 2, lines: ['half of it', /did not end within 60 s/] });
  t.match(machine.log, [/^error job failed backup_logs/]);

  await machine.run(300);
  const second = machine.begun.at(-1);
  timers.tick(60_000);
  timers.tick(10_000);
  await settle();
  t.match(machine.job('backup_logs'), {
    running_since: '2026-06-11T00:05:00.000Z',
    failures: 2,
    last: { lines: [/did not end/, /does not react/] },
  });
  t.match(machine.log.at(-2) ?? '', /error job hung/);
  await machine.run(315);
  t.equal(machine.begun.length, 2, 'not beside the one that hangs');
  t.match(machine.job('backup_logs'), { overlaps: 1 });
  await second?.end();
  t.match(machine.job('backup_logs'), { running_since: null, runs: 2, failures: 2 }, 'counted once');
  machine.result = { status: 'OK', lines: [] };
  await machine.run(300);
  t.match(machine.job('backup_logs'), { last: { status: 'OK' }, runs: 3 });
  t.match(machine.log.at(-1) ?? '', /notice job recovered/);
  await machine.scheduler.stop();
});

t.test('asleep for three nights: one backup, soon after waking up', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T20:00:01Z');
  machine.start();
  await machine.run(100);
  machine.took();
  machine.clocks.sleep(3 * 86_400 + 20);
  await machine.run(20);
  t.same(machine.took('backup_logs'), [`backup_logs catch_up 2026-06-13T20:02:11`]);
  t.match(machine.job('backup_logs'), { missed: 3, next: '2026-06-14T00:00:00.000Z', last: { trigger: 'catch_up' } });
  t.match(machine.job('collect_metrics'), { missed: 3 * 1440 });
  t.equal(machine.took('collect_metrics').length, 1, 'that of the minute in which it woke up');
  t.same(machine.took('health_check', 'collect_alerts'), []);
  t.ok(machine.log.some((line) => line.startsWith('warning run missed, catch-up pending backup_logs')));
  await machine.run(6 * 3600);
  t.same(machine.took('backup_logs'), ['backup_logs schedule 2026-06-14T00:00:00']);
  await machine.scheduler.stop();
});

t.test('switched off for three nights: the same', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T20:00:01Z');
  machine.start();
  await machine.run(100);
  await machine.scheduler.stop();
  machine.clocks.set('2026-06-13T08:00:40Z');
  machine.took();
  machine.start('reboot');
  t.match(machine.job('backup_logs'), { next: '2026-06-13T00:00:00.000Z' }, 'overdue, also for the next one');
  await machine.run(15);
  t.same(machine.took(), ['backup_logs catch_up 2026-06-13T08:00:50']);
  t.match(machine.job('backup_logs'), { missed: 3, runs: 1, next: '2026-06-14T00:00:00.000Z' });
  await machine.scheduler.stop();
});

t.test('a backup that was interrupted, or not made up for yet, is not lost', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T23:59:59Z', ONLY_BACKUP);
  machine.result = null;
  machine.start();
  await machine.run(30);
  const [first] = machine.begun;
  const stopped = machine.scheduler.stop();
  t.ok(first?.signal.aborted);
  await first?.end({ status: 'UNKNOWN', lines: ['ended'] });
  await stopped;
  t.match(machine.job('backup_logs'), { runs: 0, failures: 0, last: null, next: '2026-06-11T00:00:00.000Z' }, 'nobody failed');
  machine.took();

  machine.clocks.pass(5);
  machine.start();
  machine.clocks.pass(3);
  machine.scheduler.beat();
  t.same(machine.took(), []);
  machine.start(); // Killed before it was made up for.
  await machine.run(15);
  t.same(machine.took(), ['backup_logs catch_up 2026-06-11T00:00:47']);
  machine.start('reboot'); // The power goes in the middle of it.
  await machine.run(15);
  await machine.begun.at(-1)?.end();
  t.same(machine.took(), ['backup_logs catch_up 2026-06-11T00:01:02']);
  t.match(machine.job('backup_logs'), { runs: 1, last: { status: 'OK' } });
  await machine.endAll();
  await machine.scheduler.stop();
});

t.test('a restart within a minute neither repeats nor leaves out', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T11:59:50Z');
  machine.start();
  for (let times = 0; times < 10; times += 1) {
    await machine.run(17);
    machine.start();
  }
  await machine.run(9);
  t.same(
    machine.took('collect_metrics').map((line) => line.slice(-8, -3)),
    ['12:00', '12:01', '12:02'],
  );
  t.equal(machine.job('collect_metrics').missed, 0);
  await machine.scheduler.stop();
});

t.test('a clock that is put forward, back, or lost', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T12:00:30Z');
  machine.start();
  await machine.run(100);
  machine.took();
  machine.clocks.set('2026-06-11T09:30:45Z');
  await machine.run(120);
  t.match(machine.took('backup_logs'), [/^backup_logs catch_up 2026-06-11T09:3/]);
  t.equal(machine.took('collect_metrics').length, 2, 'no storm');

  machine.clocks.set('2026-06-08T07:00:10Z');
  await machine.run(120);
  t.equal(machine.took('collect_metrics').length, 2, 'no pause');
  await machine.run(17 * 3600);
  t.same(machine.took('backup_logs'), ['backup_logs schedule 2026-06-09T00:00:00'], 'tonight as every night');
  machine.took();

  machine.clocks.set('1970-01-01T00:00:05Z');
  await machine.run(120);
  t.equal(machine.took('collect_metrics').length, 2);
  machine.clocks.set('2026-06-10T06:00:40Z');
  await machine.run(60);
  t.equal(machine.took('collect_metrics').length, 1);
  t.equal(machine.took('backup_logs').length, 1, 'the night in which nobody knew the time');
  t.ok(machine.log.filter((line) => line === 'notice clock stepped').length >= 4);
  await machine.scheduler.stop();
});

t.test('a computer without a clock of its own: it starts in 1970, and the clock is set later', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T20:00:30Z');
  machine.start();
  await machine.run(100);
  await machine.scheduler.stop();
  machine.took();
  for (const boot of ['first', 'second']) {
    machine.clocks.set('1970-01-01T00:00:20Z');
    machine.start('reboot');
    await machine.run(120);
    t.equal(machine.took('collect_metrics').length, 2, `${boot} start: it goes on as if it knew the time`);
    t.same(machine.took('backup_logs'), []);
    if (boot === 'first') await machine.scheduler.stop();
  }
  machine.clocks.set('2026-06-13T08:00:40Z');
  await machine.run(60);
  t.equal(machine.took('backup_logs').length, 1);
  t.match(machine.job('backup_logs'), { missed: 3, next: '2026-06-14T00:00:00.000Z' });
  t.equal(machine.took('collect_metrics').length, 1);
  await machine.scheduler.stop();
});

t.test('runs by hand count', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T12:00:30Z', ONLY_BACKUP);
  machine.start();
  const run: Omit<Run, 'started'> = {
    duration_seconds: 2,
    status: 'CRITICAL',
    exit_code: 2,
    trigger: 'manual',
    lines: ['CRITICAL  no room'],
  };
  machine.inbox.push({ name: 'backup_logs', run: { ...run, started: '2026-06-10T12:00:35.000Z' } });
  await machine.run(20);
  t.match(machine.job('backup_logs'), { runs: 1, failures: 1, last: { trigger: 'manual' }, last_success: null });
  t.match(machine.runs, [{ name: 'backup_logs', run: { status: 'CRITICAL' } }], 'told like any other');
  machine.inbox.push({ name: 'backup_logs', run: { ...run, status: 'OK', exit_code: 0, started: '2026-06-09T12:00:35.000Z' } });
  await machine.run(20);
  t.match(machine.job('backup_logs'), { runs: 2, failures: 1, last: { status: 'CRITICAL' }, last_success: '2026-06-09T12:00:35.000Z' });
  await machine.scheduler.stop();
});

t.test('another configuration takes effect at once, and only for what it changes', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T12:00:30Z');
  machine.start();
  await machine.run(40);
  machine.took();
  machine.scheduler.reload({ ...machine.config, health_check: '2 12 * * *', collect_metrics: 'off', timezone: 'Europe/Berlin' });
  t.match(machine.job('health_check'), { schedule: '2 12 * * *', next: '2026-06-11T10:02:00.000Z' });
  t.match(machine.job('collect_metrics'), { schedule: 'off', next: null, runs: 1 }, 'what it did is kept');
  t.match(machine.job('backup_logs'), { next: '2026-06-10T22:00:00.000Z' }, 'midnight in Berlin');
  await machine.run(240);
  t.same(machine.took('collect_metrics', 'health_check'), []);
  await machine.scheduler.stop();
});

t.test('a schedule that was changed meanwhile has missed nothing', async (t) => {
  const machine = new SimulatedMachine('2026-06-10T12:00:30Z');
  machine.start();
  await machine.scheduler.stop();
  machine.clocks.set('2026-06-11T12:00:40Z');
  machine.config = { ...machine.config, backup_logs: '0 3 * * *' };
  machine.start('reboot');
  t.match(machine.job('backup_logs'), { missed: 0, next: '2026-06-12T03:00:00.000Z' });
  await machine.scheduler.stop();
});

t.test('jobs that do not end in time do not hold up the end', async (t) => {
  const timers = virtualTimers(t);
  const machine = new SimulatedMachine('2026-06-10T23:59:59Z', ONLY_BACKUP);
  machine.result = null;
  machine.start('kill', 10);
  await machine.run(1);
  const stopped = machine.scheduler.stop();
  timers.tick(10_000);
  await stopped;
  t.match(
    machine.durable.at(-1)?.jobs.find(({ name }) => name === 'backup_logs'),
    { last: null, next: '2026-06-11T00:00:00.000Z' },
  );
  await machine.begun[0]?.end();
  await settle();
});

t.test('nights in which clocks change', async (t) => {
  for (const [night, runAt, evening] of [
    ['spring', '2026-03-29T01:00:00', '2026-03-28T22:59:30Z'],
    ['autumn', '2026-10-25T00:30:00', '2026-10-24T21:59:30Z'],
  ] as const) {
    const machine = new SimulatedMachine(evening, { timezone: 'Europe/Berlin', backup_logs: '30 2 * * *', collect_alerts: 'off' });
    machine.start();
    await machine.run(6 * 3600);
    t.same(machine.took('backup_logs'), [`backup_logs schedule ${runAt}`], night);
    t.equal(machine.took('health_check').length, 72, 'every five minutes for six hours');
    t.equal(machine.took('collect_metrics').length, 360);
    for (const name of ['backup_logs', 'health_check', 'collect_metrics'] as const) t.match(machine.job(name), { missed: 0, overlaps: 0 });
    await machine.scheduler.stop();
  }
});
