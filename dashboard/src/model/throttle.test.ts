import { mock } from 'node:test';
import t from 'tap';
import { Throttle } from './throttle.ts';

t.beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
t.afterEach(() => mock.timers.reset());

t.test('the first request acts immediately, later ones act once when the pause ends', async (t) => {
  let acts = 0;
  const throttle = new Throttle(() => {
    acts += 1;
  }, 40);
  throttle.request();
  t.equal(acts, 1);
  for (let i = 0; i < 1000; i += 1) throttle.request();
  mock.timers.tick(39);
  t.equal(acts, 1);
  mock.timers.tick(1);
  t.equal(acts, 2);
  mock.timers.tick(1000);
  t.equal(acts, 2, 'no request, no action');
  throttle.request();
  t.equal(acts, 3);
});

t.test('a stopped throttle does not act', async (t) => {
  let acts = 0;
  const throttle = new Throttle(() => {
    acts += 1;
  }, 10);
  throttle.request();
  throttle.request();
  throttle.stop();
  mock.timers.tick(1000);
  t.equal(acts, 1);
});
