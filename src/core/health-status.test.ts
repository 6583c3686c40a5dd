import t from 'tap';
import type { Severity, Thresholds } from './alerts/alert.ts';
import { currentStatus, type Sample, toHealthStatus } from './health-status.ts';
import type { Readings } from './metrics.ts';

const limits = { warning: 80, critical: 90 };
const thresholds: Thresholds = { cpu_percent: limits, memory_percent: limits, disk_percent: limits, temperature: limits };
const sample: Sample = {
  interval: 5,
  monotonicSeconds: 1234.5,
  timestampMs: Date.UTC(2026, 2, 4, 5, 6, 7, 89),
  readings: { cpu_percent: 12.34, memory_percent: 45, disk_percent: 0, temperature: null },
  disks: [],
};

t.test('a health status has exactly the seven fields of the specification, in its order', async (t) => {
  const status = toHealthStatus(sample, 'health_monitor', thresholds, []);
  t.same(Object.keys(status), ['cpu_percent', 'memory_percent', 'disk_percent', 'temperature', 'status', 'node_name', 'timestamp']);
  t.strictSame(status, {
    cpu_percent: 12.34,
    memory_percent: 45,
    disk_percent: 0,
    temperature: null,
    status: 'OK',
    node_name: 'health_monitor',
    timestamp: '2026-03-04T05:06:07.089Z',
  });
});

t.test('its status is the worst of the metrics and of the open alerts', async (t) => {
  const statusOf = (readings: Partial<Readings>, ...severities: Severity[]): string =>
    toHealthStatus(
      { ...sample, readings: { ...sample.readings, ...readings } },
      'n',
      thresholds,
      severities.map((severity) => ({ severity })),
    ).status;
  t.equal(statusOf({}), 'OK');
  t.equal(statusOf({ temperature: 90 }), 'CRITICAL');
  t.equal(statusOf({ cpu_percent: 85, temperature: 10 }), 'WARNING');
  t.equal(statusOf({}, 'WARNING'), 'WARNING', 'within the limits again, and not resolved yet');
  t.equal(statusOf({ cpu_percent: 85 }, 'ERROR'), 'ERROR');
  t.equal(statusOf({}, 'CRITICAL', 'ERROR'), 'CRITICAL', 'hot when its sensor was lost');
});

t.test('a status is shown as published up to three periods, and as UNKNOWN after', async (t) => {
  const last = toHealthStatus(sample, 'n', thresholds, []);
  t.equal(currentStatus(last, 0, 1).status, 'OK');
  t.equal(currentStatus(last, 3, 1).status, 'OK');
  t.equal(currentStatus(last, 3.001, 1).status, 'UNKNOWN');
  t.equal(currentStatus(last, 3.001, 10).status, 'OK');
});

t.test('an UNKNOWN status keeps the last readings and their time', async (t) => {
  const last = toHealthStatus(sample, 'n', thresholds, []);
  t.strictSame(currentStatus(last, 60, 1), { ...last, status: 'UNKNOWN' });
  t.equal(last.status, 'OK', 'the published status is not modified');
});
