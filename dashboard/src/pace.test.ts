import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { Pace } from './pace.ts';

t.test('the first call acts at once, the many after it once when the pause is over', async (t) => {
  let acts = 0;
  const pace = new Pace(() => {
    acts += 1;
  }, 40);
  pace.ask();
  t.equal(acts, 1);
  for (let i = 0; i < 1000; i += 1) pace.ask();
  t.equal(acts, 1);
  await sleep(70);
  t.equal(acts, 2);
  await sleep(60);
  t.equal(acts, 2, 'nobody asked');
  pace.ask();
  t.equal(acts, 3);
  pace.stop();
});

t.test('stopped, it does not act any more', async (t) => {
  let acts = 0;
  const pace = new Pace(() => {
    acts += 1;
  }, 10);
  pace.ask();
  pace.ask();
  pace.stop();
  await sleep(30);
  t.equal(acts, 1);
});
