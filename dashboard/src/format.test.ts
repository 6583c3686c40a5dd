import t from 'tap';
import { bytes, clock, decimal, duration, hertz, limit, minuteOfDay, timeOfDay } from './format.ts';

const at = (...parts: [number, number, number, number, number, number]): number => new Date(...parts).getTime();

t.test('times are in the local zone with two-digit fields, and with the date only if it is another day', async (t) => {
  const now = at(2026, 2, 4, 12, 30, 0);
  t.equal(timeOfDay(at(2026, 2, 4, 2, 3, 5), now), '02:03:05');
  t.equal(timeOfDay(at(2026, 2, 3, 23, 59, 59), now), '3 Mar, 23:59:59');
  t.equal(timeOfDay(at(2025, 2, 4, 12, 30, 0), now), '4 Mar 2025, 12:30:00');
  t.equal(minuteOfDay(at(2026, 2, 4, 2, 3, 5), now), '02:03');
  t.equal(minuteOfDay(at(2026, 2, 3, 23, 59, 59), now), '3 Mar, 23:59');
  t.equal(clock(new Date(2026, 2, 4, 0, 7)), '00:07');
});

t.test('durations show the two largest units', async (t) => {
  const cases: [number, string][] = [
    [0, '0 s'],
    [-3, '0 s'],
    [0.4, '0 s'],
    [59.6, '1 min'],
    [60, '1 min'],
    [200, '3 min 20 s'],
    [3600, '1 h'],
    [3605, '1 h'],
    [7500, '2 h 5 min'],
    [356_400, '4 d 3 h'],
  ];
  for (const [seconds, text] of cases) t.equal(duration(seconds), text);
});

t.test('numbers always have one decimal place', async (t) => {
  t.equal(decimal(7), '7.0');
  t.equal(decimal(99.95), '100.0');
  t.equal(decimal(-0.01), '0.0');
  t.equal(decimal(-5.25), '-5.3');
});

t.test('thresholds have no trailing zeros', async (t) => {
  t.equal(limit(80, '%'), '80 %');
  t.equal(limit(72.5, '°C'), '72.5 °C');
  t.equal(limit(3, ''), '3');
});

t.test('rates and sizes are shown in a suitable unit', async (t) => {
  t.equal(hertz(1), '1.00 Hz');
  t.equal(hertz(0.998), '1.00 Hz');
  t.equal(hertz(0.0166), '0.017 Hz');
  t.equal(hertz(999.6), '1000 Hz');
  t.equal(bytes(20_480), '20 kB');
  t.equal(bytes(5_250_000), '5.3 MB');
  t.equal(bytes(512e6), '512 MB');
  t.equal(bytes(1.25e9), '1.3 GB');
});
