import t from 'tap';
import { healthStatusOf, STATUSES, type Status, statusOfReading, worstFirst, worstStatus } from './alert.ts';

const limits = { warning: 80, critical: 90 };

t.test('a threshold is crossed at its exact value', async (t) => {
  t.equal(statusOfReading(79.99, limits), 'OK');
  t.equal(statusOfReading(80, limits), 'WARNING');
  t.equal(statusOfReading(89.99, limits), 'WARNING');
  t.equal(statusOfReading(90, limits), 'CRITICAL');
});

t.test('an unavailable reading is UNKNOWN, a reading of 0 is not', async (t) => {
  t.equal(statusOfReading(null, limits), 'UNKNOWN');
  t.equal(statusOfReading(0, limits), 'OK');
  t.equal(statusOfReading(99, null), 'OK', 'a metric that is switched off');
  t.equal(statusOfReading(null, null), 'UNKNOWN');
});

t.test('the worst of several statuses, in the order OK, WARNING, UNKNOWN, ERROR, CRITICAL', async (t) => {
  const order: Status[] = ['OK', 'WARNING', 'UNKNOWN', 'ERROR', 'CRITICAL'];
  t.same(STATUSES, order);
  order.forEach((a, i) => {
    order.forEach((b, j) => {
      t.equal(worstStatus([a, b]), order[Math.max(i, j)], `${a}, ${b}`);
      t.equal(Math.sign(worstFirst(a, b)), Math.sign(j - i), `${a} before ${b}`);
    });
  });
  t.equal(worstStatus([]), 'UNKNOWN');
});

t.test('a health status is the worst of the values that could be measured and of the open alerts', async (t) => {
  const open = (...severities: ('WARNING' | 'ERROR' | 'CRITICAL')[]): { severity: 'WARNING' | 'ERROR' | 'CRITICAL' }[] =>
    severities.map((severity) => ({ severity }));
  t.equal(healthStatusOf(['OK', 'OK'], []), 'OK');
  t.equal(healthStatusOf(['OK', 'CRITICAL', 'WARNING'], []), 'CRITICAL');
  t.equal(healthStatusOf(['OK', 'UNKNOWN'], []), 'OK', 'a metric that cannot be measured neither hides nor worsens the others');
  t.equal(healthStatusOf(['OK', 'UNKNOWN'], open('CRITICAL', 'ERROR')), 'CRITICAL');
  t.equal(healthStatusOf(['WARNING'], open('ERROR')), 'ERROR');
  t.equal(healthStatusOf(['CRITICAL'], open('WARNING')), 'CRITICAL');
  t.equal(healthStatusOf(['UNKNOWN', 'UNKNOWN'], open('WARNING')), 'UNKNOWN', 'nothing could be measured');
  t.equal(healthStatusOf(['UNKNOWN', 'UNKNOWN'], open('ERROR')), 'UNKNOWN', 'its ERROR is about the missing data');
  t.equal(healthStatusOf(['UNKNOWN', 'UNKNOWN'], open('ERROR', 'CRITICAL')), 'CRITICAL', 'hot when all its sensors were lost');
  t.equal(healthStatusOf([], []), 'UNKNOWN');
});
