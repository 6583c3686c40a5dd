import t from 'tap';
import { ClockCheck, type ClockEvent } from './clock-watch.ts';

/** Clocks that run together until one of them is moved. */
class MadeUpClocks {
  monotonic = 1000;
  wallMs = Date.parse('2026-03-04T10:00:00Z');
  boot = 5000;
  bootReadings = 0;
  readonly events: ClockEvent[] = [];
  readonly check = new ClockCheck(
    {
      monotonicSeconds: () => this.monotonic,
      wallMilliseconds: () => this.wallMs,
      bootSeconds: () => {
        this.bootReadings += 1;
        return this.boot;
      },
    },
    (event) => this.events.push(event),
  );

  pass(seconds: number, hertz: number): void {
    for (let i = 0; i < seconds * hertz; i += 1) {
      this.monotonic += 1 / hertz;
      this.wallMs += 1000 / hertz;
      this.boot += 1 / hertz;
      this.check.check();
    }
  }
}

t.test('a step is recorded with the first sample after it, at any rate', async (t) => {
  for (const hertz of [0.2, 1, 10, 200]) {
    for (const deltaSeconds of [3600, -3600, 0.6, -0.6]) {
      const clocks = new MadeUpClocks();
      clocks.pass(10, hertz);
      clocks.wallMs += deltaSeconds * 1000;
      clocks.pass(1 / hertz, hertz);
      t.match(
        clocks.events,
        [{ kind: 'step', timestamp_ms: clocks.wallMs, delta_seconds: deltaSeconds }],
        `${deltaSeconds} s at ${hertz} Hz`,
      );
      clocks.pass(10, hertz);
      t.equal(clocks.events.length, 1, 'once');
    }
  }
});

t.test('a suspend is recorded with the first sample after it, at any rate', async (t) => {
  const clocks = new MadeUpClocks();
  clocks.pass(2, 10);
  clocks.wallMs += 7200_000;
  clocks.boot += 7200;
  clocks.pass(0.1, 10);
  t.match(clocks.events, [{ kind: 'suspend', timestamp_ms: clocks.wallMs, delta_seconds: 7200 }]);
});

t.test('a suspend during which the wall clock was set back is recorded within a minute', async (t) => {
  const clocks = new MadeUpClocks();
  clocks.pass(2, 1);
  clocks.boot += 300;
  clocks.pass(60, 1);
  t.match(clocks.events, [
    { kind: 'suspend', delta_seconds: 300 },
    { kind: 'step', delta_seconds: -300 },
  ]);
  clocks.pass(120, 1);
  t.equal(clocks.events.length, 2, 'once');
});

t.test('slewing gives no event, however fast, and boot time is read once a minute', async (t) => {
  for (const slewedMs of [0.5, 83, -83]) {
    const clocks = new MadeUpClocks();
    for (let i = 0; i < 600; i += 1) {
      clocks.pass(1, 10);
      clocks.wallMs += slewedMs;
    }
    t.same(clocks.events, [], `${slewedMs} ms per second`);
    t.ok(clocks.bootReadings <= 11, `${clocks.bootReadings} times in ten minutes`);
  }
});
