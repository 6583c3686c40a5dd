import t from 'tap';
import { samplingOf } from './sampling.ts';

const host = (total: number, steal: number) => ({ total, idle: total / 2, steal });

t.test('from the first reading to the last, and between each two what the machine did', async (t) => {
  const readings = [
    { at: 100, samples: 50, missed: 1, host: host(1000, 0) },
    { at: 110, samples: 2050, missed: 1, host: host(3000, 0) },
    { at: 130, samples: 5950, missed: 101, host: host(7000, 800) },
  ];
  t.same(samplingOf(readings, 200), {
    expected: 6000,
    taken: 5900,
    missed: 100,
    host: { idlePercent: 50, stealPercent: 800 / 60 },
    stretches: [
      { fromSeconds: 0, seconds: 10, missed: 0, host: { idlePercent: 50, stealPercent: 0 } },
      { fromSeconds: 10, seconds: 20, missed: 100, host: { idlePercent: 50, stealPercent: 20 } },
    ],
  });
  t.equal(samplingOf(readings.slice(0, 1), 200), null);
  t.equal(samplingOf([], 200), null);
});
