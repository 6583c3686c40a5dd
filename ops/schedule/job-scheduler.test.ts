import t, { type Test } from 'tap';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import { type Run, startRun } from './job-records.ts';
import { SimulatedMachine, settle } from './testing/simulated.ts';

/** Only one job: the others are off. */
const ONLY_BACKUP = { health_check: 'off', collect_metrics: 'off', collect_alerts: 'off' };

t.test('jobs run on schedule, and their results are recorded', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T11:59:30Z');
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
    last: { started: '2026-06-10T12:05:00.000Z', status: 'OK', exit_code: 0, trigger: 'schedule', failed: false, lines: ['OK  done'] },
    last_success: '2026-06-10T12:05:00.000Z',
    runs: 2,
    failures: 0,
    missed: 0,
    overlaps: 0,
  });
  t.match(machine.job('generate_7day_report'), { schedule: 'off', next: null, last: null });
  t.equal(machine.runs.length, 10, 'each was notified');
  t.match(machine.live.scheduler, { state: 'running', started: '2026-06-10T11:59:30.000Z' });
  await machine.scheduler.stop();
  t.match(machine.live.scheduler, { state: 'stopped' });
  t.same(machine.durable.at(-1), machine.live);
});

t.test('the live copy is always recent, and the disk is rarely written', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T12:00:01Z', {
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

t.test('a job never runs twice at the same time', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T12:00:30Z', { timeouts: { ...DEFAULT_CONFIG.ops.timeouts, collect_metrics: 600 } });
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

t.test('a job beyond its timeout is ended; a hung job is not started again', async (t) => {
  const timeouts = { health_check: 60, collect_metrics: 60, collect_alerts: 60, backup_logs: 60, generate_7day_report: 60 };
  const machine = new SimulatedMachine(t, '2026-06-10T23:59:59Z', { ...ONLY_BACKUP, backup_logs: '*/5 * * * *', timeouts });
  machine.result = null;
  machine.start('kill');
  await machine.run(1);
  const [first] = machine.begun;
  await machine.run(59);
  t.notOk(first?.signal.aborted);
  await machine.run(1);
  t.ok(first?.signal.aborted);
  await first?.end({ status: 'OK', lines: ['half of it'] });
  t.match(machine.job('backup_logs').last, { status: 'CRITICAL', exit_code: 2, lines: ['half of it', /did not end within 60 s/] });
  t.match(machine.log, [/^error job failed backup_logs/]);

  await machine.run(240);
  const second = machine.begun.at(-1);
  await machine.run(70);
  t.match(machine.job('backup_logs'), {
    running_since: '2026-06-11T00:05:00.000Z',
    failures: 2,
    last: { lines: [/did not end/, /does not stop/] },
  });
  t.match(machine.log.at(-2) ?? '', /error job hung/);
  await machine.run(230);
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

t.test('after a suspend of three nights one backup runs, soon after resuming', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T20:00:01Z');
  machine.start();
  await machine.run(100);
  machine.took();
  machine.clocks.sleep(3 * 86_400 + 20);
  await machine.run(20);
  t.match(machine.took('backup_logs'), [/^backup_logs catch_up 2026-06-13T20:02:1/]);
  t.match(machine.job('backup_logs'), { missed: 3, next: '2026-06-14T00:00:00.000Z', last: { trigger: 'catch_up' } });
  t.match(machine.job('collect_metrics'), { missed: 3 * 1440 });
  t.equal(machine.took('collect_metrics').length, 1, 'that of the minute in which it woke up');
  t.same(machine.took('health_check', 'collect_alerts'), []);
  t.ok(machine.log.some((line) => line.startsWith('warning run missed, catch-up pending backup_logs')));
  await machine.run(6 * 3600, 15);
  t.same(machine.took('backup_logs'), ['backup_logs schedule 2026-06-14T00:00:00']);
  await machine.scheduler.stop();
});

t.test('after three nights switched off one backup runs', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T20:00:01Z');
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

t.test('a backup that was interrupted, or not caught up yet, is not lost', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T23:59:59Z', ONLY_BACKUP);
  machine.result = null;
  machine.start();
  await machine.run(30);
  const [first] = machine.begun;
  const stopped = machine.scheduler.stop();
  t.ok(first?.signal.aborted);
  await first?.end({ status: 'UNKNOWN', lines: ['ended'] });
  await stopped;
  t.match(machine.job('backup_logs'), { runs: 0, failures: 0, last: null, next: '2026-06-11T00:00:00.000Z' }, 'not a failure');
  machine.took();

  machine.clocks.pass(5000);
  machine.start();
  await machine.run(3);
  t.same(machine.took(), []);
  machine.start(); // Killed before it was caught up.
  await machine.run(15);
  t.same(machine.took(), ['backup_logs catch_up 2026-06-11T00:00:47']);
  machine.start('reboot'); // The power fails in the middle of it,
  t.match(machine.job('backup_logs'), { next: '2026-06-11T00:00:47.000Z' }, 'overdue');
  await machine.run(3);
  machine.start('reboot'); // and again before it was caught up.
  await machine.run(15);
  await machine.begun.at(-1)?.end();
  t.same(machine.took(), ['backup_logs catch_up 2026-06-11T00:01:05']);
  t.match(machine.job('backup_logs'), { runs: 1, last: { status: 'OK' } });
  await machine.scheduler.stop();
});

t.test('a restart within a minute neither repeats nor skips a run', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T11:59:50Z');
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

t.test('a clock that is set forward, set back or lost is handled', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T12:00:30Z');
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
  await machine.run(17 * 3600, 15);
  t.same(machine.took('backup_logs'), ['backup_logs schedule 2026-06-09T00:00:00'], 'tonight as every night');
  machine.took();

  machine.clocks.set('1970-01-01T00:00:05Z');
  await machine.run(120);
  t.equal(machine.took('collect_metrics').length, 2);
  machine.clocks.set('2026-06-10T06:00:40Z');
  await machine.run(60);
  t.equal(machine.took('collect_metrics').length, 1);
  t.equal(machine.took('backup_logs').length, 1, 'the night in which the clock was not set');
  t.ok(machine.log.filter((line) => line === 'notice clock stepped').length >= 4);
  await machine.scheduler.stop();
});

t.test('a computer without a real-time clock starts in 1970, until its clock is set', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T20:00:30Z');
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

t.test('what a check finds and a report concludes is a result; no result is a failure', async (t) => {
  for (const [name, status, failed] of [
    ['health_check', 'CRITICAL', false],
    ['health_check', 'UNKNOWN', false],
    ['generate_7day_report', 'CRITICAL', false],
    ['generate_7day_report', 'UNKNOWN', true],
    ['backup_logs', 'CRITICAL', true],
    ['backup_logs', 'WARNING', false],
  ] as const)
    t.equal(startRun(name, 'schedule')(status, []).failed, failed, `${name} ${status}`);

  const machine = new SimulatedMachine(t, '2026-06-10T12:04:59Z', { collect_metrics: 'off', collect_alerts: 'off', backup_logs: 'off' });
  machine.result = { status: 'CRITICAL', lines: ['CRITICAL  1 of 9 checks: disk /'] };
  machine.start();
  await machine.run(2);
  t.match(machine.job('health_check'), { runs: 1, failures: 0, last: { status: 'CRITICAL', failed: false } });
  machine.result = { status: 'UNKNOWN', lines: ['UNKNOWN   health_check: it broke'], failed: true };
  await machine.run(300);
  t.match(machine.job('health_check'), { runs: 2, failures: 1, last: { failed: true } });
  machine.result = null;
  await machine.run(300 + machine.config.timeouts.health_check);
  await machine.begun.at(-1)?.end({ status: 'OK', lines: [] });
  t.match(machine.job('health_check'), { runs: 3, failures: 2, last: { failed: true, lines: [/did not end within/] } });
  await machine.scheduler.stop();
});

t.test('manual runs are counted', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T12:00:30Z', ONLY_BACKUP);
  machine.start();
  const run: Omit<Run, 'started'> = {
    duration_seconds: 2,
    status: 'CRITICAL',
    exit_code: 2,
    trigger: 'manual',
    failed: true,
    lines: ['CRITICAL  disk full'],
  };
  machine.inbox.push({ name: 'backup_logs', run: { ...run, started: '2026-06-10T12:00:35.000Z' } });
  await machine.run(20);
  t.match(machine.job('backup_logs'), { runs: 1, failures: 1, last: { trigger: 'manual' }, last_success: null });
  t.match(machine.runs, [{ name: 'backup_logs', run: { status: 'CRITICAL' } }], 'passed on, as a success resolves what was notified');
  machine.inbox.push({
    name: 'backup_logs',
    run: { ...run, status: 'OK', failed: false, exit_code: 0, started: '2026-06-09T12:00:35.000Z' },
  });
  await machine.run(20);
  t.match(machine.job('backup_logs'), { runs: 2, failures: 1, last: { status: 'CRITICAL' }, last_success: '2026-06-09T12:00:35.000Z' });
  await machine.scheduler.stop();
});

t.test('another configuration takes effect at once, and only for what it changes', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T12:00:30Z');
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

t.test('a schedule that was changed while the scheduler was off has missed no run', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T12:00:30Z');
  machine.start();
  await machine.scheduler.stop();
  machine.clocks.set('2026-06-11T12:00:40Z');
  machine.config = { ...machine.config, backup_logs: '0 3 * * *' };
  machine.start('reboot');
  t.match(machine.job('backup_logs'), { missed: 0, next: '2026-06-12T03:00:00.000Z' });
  await machine.scheduler.stop();
});

t.test('jobs that do not end in time do not delay the end of the scheduler', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T23:59:59Z', ONLY_BACKUP);
  machine.result = null;
  machine.start('kill');
  await machine.run(1);
  const stopped = machine.scheduler.stop();
  await machine.run(10);
  await stopped;
  t.match(
    machine.durable.at(-1)?.jobs.find(({ name }) => name === 'backup_logs'),
    { last: null, next: '2026-06-11T00:00:00.000Z' },
  );
  await machine.begun[0]?.end();
  await settle();
});

t.test('a nightly job runs once in a night with a daylight saving change', async (t) => {
  for (const [night, runAt, evening] of [
    ['spring', '2026-03-29T01:00:00', '2026-03-28T22:59:30Z'],
    ['autumn', '2026-10-25T00:30:00', '2026-10-24T21:59:30Z'],
  ] as const) {
    const machine = new SimulatedMachine(t, evening, { timezone: 'Europe/Berlin', backup_logs: '30 2 * * *', collect_alerts: 'off' });
    machine.start();
    await machine.run(6 * 3600, 15);
    t.same(machine.took('backup_logs'), [`backup_logs schedule ${runAt}`], night);
    t.equal(machine.took('health_check').length, 72, 'every five minutes for six hours');
    t.equal(machine.took('collect_metrics').length, 360);
    for (const name of ['backup_logs', 'health_check', 'collect_metrics'] as const) t.match(machine.job(name), { missed: 0, overlaps: 0 });
    await machine.scheduler.stop();
  }
});

/** Runs a daily job across a change of the local clock, together with jobs that run every minute, five minutes and hour. */
async function acrossChange(t: Test, timezone: string, from: string, hours: number, backup: string) {
  const machine = new SimulatedMachine(t, from, { timezone, backup_logs: backup, collect_alerts: '0 * * * *' });
  machine.start();
  await machine.run(hours * 3600, 15);
  const gaps = (name: 'collect_metrics' | 'health_check' | 'collect_alerts'): number[] => {
    const times = machine.took(name).map((line) => Date.parse(`${line.slice(-19)}Z`));
    return [...new Set(times.slice(1).map((ms, index) => (ms - (times[index] as number)) / 60_000))];
  };
  t.same(gaps('collect_metrics'), [1], `${timezone} ${from}: each minute`);
  t.same(gaps('health_check'), [5], `${timezone} ${from}: each five minutes`);
  if (timezone !== 'Australia/Lord_Howe') t.same(gaps('collect_alerts'), [60], `${timezone} ${from}: each hour`);
  for (const name of ['backup_logs', 'health_check', 'collect_metrics'] as const) t.match(machine.job(name), { missed: 0, overlaps: 0 });
  const next = machine.job('backup_logs').next?.slice(5, 16);
  await machine.scheduler.stop();
  return { times: machine.took('backup_logs').map((line) => line.slice(-14, -3)), next };
}

t.test('a daily time that is skipped in spring runs once, when the clock is set forward', async (t) => {
  t.same(await acrossChange(t, 'Europe/Berlin', '2026-03-29T00:00:30Z', 3, '30 2 * * *'), { times: ['03-29T01:00'], next: '03-30T00:30' });
  t.same(await acrossChange(t, 'Europe/Berlin', '2026-03-29T00:00:30Z', 3, '0,20,40 2 * * *'), {
    times: ['03-29T01:00'],
    next: '03-30T00:00',
  });
  t.same(await acrossChange(t, 'America/New_York', '2026-03-08T05:00:30Z', 3, '30 2 * * *'), {
    times: ['03-08T07:00'],
    next: '03-09T06:30',
  });
  t.same(await acrossChange(t, 'Australia/Lord_Howe', '2026-10-03T14:00:30Z', 3, '15 2 * * *'), {
    times: ['10-03T15:30'],
    next: '10-04T15:15',
  });
  t.same(await acrossChange(t, 'America/Santiago', '2026-09-06T02:00:30Z', 3, '0 0 * * *'), {
    times: ['09-06T04:00'],
    next: '09-07T03:00',
  });
});

t.test('a daily time that occurs twice in autumn runs once, the first time', async (t) => {
  t.same(await acrossChange(t, 'Europe/Berlin', '2026-10-24T23:00:30Z', 4, '30 2 * * *'), { times: ['10-25T00:30'], next: '10-26T01:30' });
  t.same(await acrossChange(t, 'America/New_York', '2026-11-01T04:00:30Z', 4, '30 1 * * *'), {
    times: ['11-01T05:30'],
    next: '11-02T06:30',
  });
  t.same(await acrossChange(t, 'Australia/Lord_Howe', '2026-04-04T13:00:30Z', 4, '45 1 * * *'), {
    times: ['04-04T14:45'],
    next: '04-05T15:15',
  });
  t.same(await acrossChange(t, 'Europe/Berlin', '2026-10-24T23:00:30Z', 4, '30 1-3 * * *'), {
    times: ['10-24T23:30', '10-25T00:30', '10-25T02:30'],
    next: '10-26T00:30',
  });
});

t.test('a zone without daylight saving time and with a half-hour offset is supported', async (t) => {
  t.same(await acrossChange(t, 'Asia/Kolkata', '2026-03-28T17:00:30Z', 3, '0 0 * * *'), { times: ['03-28T18:30'], next: '03-29T18:30' });
});

t.test('a restart in the repeated hour does not repeat a daily job', async (t) => {
  const machine = new SimulatedMachine(t, '2026-10-25T00:29:30Z', { ...ONLY_BACKUP, timezone: 'Europe/Berlin', backup_logs: '30 2 * * *' });
  machine.start();
  await machine.run(45 * 60, 15);
  t.same(machine.took(), ['backup_logs schedule 2026-10-25T00:30:00']);
  machine.start();
  t.match(machine.job('backup_logs'), { next: '2026-10-26T01:30:00.000Z' });
  await machine.run(3600, 15);
  t.same(machine.took(), []);
  await machine.scheduler.stop();
});

t.test('a slightly late run is still scheduled, a later one is missed and caught up', async (t) => {
  for (const [seconds, run, missed] of [
    [30, 'backup_logs schedule 2026-06-11T00:00:29', 0],
    [32, 'backup_logs catch_up 2026-06-11T00:00:41', 1],
  ] as const) {
    const machine = new SimulatedMachine(t, '2026-06-10T23:59:30Z', ONLY_BACKUP);
    machine.start();
    await machine.run(20);
    machine.clocks.sleep(seconds);
    await machine.run(30);
    t.same(machine.took(), [run]);
    t.equal(machine.job('backup_logs').missed, missed);
    await machine.scheduler.stop();
  }
});

t.test('a clock set back repeats no backup within three hours, and nothing within a minute', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T23:59:30Z');
  machine.start();
  await machine.run(60);
  t.equal(machine.took('backup_logs').length, 1);
  machine.took();
  machine.clocks.wallMs = Date.parse('2026-06-10T23:59:59.400Z');
  await machine.run(30);
  t.same(machine.took(), [], 'not twice within a second');
  machine.clocks.set('2026-06-10T22:59:40Z');
  await machine.run(30);
  t.equal(machine.took('collect_metrics').length, 1, 'no pause');
  t.equal(machine.job('backup_logs').next, '2026-06-12T00:00:00.000Z', 'no second backup of the same night');
  machine.clocks.set('2026-06-10T18:59:40Z');
  await machine.run(30);
  t.equal(machine.job('backup_logs').next, '2026-06-11T00:00:00.000Z', 'it may have been another night');
  await machine.scheduler.stop();
});

t.test('after a clock jump of years the heartbeat comes first, and node-cron does not list every minute', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T12:00:30Z');
  machine.start();
  await machine.run(5);
  machine.took();
  machine.clocks.set('2029-06-10T12:00:57Z');
  // If node-cron listed them, at 0.1 ms each, the test would exceed its timeout.
  await machine.run(65);
  t.match(machine.took('collect_metrics'), [/2029-06-10T12:01:0\d$/, 'collect_metrics schedule 2029-06-10T12:02:00']);
  t.equal(machine.took('backup_logs').length, 1);
  t.equal(machine.job('backup_logs').missed, 1096);
  await machine.scheduler.stop();
});

t.test('with a clock that is behind at the start nothing is missed until it is set', async (t) => {
  const machine = new SimulatedMachine(t, '2026-06-10T20:00:30Z');
  machine.start();
  await machine.run(100);
  await machine.scheduler.stop();
  machine.took();
  machine.clocks.set('2026-06-10T19:00:30Z');
  machine.start('reboot');
  await machine.run(120);
  t.same(machine.took('collect_metrics').length, 2);
  machine.clocks.set('2026-06-10T19:03:50Z');
  await machine.run(20);
  t.equal(machine.job('backup_logs').missed, 0);
  machine.took();
  machine.clocks.set('2026-06-12T20:00:40Z');
  await machine.run(40);
  t.match(machine.job('backup_logs'), { missed: 2, last: { trigger: 'catch_up' } });
  await machine.scheduler.stop();
});

t.test('if only a backup is scheduled, the heartbeat detects a daylight saving change', async (t) => {
  const machine = new SimulatedMachine(t, '2026-03-29T00:00:30Z', { ...ONLY_BACKUP, timezone: 'Europe/Berlin', backup_logs: '30 2 * * *' });
  machine.start();
  await machine.run(2 * 3600, 15);
  t.same(machine.took(), ['backup_logs schedule 2026-03-29T01:00:14']);
  t.equal(machine.job('backup_logs').missed, 0);
  await machine.scheduler.stop();
});
