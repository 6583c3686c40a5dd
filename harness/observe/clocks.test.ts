import { mock } from 'node:test';
import t from 'tap';
import { ObserverClocks } from './clocks.ts';

/** A second passes on every clock, and more on some of them. */
function rig() {
  const time = { mono: 100, boot: 1000 as number | null, wall: 1_772_600_000_000 };
  const events: string[] = [];
  const observer = new ObserverClocks({
    clocks: { monotonicSeconds: () => time.mono, bootSeconds: () => time.boot, wallMilliseconds: () => time.wall },
    onEvent: (kind, seconds) => events.push(`${kind} ${seconds}`),
  });
  const pass = (awake: number, { slept = 0, stepped = 0 } = {}): void => {
    time.mono += awake;
    if (time.boot !== null) time.boot += awake + slept;
    time.wall += (awake + slept + stepped) * 1000;
    observer.check();
  };
  return { time, events, observer, pass };
}

t.test('reports steps and suspends of a second or more', async (t) => {
  const { events, pass, observer } = rig();
  pass(1);
  pass(1, { stepped: 0.9 });
  pass(1, { stepped: 3600 });
  pass(1, { slept: 600 });
  pass(1, { slept: 60, stepped: -3600 });
  t.same(events, ['step 3600', 'suspend 600', 'suspend 60', 'step -3600']);
  t.equal(observer.takeStalled(), 0, 'a suspend is no stall');
});

t.test('sums up stalls of more than 2 s', async (t) => {
  const { pass, time, observer } = rig();
  pass(1);
  pass(2.9);
  t.equal(observer.takeStalled(), 0);
  pass(11);
  pass(1);
  pass(6);
  t.equal(observer.takeStalled(), 15);
  t.equal(observer.takeStalled(), 0, 'each is returned once');
  time.mono += 31;
  t.equal(observer.takeStalled(), 30, 'also before the next tick');
});

t.test('returns the current clocks; without procfs boot time is monotonic time', async (t) => {
  const { time, observer } = rig();
  t.same(observer.now(), { boot: 1000, mono: 100, wall: 1_772_600_000_000 });
  time.boot = null;
  t.same(observer.now(), { boot: 100, mono: 100, wall: 1_772_600_000_000 });
});

t.test('ticks by itself between start and stop', async (t) => {
  let reads = 0;
  const clocks = { monotonicSeconds: () => ++reads, bootSeconds: () => reads, wallMilliseconds: () => reads * 1000 };
  const observer = new ObserverClocks({ clocks, onEvent: () => undefined });
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  observer.start();
  const begun = reads;
  mock.timers.tick(5000);
  t.equal(reads, begun + 5);
  observer.stop();
  mock.timers.tick(5000);
  t.equal(reads, begun + 5);
});
