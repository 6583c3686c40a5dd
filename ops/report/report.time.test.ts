import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { HOUR_MS, isoUtc, MINUTE_MS } from '../../src/core/time/time.ts';
import { collect, make, reportOf, rowsOf } from './testing/made.ts';
import { type Minute, START } from './testing/week.ts';

// Events of the service and of the clocks within the week.

t.test('restarts of the service, with another version and with the machine are listed with their known details', async (t) => {
  const week = (count: number) => (minutes: Minute[]) => {
    minutes.forEach((minute, i) => {
      if (i >= 1000)
        Object.assign(minute, { started: '2026-03-01T16:39:30.000Z', samples: 30 + 60 * (i - 1000), cpuSeconds: 0.6 * (i - 999) });
      if (i >= 2000 && count > 1)
        Object.assign(minute, {
          started: '2026-03-02T09:19:30.000Z',
          samples: 30 + 60 * (i - 2000),
          status: { version: '2.0.0' },
          cpuSeconds: 0.6 * (i - 1999),
        });
      if (i >= 3000 && count > 2) {
        Object.assign(minute, { started: '2026-03-03T02:00:00.000Z', bootId: 'boot/2', bootedMs: START + 3000 * MINUTE_MS - 20_000 });
        Object.assign(minute, { samples: 10 + 60 * (i - 3000), cpuSeconds: 0.6 * (i - 2999) });
      }
    });
    return undefined;
  };
  const two = await reportOf(t, week(2));
  t.match(two.of.uptime, { verdict: 'INCOMPLETE', missing: [/whether there were more restarts in the minute before/] });
  t.match(two.of.reliability, { verdict: 'PASS', summary: /^604680 of 604740 statuses published .* 0 not, 60 not known/ });
  t.equal(two.of.performance.verdict, 'PASS');
  const three = await reportOf(t, week(3));
  t.match(three.of.uptime, { verdict: 'FAIL', measured: { label: 'restarts', value: 3 } });
  t.equal(three.status, 'CRITICAL');
  t.same(
    rowsOf(three.of.uptime, /^Restarts/).map(([, , cause, detail, , version]) => [cause, detail, version]),
    [
      ['unknown', 'what ended the run before is not collected', '1.2.3'],
      ['upgrade', '', '2.0.0'],
      ['reboot', '', '2.0.0'],
    ],
  );
  t.match(rowsOf(three.of.uptime, /^Monitoring gaps/), [[/./, /./, Number, 'the machine was off']]);
});

t.test('a service that was down has missing samples and a gap in the data', async (t) => {
  const down = (minutes: number) => (week: Minute[]) => {
    for (const minute of week.slice(500, 500 + minutes)) minute.answered = false;
    for (const [i, minute] of week.slice(500 + minutes).entries())
      Object.assign(minute, { started: '2026-03-01T08:30:00.000Z', samples: 60 * i });
    return undefined;
  };
  const short = await reportOf(t, down(4));
  t.match(short.of.integrity, { verdict: 'INCOMPLETE', measured: { value: 300 } });
  const { of, report } = await reportOf(t, down(102));
  t.match(of.integrity, { verdict: 'FAIL', measured: { value: 103 * 60 } });
  t.match(of.reliability, { verdict: 'FAIL', summary: /, 6120 not, 60 not known/ });
  t.match(report.notes, [/^In 102 of 10080 rows the service did not respond: ECONNREFUSED/]);
});

t.test('a service not seen at the end fails', async (t) => {
  const { of } = await reportOf(t, (week) => {
    for (const minute of week.slice(-10)) minute.answered = false;
    return undefined;
  });
  t.match(of.uptime, { verdict: 'FAIL', measured: { label: 'last seen before the end' } });
});

t.test('judges gaps between rows', async (t) => {
  const short = await reportOf(t, (week) => week.filter((_, i) => i < 100 || i >= 104));
  t.match(short.of.integrity, { verdict: 'INCOMPLETE', measured: { value: 300 } });
  const long = await reportOf(t, (week) => week.filter((_, i) => i < 100 || i >= 105));
  t.match(long.of.integrity, { verdict: 'FAIL', measured: { value: 360 } });
  t.match(rowsOf(long.of.integrity, /collected/), [
    [isoUtc(START + 99 * MINUTE_MS + 50), isoUtc(START + 105 * MINUTE_MS + 50), 360, '', ''],
  ]);
  t.equal(long.of.uptime.verdict, 'PASS', 'the same run before and after it: it ran');
  t.match(long.of.reliability.summary, /^604740 of 604740/, 'and so its counters tell of all of it');
  const other = await reportOf(t, (week) => {
    for (const [i, minute] of week.slice(105).entries())
      Object.assign(minute, { started: isoUtc(START + 104 * MINUTE_MS), samples: 60 + 60 * i });
    return week.filter((_, i) => i < 100 || i >= 105);
  });
  t.match(other.of.uptime, { verdict: 'INCOMPLETE', missing: [/remain to be observed/, /more restarts/] });
  t.match(other.report.run, { monitoring_gap_seconds: 360, observed_seconds: 604_800 - 360 });
  t.match(other.of.reliability.summary, /^604380 of 604380/);
});

t.test('a collection that began within the week is neither a gap nor a whole week', async (t) => {
  const first = await reportOf(t, (week) =>
    week.slice(1440).map((minute) => ({ ...minute, started: isoUtc(START + 1439 * MINUTE_MS), bootedMs: START + 1438 * MINUTE_MS })),
  );
  t.match(first.of.integrity, { verdict: 'INCOMPLETE', missing: { 1: /the collected rows: not scanned for/ } });
  t.match(first.of.uptime, { verdict: 'INCOMPLETE', missing: [/24 h of 168 h remain to be observed/] });
  const data = collect(t, (week) => week.slice(1440));
  writeFileSync(join(data, 'metrics', 'metrics_2026-02-20.csv'), '');
  t.match((await make(data)).of.integrity, { verdict: 'FAIL', measured: { value: 86_400.05 } }, 'but it is, where it had begun before');
  t.match((await make(data)).of.uptime.verdict, 'PASS', 'and the service itself says that it ran');
});

t.test('a clock step is listed, and is neither a gap nor missing time', async (t) => {
  for (const step of [HOUR_MS, -HOUR_MS, -90_000]) {
    const { of } = await reportOf(t, (week) => {
      // Set right again two days later, so that the week ends in time.
      for (const minute of week.slice(2000, 5000)) minute.wallOffsetMs = step;
      return undefined;
    });
    const steps = rowsOf(of.uptime, /clock/).map(([, what, seconds]) => [what, seconds]);
    const [forward, back] = [
      ['clock set forward', Math.abs(step) / 1000],
      ['clock set back', -Math.abs(step) / 1000],
    ];
    t.same(steps, step > 0 ? [forward, back] : [back, forward], String(step));
    t.equal(of.uptime.verdict, 'PASS', String(step));
    t.match(of.reliability.summary, /^604740 of 604740/, String(step));
    t.match(of.integrity, { verdict: 'INCOMPLETE', measured: { value: 60 } }, String(step));
  }
});

t.test('tolerates a slewed wall clock, and clocks that are read one after the other', async (t) => {
  for (const slewedMs of [2000, -2000]) {
    const { of, report } = await reportOf(t, (week) => {
      for (const [i, minute] of week.entries()) {
        minute.wallOffsetMs = Math.round((slewedMs * (i - week.length)) / week.length);
        minute.bootedMs += (i * 7) % 20;
      }
      return week.filter((minute) => minute.ms + minute.wallOffsetMs >= START);
    });
    t.match(of.uptime, { verdict: 'PASS', missing: [] }, String(slewedMs));
    t.match(report.run.observed_seconds, /^60480[0-2]/);
    t.match(rowsOf(of.uptime, /clock/), []);
    t.match(of.reliability.summary, /^604\d{3} of 604\d{3} statuses published \((100|99\.99)/);
  }
});

t.test('a suspend is listed, and no sample is expected during it', async (t) => {
  const { of } = await reportOf(t, (week) => {
    for (const minute of week.slice(3060)) Object.assign(minute, { sleptSeconds: 3590, samples: minute.samples - 3590 });
    return week.filter((_, i) => i < 3000 || i >= 3060);
  });
  t.match(rowsOf(of.uptime, /^Suspends/), [[/./, 'suspended', 3590, null]]);
  t.match(rowsOf(of.integrity, /collected/), [[/./, /./, 70, 'suspended for 3590 s', '']]);
  t.match(of.reliability.summary, /^601150 of 601150/);
});
