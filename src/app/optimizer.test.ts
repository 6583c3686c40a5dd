import t from 'tap';
import { OPTIMIZE_FROM_HERTZ, Optimizer } from './optimizer.ts';

/** How often the compiler was enabled after this many seconds at a rate. */
function enabledAt(hertz: number, seconds: number): number {
  let [now, enabled] = [100, 0];
  const optimizer = new Optimizer(
    () => undefined,
    () => now,
    () => {
      enabled += 1;
    },
  );
  for (let n = 0; n < hertz * seconds; n += 1) {
    now = 100 + n / hertz;
    optimizer.count();
  }
  return enabled;
}

t.test('the optimizing compiler is enabled once, and only at a high rate of remote statuses', async (t) => {
  t.equal(enabledAt(0.8 * OPTIMIZE_FROM_HERTZ, 600), 0);
  t.equal(enabledAt(1.2 * OPTIMIZE_FROM_HERTZ, 600), 1);
  t.equal(enabledAt(1000, 600), 1);
});

t.test('a burst of repeated statuses does not enable it', async (t) => {
  let [now, enabled] = [100, 0];
  const optimizer = new Optimizer(
    () => undefined,
    () => now,
    () => {
      enabled += 1;
    },
  );
  for (let n = 0; n < 900; n += 1) optimizer.count();
  for (let n = 0; n < 6000; n += 1) {
    now += 0.1;
    optimizer.count();
  }
  t.equal(enabled, 0);
});

t.test('V8 accepts the flag while it runs', async (t) => {
  const messages: string[] = [];
  let now = 100;
  const optimizer = new Optimizer(
    (_level, message) => messages.push(message),
    () => now,
  );
  for (let n = 0; n < 9000; n += 1) {
    now += 0.01;
    optimizer.count();
  }
  t.same(messages, ['optimizing compiler enabled for many remote nodes']);
});
