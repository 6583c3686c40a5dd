import t from 'tap';
import { alert, EPOCH, Observed, reading, status } from './testing/observed.ts';

const RESTART = { version: '1', pid: 2, invocation: null, cause: 'signal', detail: 'SIGKILL', unseen: 1 } as const;

t.test('a minute is one entry: what was received, delta-coded, with the readings of the minute', async (t) => {
  const it = new Observed();
  it.onSecond = () => {
    it.observation.onStatus('topic', status(it.now.wall));
    it.observation.onStatus('events', status(it.now.wall));
  };
  await it.runs();
  const [begin, first, ...more] = it.of('minute');
  t.match(begin, { boot: 1000, topic: { first: null, steps: [] }, service: { samples: 1 } }, 'the counters at the begin');
  t.match(first, { boot: 1060, topic: { first: EPOCH + 1000, steps: Array(59).fill(1000), slowest_ms: 0, fastest_ms: 0 } });
  t.match(first, { host: { cpu: 10, memory: 20, disk: 30, celsius: null }, observer: { cpu_seconds: 1, resident_bytes: 2 } });
  t.equal(first?.service?.resident_bytes.length, 4, 'four readings');
  t.equal(more.length, 0, 'the end makes the last one');
  t.ok(it.observation.observedSeconds(it.now) >= 119.9, 'it ends by itself');
  t.ok(it.checks >= 10);
});

t.test('statuses received before the start do not belong to the run', async (t) => {
  const it = new Observed({ plannedSeconds: 60.9 });
  it.observation.onStatus('topic', status(EPOCH - 1000));
  it.observation.onAlert('topic', alert('a', 'WARNING'));
  t.notOk(it.observation.hasReceived, 'the event stream is still to come');
  it.observation.onStatus('events', status(EPOCH - 1000));
  t.ok(it.observation.hasReceived);
  it.pass(5);
  await it.runs();
  t.equal(it.of('minute')[1]?.topic?.first, null);
  t.match(it.of('alert'), [{ boot: 1005, alert_id: 'a' }], 'but what is open is, as of its begin');
});

t.test('minutes have no readings while the service does not respond', async (t) => {
  const it = new Observed({ plannedSeconds: 60.9 });
  it.reading = null;
  await it.runs();
  t.same(
    it.of('minute').map(({ service }) => service),
    [null, null],
  );
});

t.test('another run of the service is recorded at once', async (t) => {
  const it = new Observed();
  it.run = { ...RESTART, started: reading().started, cause: 'first', unseen: 0 };
  it.onSecond = (second) => {
    if (second !== 20) return;
    const started = '2026-03-04T05:06:27.000Z';
    it.reading = { ...reading(started), resident_bytes: [60e6] };
    it.run = { ...RESTART, started };
  };
  await it.runs();
  const [first, second] = it.of('service');
  t.match(first, { cause: 'first', boot: 1000 });
  t.match(second, { cause: 'signal', unseen: 1, boot: 1030 });
  t.match(it.of('minute')[1], { boot: 1030, service: { resident_bytes: [60e6] } }, 'with the memory of the new run alone');
  t.equal(it.observation.restarts, 2);
});

t.test('alert changes and lists of open alerts are recorded', async (t) => {
  const it = new Observed({ plannedSeconds: 200 });
  it.onSecond = (second) => {
    if (second === 5) {
      it.open = [{ alert_id: 'a', severity: 'CRITICAL', metric: 'cpu_percent' }];
      it.observation.onAlert('topic', alert('a', 'CRITICAL'));
      it.observation.onAlert('events', alert('a', 'CRITICAL'));
    }
    // Only the count that the service reports changes.
    if (second === 70) {
      it.open = [];
      it.reading = reading();
    }
    if (second === 6) it.reading = { ...reading(), open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 1 } };
  };
  await it.runs();
  t.same(
    it.of('open').map(({ open }) => open.length),
    [0, 1, 0],
    'at the begin and at each change',
  );
  t.match(it.of('alert'), [{ by: 'topic' }, { by: 'events' }]);
  t.ok((it.of('minute')[1]?.boot ?? 0) <= 1011, 'a CRITICAL one is on the disk within ten seconds');
  t.ok((it.of('open')[2]?.boot ?? Number.POSITIVE_INFINITY) <= 1090);
});

t.test('after the clock was set back, scans up to the former time and then from the present one', async (t) => {
  const it = new Observed({ plannedSeconds: 69.9 });
  it.onSecond = (second) => {
    if (second === 30) {
      it.pass(0, -3600);
      it.observation.onClock('step', -3600);
    }
  };
  await it.runs();
  await it.ends('complete', 0);
  t.match(it.of('clock'), [{ kind: 'step', seconds: -3600 }]);
  const [before, after] = it.requests;
  t.same(before, [EPOCH, EPOCH + 30_000], 'up to what it showed');
  t.same(after, [EPOCH - 3_570_000, it.of('end')[0]?.wall], 'and from what it shows');
});

t.test('scans the stored samples every hour', async (t) => {
  const it = new Observed({ plannedSeconds: 3699.9 });
  await it.runs();
  await it.ends('complete', 0);
  const ends = it.of('coverage').map(({ to }) => Math.round((to - EPOCH) / 1000));
  t.same(ends, [3595, 3700]);
  for (const [index, { from }] of it.of('coverage').entries()) t.equal(from, it.of('coverage')[index - 1]?.to ?? EPOCH);
});

t.test('the end is fixed before pending data has arrived', async (t) => {
  const it = new Observed({ plannedSeconds: 29.9 });
  it.open = [{ alert_id: 'a', severity: 'CRITICAL', metric: 'cpu_percent' }];
  it.onSecond = () => it.observation.onStatus('topic', status(it.now.wall));
  await it.runs();
  const end = it.now;
  const ended = it.ends('complete', 10);
  // A status stamped before the end may arrive later; one stamped after it belongs to no run.
  it.observation.onStatus('topic', status(end.wall - 1));
  for (const channel of ['topic', 'events'] as const) it.observation.onStatus(channel, status(end.wall + 500));
  it.pass(2);
  it.observation.onAlert('topic', alert('a', 'CRITICAL'));
  await ended;
  const last = it.of('minute').at(-1);
  t.match(last, { ...end, topic: { steps: { length: 30 } } }, 'thirty, and the late one');
  t.equal(it.of('minute').at(-1)?.events?.first, null);
  t.match(it.entries.at(-1), { type: 'end', reason: 'complete', ...end });
  t.match(it.entries.at(-2), { type: 'coverage' });
  t.match(it.of('open').at(-1)?.open, [{ alert_id: 'a' }]);
  t.equal(it.of('alert').length, 1, 'received on the topic, too');
});

t.test('channels that do not agree are waited for until the timeout', async (t) => {
  const it = new Observed({
    plannedSeconds: 29.9,
    hasTopic: true,
    openByTopic: new Map([['b', { alert_id: 'b', severity: 'CRITICAL', metric: 'm' }]]),
  });
  await it.runs();
  for (const channel of ['topic', 'events'] as const) it.observation.onStatus(channel, status(it.now.wall));
  const before = it.openRequests;
  await it.ends('complete', 1);
  t.ok(it.openRequests - before > 2, 'REST is requested again in the meantime');
  t.equal(it.of('open').length, 2, 'one at the begin, one at the end');
});

t.test('a removed record ends the run', async (t) => {
  const it = new Observed();
  it.check = () => {
    throw new Error('the record is gone');
  };
  await t.rejects(it.runs(), { message: 'the record is gone' });
});

t.test('a run can be stopped', async (t) => {
  const it = new Observed({ plannedSeconds: 1e9 });
  it.onSecond = (second) => {
    if (second === 3) it.ending.abort();
  };
  await it.runs();
  t.ok(it.observation.observedSeconds(it.now) < 100);
  const already = new Observed();
  already.ending.abort();
  await already.runs();
  t.equal(already.of('minute').length, 1);
});

t.test('a stall of the observer extends the run', async (t) => {
  const stalls = [0, 0, 7];
  const it: Observed = new Observed({ plannedSeconds: 29.9, clocks: { now: () => it.now, takeStalled: () => stalls.shift() ?? 0 } });
  it.onSecond = (second) => {
    if (second === 2) it.pass(7);
  };
  await it.runs();
  await it.ends('complete', 0);
  t.match(it.of('minute').at(-1), { boot: 1037, stalled_seconds: 7 });
});
