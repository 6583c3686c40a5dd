import { mock } from 'node:test';
import t from 'tap';
import { Throttle } from './throttle.ts';

let nowMs = 0;
performance.now = () => nowMs;

function pass(milliseconds: number): void {
  for (let i = 0; i < milliseconds; i += 1) {
    nowMs += 1;
    mock.timers.tick(1);
  }
}

t.beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
t.afterEach(() => mock.timers.reset());

t.test('requests that come together act once, soon after the first; the next ones act when the pause ends', async (t) => {
  let acts = 0;
  const throttle = new Throttle(
    () => {
      acts += 1;
    },
    40,
    10,
  );
  for (let i = 0; i < 1000; i += 1) throttle.request();
  pass(9);
  t.equal(acts, 0);
  pass(1);
  t.equal(acts, 1);
  t.equal(throttle.actedMs, nowMs);
  throttle.request();
  pass(20);
  throttle.request();
  pass(19);
  t.equal(acts, 1);
  pass(1);
  t.equal(acts, 2);
  pass(1000);
  t.equal(acts, 2, 'no request, no action');
  throttle.request();
  pass(10);
  t.equal(acts, 3);
});

t.test('a stopped throttle does not act', async (t) => {
  let acts = 0;
  const throttle = new Throttle(
    () => {
      acts += 1;
    },
    10,
    1,
  );
  throttle.request();
  pass(1);
  throttle.request();
  throttle.stop();
  pass(1000);
  t.equal(acts, 1);
});
