import { mock } from 'node:test';
import t from 'tap';
import { WatchClocks } from './clocks.ts';
import { Notes } from './notes.ts';

/** A second passes on every clock, and on some of them something more. */
function rig() {
  const time = { mono: 100, boot: 1000 as number | null, wall: 1_772_600_000_000 };
  const events: string[] = [];
  const watch = new WatchClocks({
    clocks: { monotonicSeconds: () => time.mono, bootSeconds: () => time.boot, wallMilliseconds: () => time.wall },
    onEvent: (kind, seconds) => events.push(`${kind} ${seconds}`),
  });
  const pass = (awake: number, { slept = 0, stepped = 0 } = {}): void => {
    time.mono += awake;
    if (time.boot !== null) time.boot += awake + slept;
    time.wall += (awake + slept + stepped) * 1000;
    watch.check();
  };
  return { time, events, watch, pass };
}

t.test('steps and suspends, whichever of them, from a second on', async (t) => {
  const { events, pass, watch } = rig();
  pass(1);
  pass(1, { stepped: 0.9 });
  pass(1, { stepped: 3600 });
  pass(1, { slept: 600 });
  pass(1, { slept: 60, stepped: -3600 });
  t.same(events, ['step 3600', 'suspend 600', 'suspend 60', 'step -3600']);
  t.equal(watch.takeStalled(), 0, 'a machine that sleeps keeps nobody from running');
});

t.test('what kept the process from running, in pieces of more than 2 s', async (t) => {
  const { pass, time, watch } = rig();
  pass(1);
  pass(2.9);
  t.equal(watch.takeStalled(), 0);
  pass(11);
  pass(1);
  pass(6);
  t.equal(watch.takeStalled(), 15);
  t.equal(watch.takeStalled(), 0, 'each is told once');
  time.mono += 31;
  t.equal(watch.takeStalled(), 30, 'also when it is asked for before the next tick');
});

t.test('the clocks of now; without procfs boot time is monotonic time', async (t) => {
  const { time, watch } = rig();
  t.same(watch.now(), { boot: 1000, mono: 100, wall: 1_772_600_000_000 });
  time.boot = null;
  t.same(watch.now(), { boot: 100, mono: 100, wall: 1_772_600_000_000 });
});

t.test('ticks by itself, between start and stop', async (t) => {
  let reads = 0;
  const clocks = { monotonicSeconds: () => ++reads, bootSeconds: () => reads, wallMilliseconds: () => reads * 1000 };
  const watch = new WatchClocks({ clocks, onEvent: () => undefined, tickSeconds: 1 });
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  watch.start();
  const begun = reads;
  mock.timers.tick(5000);
  t.equal(reads, begun + 5);
  watch.stop();
  mock.timers.tick(5000);
  t.equal(reads, begun + 5);
});

t.test('a text is told at most once a minute', async (t) => {
  let now = 0;
  const told: string[] = [];
  const notes = new Notes(
    (text) => told.push(`${now} ${text}`),
    () => now,
  );
  for (const [at, text] of [
    [0, 'a'],
    [10, 'a'],
    [10, 'b'],
    [59.9, 'a'],
    [60, 'a'],
    [69, 'b'],
    [70, 'b'],
  ] as const) {
    now = at;
    notes.note(text);
  }
  t.same(told, ['0 a', '10 b', '60 a', '70 b']);
});
