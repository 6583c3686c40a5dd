import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { type Alert, healthStatusOf, statusOfReading, type Thresholds } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { METRICS } from '../core/metrics.ts';
import { DIAGNOSTIC_LEVELS, diagnosticArray } from './diagnostics.ts';

const THRESHOLDS: Thresholds = {
  cpu_percent: { warning: 80, critical: 90 },
  memory_percent: { warning: 85, critical: 95 },
  disk_percent: { warning: 80, critical: 90 },
  temperature: { warning: 70, critical: 85 },
};
const STATUS: HealthStatus = {
  cpu_percent: 81.5,
  memory_percent: 40,
  disk_percent: 93.25,
  temperature: null,
  status: 'CRITICAL',
  node_name: 'robot1/health_monitor',
  timestamp: '2026-03-04T05:06:07.089Z',
};
const alert = (change: Partial<Alert>): Alert => ({
  alert_id: 'robot1/health_monitor/disk_percent/01',
  severity: 'CRITICAL',
  metric: 'disk_percent',
  value: 93.25,
  threshold: 90,
  timestamp: STATUS.timestamp,
  resolved: false,
  ...change,
});
const CONTEXT = {
  hostname: 'pi-4',
  thresholds: THRESHOLDS,
  openAlerts: [
    alert({}),
    alert({ alert_id: 'robot2/health_monitor/disk_percent/02' }),
    alert({ alert_id: 'robot1/health_monitor/cpu_percent/03', metric: 'cpu_percent', resolved: true }),
    alert({ alert_id: 'robot1/health_monitor/temperature/04', metric: 'temperature', severity: 'ERROR', value: 12, threshold: 5 }),
  ],
  isExpected: () => true,
};

t.test('one entry for the whole and one for each metric, with the stamp of the sample', async (t) => {
  const { header, status } = diagnosticArray(STATUS, CONTEXT);
  t.same(header, { stamp: { sec: 1772600767, nanosec: 89_000_000 }, frame_id: '' });
  t.same(
    status.map(({ level, name, message, hardware_id }) => [level, name, message, hardware_id]),
    [
      [2, 'robot1/health_monitor: Health', 'CRITICAL: Disk usage', 'pi-4'],
      [1, 'robot1/health_monitor: CPU usage', '81.5 %, warning from 80 %', 'pi-4'],
      [0, 'robot1/health_monitor: Memory usage', '40 %', 'pi-4'],
      [2, 'robot1/health_monitor: Disk usage', '93.25 %, critical from 90 %', 'pi-4'],
      [3, 'robot1/health_monitor: Temperature', 'unavailable', 'pi-4'],
    ],
  );
});

t.test('values: the reading, its unit, the thresholds and the open alerts of this node alone', async (t) => {
  const [whole, , , disk, temperature] = diagnosticArray(STATUS, CONTEXT).status;
  t.same(disk?.values, [
    { key: 'value', value: '93.25' },
    { key: 'unit', value: '%' },
    { key: 'warning from', value: '80' },
    { key: 'critical from', value: '90' },
    { key: 'open alerts', value: 'CRITICAL robot1/health_monitor/disk_percent/01' },
  ]);
  t.same(temperature?.values[0], { key: 'value', value: 'unavailable' });
  t.same(temperature?.values.at(-1), { key: 'open alerts', value: 'ERROR robot1/health_monitor/temperature/04' });
  t.same(whole?.values.at(-1), {
    key: 'open alerts',
    value: 'robot1/health_monitor/disk_percent/01, robot1/health_monitor/temperature/04',
  });
});

t.test('without measurements all entries are STALE, never OK', async (t) => {
  const nothing = { ...STATUS, cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null, status: 'UNKNOWN' as const };
  const { status } = diagnosticArray(nothing, { ...CONTEXT, openAlerts: [] });
  t.same(
    status.map(({ level }) => level),
    [3, 3, 3, 3, 3],
  );
  t.match(status[0]?.message, /^UNKNOWN/);
});

t.test('a metric that was never measured, as on a machine without its sensor, has no entry, whatever the others are', async (t) => {
  const titles = (context: object): string[] =>
    diagnosticArray(STATUS, { ...CONTEXT, openAlerts: [], ...context }).status.map(({ name }) => name.replace(/^.*: /, ''));
  const isExpected = (metric: string): boolean => metric !== 'temperature';
  t.same(titles({ isExpected }), ['Health', 'CPU usage', 'Memory usage', 'Disk usage']);
  t.same(titles({}).at(-1), 'Temperature', 'it was measured before, and is STALE');
  t.same(titles({ isExpected: () => false }), ['Health', 'CPU usage', 'Memory usage', 'Disk usage'], 'a value is always shown');
  const { level, values } = diagnosticArray({ ...STATUS, status: 'OK' }, { ...CONTEXT, openAlerts: [], isExpected }).status[0] ?? {};
  t.equal(level, 0);
  t.same(values?.find(({ key }) => key === 'temperature')?.value, 'unavailable');
});

t.test('the stamp is limited to the range of ROS times', async (t) => {
  const stamp = (timestamp: string) => diagnosticArray({ ...STATUS, timestamp }, CONTEXT).header.stamp;
  t.same(stamp('2038-01-19T03:14:07.999Z'), { sec: 2 ** 31 - 1, nanosec: 999_000_000 });
  t.same(stamp('2038-01-19T03:14:08.000Z'), { sec: 2 ** 31 - 1, nanosec: 0 });
  t.same(stamp('1970-01-01T00:00:00.001Z'), { sec: 0, nanosec: 1_000_000 });
});

t.test('the level of the whole is the worst level of the metrics that could be measured', async (t) => {
  const reading = fc.option(fc.double({ min: 0, max: 120, noNaN: true }), { nil: null });
  fc.assert(
    fc.property(reading, reading, reading, reading, (cpu_percent, memory_percent, disk_percent, temperature) => {
      const readings = { cpu_percent, memory_percent, disk_percent, temperature };
      const health = healthStatusOf(
        METRICS.map((metric) => statusOfReading(readings[metric], THRESHOLDS[metric])),
        [],
      );
      const { status } = diagnosticArray({ ...STATUS, ...readings, status: health }, { ...CONTEXT, openAlerts: [] });
      const [whole, ...metrics] = status.map(({ level }) => level);
      const measured = metrics.filter((level) => level !== DIAGNOSTIC_LEVELS.UNKNOWN);
      return whole === (measured.length === 0 ? DIAGNOSTIC_LEVELS.UNKNOWN : Math.max(...measured)) && metrics.length === METRICS.length;
    }),
    { numRuns: runs(100, 5000), seed: SEED },
  );
  t.same(DIAGNOSTIC_LEVELS, { OK: 0, WARNING: 1, ERROR: 2, CRITICAL: 2, UNKNOWN: 3 }, 'OK, WARN, ERROR for ERROR and CRITICAL, STALE');
});
