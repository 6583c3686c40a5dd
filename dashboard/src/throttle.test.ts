import { mock } from 'node:test';
import t from 'tap';
import { Throttle } from './throttle.ts';

t.beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
t.afterEach(() => mock.timers.reset());

t.test('the first call acts at once, the many after it once when the pause is over', async (t) => {
  let acts = 0;
  const pace = new Throttle(() => {
    acts += 1;
  }, 40);
  pace.ask();
  t.equal(acts, 1);
  for (let i = 0; i < 1000; i += 1) pace.ask();
  mock.timers.tick(39);
  t.equal(acts, 1);
  mock.timers.tick(1);
  t.equal(acts, 2);
  mock.timers.tick(1000);
  t.equal(acts, 2, 'no call, no act');
  pace.ask();
  t.equal(acts, 3);
});

t.test('stopped, it does not act any more', async (t) => {
  let acts = 0;
  const pace = new Throttle(() => {
    acts += 1;
  }, 10);
  pace.ask();
  pace.ask();
  pace.stop();
  mock.timers.tick(1000);
  t.equal(acts, 1);
});
