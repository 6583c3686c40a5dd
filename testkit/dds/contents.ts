/** Messages with values that reveal serialisation errors, and their form in the output of the peers. */
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { ShutdownProgress } from '../../src/core/shutdown/shutdown.ts';
import type { DiagnosticContext } from '../../src/ros/diagnostics.ts';

const MIXED = 'wäre 日本 🤖 "\\ \t\u0001 ';
/** Texts that reveal serialisation errors, with characters of several octets among them. */
export const TEXTS = ['', 'plain', MIXED, `${'√'.repeat(3500)}.`, MIXED.repeat(500), 'x'.repeat(10_240), MIXED.repeat(5000)] as const;

/** Content of /diagnostics beyond the status, for every node of the tests. */
export const CONTEXT: DiagnosticContext = {
  hostname: 'brain-1',
  thresholds: {
    cpu_percent: { warning: 80, critical: 90 },
    memory_percent: { warning: 75, critical: 85.5 },
    disk_percent: { warning: 80, critical: 95 },
    temperature: { warning: 70, critical: 85 },
  },
  openAlerts: [
    {
      alert_id: 'health_monitor/cpu_percent/01JAVA',
      severity: 'CRITICAL',
      metric: 'cpu_percent',
      value: 97.5,
      threshold: 90,
      timestamp: '2026-03-04T05:06:07.089Z',
      resolved: false,
    },
  ],
  isExpected: () => true,
};

export const HEALTH: HealthStatus = {
  cpu_percent: 0.1 + 0.2,
  memory_percent: null,
  disk_percent: 99.99,
  temperature: -40.25,
  status: 'WARNING',
  node_name: 'health_monitor',
  timestamp: '2026-03-04T05:06:07.089Z',
};

export const ALERT: Alert = {
  alert_id: 'health_monitor/temperature/01JZZZ',
  severity: 'ERROR',
  metric: 'temperature',
  value: 5e-324,
  threshold: 1.7976931348623157e308,
  timestamp: '2026-03-04T05:06:07.089Z',
  resolved: true,
};

export const PROGRESS: ShutdownProgress = {
  request_id: '01JREQUEST',
  state: 'in_progress',
  step: 'stop_units',
  reason: 'OVERTEMP',
  requested_by: 'operator',
  action: 'dry-run',
  seconds_left: 29.75,
  message: 'stopping navigation.service',
  timestamp: '2026-03-04T05:06:07.089Z',
};

/** A message in the form that a peer prints: unavailable values, null here, are NaN on DDS. */
export function asPeersSay(message: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(message).map(([field, value]) => [field, value === null ? 'NaN' : value]));
}
