import t from 'tap';
import { readingOf } from '../../../testkit/weeks/reading.ts';
import type { ServiceEntry, ServiceReading } from '../entries.ts';
import { type Moment, ServiceRuns } from './service-runs.ts';

const WALL = Date.UTC(2026, 2, 4);

function moment(at: number, boot = 0): Moment {
  return { at, wall: WALL + at * 1000, boot };
}

function stamp(at: number): string {
  return new Date(WALL + at * 1000).toISOString();
}

function entry(started: number, more: Partial<ServiceEntry> = {}): ServiceEntry {
  const clocks = { boot: 0, mono: 0, wall: 0 };
  return {
    type: 'service',
    started: stamp(started),
    version: '0.1.0',
    pid: 1,
    invocation: `i${started}`,
    cause: 'signal',
    detail: 'SIGKILL',
    unseen: 0,
    ...clocks,
    ...more,
  };
}

function reading(started: number, restarts: number | null = null): ServiceReading {
  return readingOf({ started: stamp(started), group: restarts === null ? null : { memory_bytes: 1, anon_bytes: 1, restarts } });
}

function causes(runs: ServiceRuns): string[] {
  return runs.runs().map(({ cause }) => cause);
}

function unseen(runs: ServiceRuns): number[] {
  return runs.runs().map((run) => run.unseen);
}

t.test('runs are reported as they were recorded', async (t) => {
  const runs = new ServiceRuns();
  t.same([runs.runs(), runs.last], [[], null]);
  runs.recorded(entry(-100, { cause: 'first', detail: '' }), moment(1));
  runs.read(reading(-100), moment(60));
  runs.recorded(entry(70, { unseen: 1 }), moment(80));
  t.same(runs.runs(), [
    { from: -100, started: stamp(-100), version: '0.1.0', cause: 'first', detail: '', unseen: 0 },
    { from: 70, started: stamp(70), version: '0.1.0', cause: 'signal', detail: 'SIGKILL', unseen: 1 },
  ]);
  t.equal(runs.last?.started, stamp(70));
});

t.test('the same run recorded again is not a restart', async (t) => {
  const runs = new ServiceRuns();
  runs.recorded(entry(-100, { cause: 'first' }), moment(1));
  runs.recorded(entry(-100, { cause: 'unknown' }), moment(500));
  runs.recorded(entry(-100, { invocation: null }), moment(600));
  runs.read(reading(-100), moment(700));
  t.same(causes(runs), ['first']);
  runs.recorded(entry(-100, { invocation: 'other' }), moment(800));
  t.same(causes(runs), ['first', 'signal'], 'another one that started at the same time, by a clock that was set');
  const anonymous = new ServiceRuns();
  anonymous.recorded(entry(-100, { invocation: null, cause: 'first' }), moment(1));
  anonymous.recorded(entry(-100), moment(2));
  t.same(causes(anonymous), ['first']);
  anonymous.recorded(entry(50, { invocation: null }), moment(60));
  t.same(causes(anonymous), ['first', 'signal'], 'one that started at another time is another');
});

t.test('a run that only a reading shows counts, and gets the details recorded later', async (t) => {
  const runs = new ServiceRuns();
  runs.read(reading(-100), moment(60));
  runs.read(reading(100), moment(120));
  runs.read(reading(150), moment(180));
  t.same(causes(runs), ['first', 'unknown', 'unknown']);
  t.same(runs.runs()[2], { from: 150, started: stamp(150), version: null, cause: 'unknown', detail: '', unseen: 0 });
  runs.recorded(entry(150, { cause: 'oom-kill', unseen: 2 }), moment(190));
  t.same(runs.runs()[2], { from: 150, started: stamp(150), version: '0.1.0', cause: 'oom-kill', detail: 'SIGKILL', unseen: 2 });
  runs.recorded(entry(150, { cause: 'exit', unseen: 5 }), moment(200));
  t.same([causes(runs)[2], unseen(runs)[2]], ['oom-kill', 2], 'once');
  const later = new ServiceRuns();
  later.read(reading(-100), moment(60));
  later.read(reading(100), moment(120));
  later.recorded(entry(100, { cause: 'first' }), moment(130));
  t.same(causes(later), ['first', 'unknown'], 'it was not the first');
});

t.test('an older reading does not restore an earlier run', async (t) => {
  const runs = new ServiceRuns();
  runs.recorded(entry(-100, { cause: 'first' }), moment(1));
  runs.recorded(entry(50), moment(55));
  runs.read(reading(-100), moment(60));
  t.same(causes(runs), ['first', 'signal']);
  runs.read(reading(-100), moment(600, 1));
  t.same(causes(runs), ['first', 'signal', 'reboot'], 'in another boot it is another run with the same time');
});

t.test('a first run of a resumed observer is a restart if there was a run before', async (t) => {
  const runs = new ServiceRuns();
  runs.recorded(entry(-100, { cause: 'first' }), moment(1));
  runs.recorded(entry(100, { cause: 'first' }), moment(200));
  runs.recorded(entry(300, { cause: 'first' }), moment(400, 1));
  runs.recorded(entry(500, { cause: 'watchdog' }), moment(600, 2));
  t.same(causes(runs), ['first', 'unknown', 'reboot', 'watchdog']);
});

t.test('the restart counter of systemd shows unseen restarts', async (t) => {
  const after = (before: number | null, count: number | null, boot = 0, reported = 0): number | undefined => {
    const runs = new ServiceRuns();
    runs.recorded(entry(-100, { cause: 'first' }), moment(1));
    runs.read(reading(-100, before), moment(60));
    runs.recorded(entry(100, { unseen: reported }), moment(110, boot));
    runs.read(reading(100, count), moment(120, boot));
    runs.read(reading(100, count), moment(180, boot));
    t.equal(unseen(runs)[0], 0);
    return unseen(runs)[1];
  };
  t.equal(after(0, 1), 0, 'one was seen');
  t.equal(after(0, 3), 2);
  t.equal(after(5, 7), 1);
  t.equal(after(0, 0), 0, 'started by hand');
  t.equal(after(5, 2), 2, 'started by hand, then twice by itself');
  t.equal(after(5, 5), 5, 'started by hand, then five times by itself');
  t.equal(after(5, 2, 1), 2, 'booted, then twice by itself');
  t.equal(after(2, 5, 1), 5, 'the count begins again with a boot');
  t.equal(after(0, 3, 0, 1), 2, 'the greater of both');
  t.equal(after(0, 2, 0, 4), 4);
  t.equal(after(null, 3), 0, 'nothing to compare with');
  t.equal(after(3, null), 0);
});

t.test('the restart counter is compared once for each run', async (t) => {
  const runs = new ServiceRuns();
  runs.read(reading(-100, 0), moment(60));
  runs.read(reading(-100, 7), moment(70));
  t.same(unseen(runs), [0], 'a first run has none before it');
  runs.read(reading(100, 9), moment(120));
  runs.read(reading(100, 20), moment(130));
  t.same(unseen(runs), [0, 1], 'nor does a count that goes on within a run show any');
  runs.read(reading(200), moment(210));
  runs.read(reading(200, 23), moment(220));
  t.same(unseen(runs), [0, 1, 2], 'it may be recorded later');
  t.same(
    runs.runs().map(({ started }) => started),
    [stamp(-100), stamp(100), stamp(200)],
  );
  const unrelated = new ServiceRuns();
  unrelated.read(reading(-100, 0), moment(60));
  unrelated.read(reading(-50, null), moment(70));
  unrelated.read(reading(-50, 2), moment(80));
  unrelated.read(reading(-50, 4), moment(90));
  t.same(unseen(unrelated), [0, 1]);
});

t.test('a run began after the previous one was last seen, and before it was first seen itself', async (t) => {
  const from = (started: string, seen: Moment): number | undefined => {
    const runs = new ServiceRuns();
    runs.recorded(entry(-100, { cause: 'first' }), moment(1));
    runs.read(reading(-100), moment(60));
    runs.recorded({ ...entry(0), started }, seen);
    return runs.last?.from;
  };
  t.equal(from(stamp(90), moment(120)), 90);
  t.equal(from(stamp(-5000), moment(120)), 60, 'a clock that was set forward since');
  t.equal(from(stamp(5000), moment(120)), 120, 'a clock that was set back since');
  t.equal(from('not known', moment(120)), 120);
  const first = new ServiceRuns();
  first.recorded(entry(500, { cause: 'first' }), moment(1));
  t.equal(first.last?.from, 1);
  const reported = new ServiceRuns();
  reported.recorded(entry(-100, { cause: 'first' }), moment(10));
  reported.recorded(entry(5), moment(20));
  t.equal(reported.last?.from, 10, 'an entry shows it as well');
});
