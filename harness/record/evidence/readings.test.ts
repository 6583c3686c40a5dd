import t from 'tap';
import { serviceRun } from '../../../testkit/weeks/perfect.ts';
import { intervalOf, minuteOf, readingOf } from '../../../testkit/weeks/reading.ts';
import type { MinuteEntry, ServiceReading } from '../entries.ts';
import { ResourceReadings } from './readings.ts';

const old = serviceRun(-100);
const host = { cpu: 8, memory: 40, disk: 50, celsius: 45 };

/** A minute that ends at this second of the monotonic clock. */
function minute(at: number, reading: Partial<ServiceReading> | null, more: Partial<MinuteEntry> = {}): MinuteEntry {
  return minuteOf(at, { host, service: reading && readingOf(reading), ...more });
}

t.test('memory: readings are spread evenly over their minute', async (t) => {
  const readings = new ResourceReadings();
  readings.add(minute(60, { resident_bytes: [1, 2, 3, 4] }), intervalOf(0, 60), old, 0);
  readings.add(minute(120, { resident_bytes: [5] }), intervalOf(60, 120), old, 0);
  readings.add(minute(180, { resident_bytes: [] }), intervalOf(120, 180), old, 0);
  readings.add(minute(240, null), intervalOf(180, 240), old, 0);
  readings.add(minute(300, { resident_bytes: [6] }, { host: { ...host, memory: null } }), intervalOf(240, 300), old, 0);
  const { at, bytes, group, hostPercent } = readings.memory();
  t.same([...at], [15, 30, 45, 60, 120, 300]);
  t.same([...bytes], [1, 2, 3, 4, 5, 6]);
  t.same([...hostPercent], [40, 40, 40, 40, 40, Number.NaN]);
  t.equal(group, null);
});

t.test('memory: returns the last and the highest value of the control group', async (t) => {
  const readings = new ResourceReadings();
  for (const [index, memory_bytes] of [80, 95, 90].entries()) {
    const group = { memory_bytes, anon_bytes: 1, restarts: 0 };
    readings.add(minute(index * 60, { group }), intervalOf(0, 60), old, 0);
  }
  readings.add(minute(240, {}), intervalOf(180, 240), old, 0);
  t.same(readings.memory().group, { lastBytes: 90, maxBytes: 95 });
});

t.test('CPU: compares readings of one run, over the time awake', async (t) => {
  const readings = new ResourceReadings();
  t.same(readings.cpu(), { cpuSeconds: 0, awakeSeconds: 0, from: 'not known', hostMeanPercent: null });
  t.ok(Number.isNaN(readings.add(minute(60, { cpu_seconds: 100 }), intervalOf(0, 60), old, 0)), 'the first has nothing to compare with');
  t.equal(readings.add(minute(120, { cpu_seconds: 103 }), intervalOf(60, 120), old, 0), 5);
  t.ok(Number.isNaN(readings.add(minute(180, null), intervalOf(120, 180), old, 0)));
  t.equal(readings.add(minute(240, { cpu_seconds: 109 }), intervalOf(180, 240), old, 0), 5, 'over two minutes');
  t.same(readings.cpu(), { cpuSeconds: 9, awakeSeconds: 180, from: 'CPU time of its control group', hostMeanPercent: 8 });
});

t.test('CPU: counters of different sources or boots, or that went backwards, are not compared', async (t) => {
  const readings = new ResourceReadings();
  readings.add(minute(60, { cpu_seconds: 100 }), intervalOf(0, 60), old, 0);
  t.ok(Number.isNaN(readings.add(minute(120, { cpu_seconds: 103, cpu_from: 'process' }), intervalOf(60, 120), old, 0)));
  t.equal(readings.add(minute(180, { cpu_seconds: 106, cpu_from: 'process' }), intervalOf(120, 180), old, 0), 5);
  t.ok(Number.isNaN(readings.add(minute(240, { cpu_seconds: 50, cpu_from: 'process' }), intervalOf(180, 240), old, 0)));
  t.equal(readings.add(minute(300, { cpu_seconds: 50, cpu_from: 'process' }), intervalOf(240, 300), old, 0), 0, 'none at all is a share');
  t.ok(Number.isNaN(readings.add(minute(400, { cpu_seconds: 60, cpu_from: 'process' }), intervalOf(300, 360), old, 1)));
  t.ok(Number.isNaN(readings.add(minute(400, { cpu_seconds: 61, cpu_from: 'process' }), intervalOf(300, 300), old, 1)), 'no time passed');
  t.same(readings.cpu(), { cpuSeconds: 3, awakeSeconds: 120, from: 'CPU time of its process', hostMeanPercent: 8 });
  const status = new ResourceReadings();
  status.add(minute(60, { cpu_seconds: 1, cpu_from: 'status' }), intervalOf(0, 60), serviceRun(0), 0);
  t.equal(status.cpu().from, 'CPU time reported by /status');
});

t.test('CPU: a run whose start was observed counts from its start', async (t) => {
  const readings = new ResourceReadings();
  readings.add(minute(60, { cpu_seconds: 100 }), intervalOf(0, 60), old, 0);
  const restarted = { started: 'later', cpu_seconds: 2 };
  t.equal(readings.add(minute(120, restarted), intervalOf(60, 120), serviceRun(80), 0), 5, '2 s in 40 s');
  t.same([readings.cpu().cpuSeconds, readings.cpu().awakeSeconds], [2, 40]);
  const asleep = new ResourceReadings();
  asleep.add(minute(160, restarted), intervalOf(60, 160, { monotonicSeconds: 20 }), serviceRun(80), 0);
  t.equal(asleep.cpu().awakeSeconds, 20, 'not more than it was awake');
  const atOnce = new ResourceReadings();
  atOnce.add(minute(160, restarted), intervalOf(80, 160, { monotonicSeconds: 20 }), serviceRun(80), 0);
  t.equal(atOnce.cpu().awakeSeconds, 20);
  const absent = new ResourceReadings();
  absent.add(minute(400, restarted), intervalOf(340, 400, { fresh: true }), serviceRun(300), 0);
  t.equal(absent.cpu().awakeSeconds, 100, 'that began in a monitoring gap');
  const begun = new ResourceReadings();
  begun.add(minute(60, restarted), intervalOf(0, 60), serviceRun(0), 0);
  t.equal(begun.cpu().awakeSeconds, 60, 'with the run of the harness');
  const unknown = new ResourceReadings();
  unknown.add(minute(60, restarted), intervalOf(0, 60), null, 0);
  unknown.add(minute(60, { started: 'before' }), intervalOf(0, 60), serviceRun(-0.001), 0);
  t.equal(unknown.cpu().awakeSeconds, 0);
});

t.test('CPU of the machine: returns the mean over time', async (t) => {
  const readings = new ResourceReadings();
  readings.add(minute(60, null, { host: { ...host, cpu: 10 } }), intervalOf(0, 60), old, 0);
  readings.add(minute(80, null, { host: { ...host, cpu: 50 } }), intervalOf(60, 80), old, 0);
  readings.add(minute(140, null, { host: { ...host, cpu: null } }), intervalOf(80, 140), old, 0);
  t.equal(readings.cpu().hostMeanPercent, 20);
});
