import t from 'tap';
import { intervalOf, minuteOf, readingOf } from '../../../testkit/weeks/reading.ts';
import type { MinuteEntry } from '../entries.ts';
import { Chart } from './readings.ts';

const received = { first: 1, steps: [], slowest_ms: 1, fastest_ms: 1 };
const host = { cpu: 8, memory: 40, disk: 50, celsius: 45 };

function minute(at: number, more: Partial<MinuteEntry> = {}): MinuteEntry {
  return minuteOf(at, { topic: received, events: received, host, service: readingOf({ resident_bytes: [1e6, 2e6, 61.5e6] }), ...more });
}

t.test('adds a point for each minute, at its end', async (t) => {
  const chart = new Chart();
  chart.add(minute(60), intervalOf(0, 60, { fresh: true }), { topic: 60, events: 30 }, 1.5);
  chart.add(
    minute(120, { service: null, host: { cpu: null, memory: null, disk: null, celsius: null } }),
    intervalOf(60, 120),
    { topic: 45, events: 60 },
    Number.NaN,
  );
  const expected = {
    at: [60, 120],
    ratePercent: [100, 75],
    memoryMegabytes: [61.5, null],
    hostMemoryPercent: [40, null],
    cpuPercent: [1.5, null],
    hostCpuPercent: [8, null],
    celsius: [45, null],
  };
  t.same(chart.columns('topic'), expected);
  t.same(chart.columns('events').ratePercent, [50, 100]);
});

t.test('a minute may end within a period: one status less is not a loss', async (t) => {
  const chart = new Chart();
  for (const [index, topic] of [61, 59.5, 59, 0].entries()) {
    chart.add(minute(index * 60), intervalOf(index * 60, index * 60 + 60), { topic, events: 0 }, 0);
  }
  t.same(chart.columns('topic').ratePercent, [100, 100, (59 / 60) * 100, 0]);
});

t.test('short minutes are merged with the next one, and a monitoring gap has no values', async (t) => {
  const chart = new Chart();
  chart.add(minute(10), intervalOf(0, 10, { fresh: true }), { topic: 0, events: 0 }, 1);
  chart.add(minute(29), intervalOf(10, 29.9), { topic: 15, events: 0 }, 2);
  chart.add(minute(40, { topic: null }), intervalOf(29.9, 40), { topic: 5, events: 0 }, 3);
  chart.add(minute(50), intervalOf(40, 50), { topic: 0, events: 0 }, 4);
  chart.gap(100);
  chart.add(minute(160), intervalOf(100, 160, { fresh: true }), { topic: 60, events: 0 }, 5);
  const { at, cpuPercent, memoryMegabytes, ratePercent } = chart.columns('topic');
  t.same(at, [40, 100, 160]);
  t.same(ratePercent, [50, null, 100]);
  t.same(cpuPercent, [3, null, 5]);
  t.same(memoryMegabytes, [61.5, null, 61.5]);
});

t.test('without a subscription there is no rate', async (t) => {
  const chart = new Chart();
  chart.add(minute(60, { topic: null }), intervalOf(0, 60), { topic: 0, events: 60 }, 0);
  t.same([chart.columns('topic').ratePercent, chart.columns('events').ratePercent], [[null], [100]]);
  chart.add(minute(120), intervalOf(60, 120), { topic: 60, events: 60 }, 0);
  chart.add(minute(180, { topic: null }), intervalOf(120, 180), { topic: 0, events: 60 }, 0);
  t.same(chart.columns('topic').ratePercent, [null, 100, null]);
  const neither = new Chart();
  neither.add(minute(60, { topic: null, events: null }), intervalOf(0, 60), { topic: 0, events: 0 }, 0);
  t.same([neither.columns('topic').ratePercent, neither.columns('events').ratePercent], [[null], [null]]);
  t.same(chart.columns('topic').memoryMegabytes.length, 3);
  const rate = new Chart();
  rate.add(minute(30), intervalOf(0, 30, { hertz: 10 }), { topic: 150, events: 0 }, 0);
  t.same(rate.columns('topic').ratePercent, [50], 'half a minute is enough');
});

t.test('a minute without a memory reading has no memory value', async (t) => {
  const chart = new Chart();
  chart.add(minute(60, { service: readingOf({ resident_bytes: [] }) }), intervalOf(0, 60), { topic: 60, events: 60 }, 0);
  t.same(chart.columns('topic').memoryMegabytes, [null]);
});
