import t from 'tap';
import type { Readings } from './metrics.ts';
import { STATUSES, type Status, statusOfReading, statusOfReadings, type Thresholds, worstStatus } from './thresholds.ts';

const limits = { warning: 80, critical: 90 };
const thresholds: Thresholds = {
  cpu_percent: limits,
  memory_percent: limits,
  disk_percent: limits,
  temperature: { warning: 70, critical: 85 },
};
const healthy: Readings = { cpu_percent: 10, memory_percent: 20, disk_percent: 30, temperature: 40 };

t.test('a threshold is crossed at its exact value', async (t) => {
  t.equal(statusOfReading(79.99, limits), 'OK');
  t.equal(statusOfReading(80, limits), 'WARNING');
  t.equal(statusOfReading(89.99, limits), 'WARNING');
  t.equal(statusOfReading(90, limits), 'CRITICAL');
});

t.test('an unavailable reading is UNKNOWN, a reading of 0 is not', async (t) => {
  t.equal(statusOfReading(null, limits), 'UNKNOWN');
  t.equal(statusOfReading(0, limits), 'OK');
});

t.test('the status of a host is the worst of its metrics', async (t) => {
  t.equal(statusOfReadings(healthy, thresholds), 'OK');
  t.equal(statusOfReadings({ ...healthy, temperature: 72 }, thresholds), 'WARNING');
  t.equal(statusOfReadings({ ...healthy, cpu_percent: 85, temperature: 99 }, thresholds), 'CRITICAL');
  t.equal(statusOfReadings({ ...healthy, cpu_percent: 99, temperature: 72 }, thresholds), 'CRITICAL');
});

t.test('each metric is judged by its own thresholds', async (t) => {
  t.equal(statusOfReadings({ ...healthy, cpu_percent: 72 }, thresholds), 'OK');
  t.equal(statusOfReadings({ ...healthy, disk_percent: 88, temperature: 40 }, thresholds), 'WARNING');
  t.equal(statusOfReadings({ ...healthy, temperature: 88 }, thresholds), 'CRITICAL');
});

t.test('an unavailable metric neither hides nor worsens what the others say', async (t) => {
  t.equal(statusOfReadings({ ...healthy, temperature: null }, thresholds), 'OK');
  t.equal(statusOfReadings({ ...healthy, cpu_percent: null, temperature: 72 }, thresholds), 'WARNING');
  t.equal(statusOfReadings({ ...healthy, cpu_percent: 85, temperature: null }, thresholds), 'WARNING');
});

t.test('a host of which nothing could be measured is UNKNOWN', async (t) => {
  const nothing = { cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null };
  t.equal(statusOfReadings(nothing, thresholds), 'UNKNOWN');
});

t.test('of two statuses CRITICAL beats WARNING beats OK beats UNKNOWN, in either order', async (t) => {
  const order: Status[] = ['UNKNOWN', 'OK', 'WARNING', 'CRITICAL'];
  t.same([...STATUSES].sort(), [...order].sort());
  order.forEach((a, i) => {
    order.forEach((b, j) => {
      t.equal(worstStatus(a, b), order[Math.max(i, j)], `${a}, ${b}`);
    });
  });
});
