import t from 'tap';
import type { Alert } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { encode } from '../../rtps/wire/cdr.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import { healthStatusMessage } from '../messages.ts';
import { Arrivals } from './arrivals.ts';

const STATUS: HealthStatus = {
  cpu_percent: 12.5,
  memory_percent: null,
  disk_percent: 78.9,
  temperature: 51,
  status: 'OK',
  node_name: 'robot2',
  timestamp: '2026-03-04T05:06:07.089Z',
};
const ALERT_CHANGE: Alert = {
  alert_id: 'robot2/cpu_percent/01J',
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 85,
  threshold: 80,
  timestamp: '2026-03-04T05:06:07.089Z',
  resolved: false,
};
const serializedStatus = (status: HealthStatus): Buffer => encode(HEALTH_STATUS, healthStatusMessage(status));
const serializedAlert = (alert: Alert): Buffer => encode(ALERT, { ...alert });

function setUp() {
  const statuses: HealthStatus[] = [];
  const alerts: Alert[] = [];
  const conflicts: string[] = [];
  const lines: string[] = [];
  const arrivals = new Arrivals({
    localNode: 'health_monitor',
    log: (level, message, fields) => lines.push(`${level} ${message} ${JSON.stringify(fields)}`),
    listener: {
      onHealthStatus: (status) => statuses.push(status),
      onAlert: (alert) => alerts.push(alert),
      onConflict: (topic) => conflicts.push(topic),
    },
  });
  return { arrivals, statuses, alerts, conflicts, lines };
}

t.test('remote messages arrive unchanged', async (t) => {
  const { arrivals, statuses, alerts, conflicts, lines } = setUp();
  arrivals.onHealth(serializedStatus(STATUS), '/health_status', false);
  arrivals.onAlert(serializedAlert(ALERT_CHANGE), '/alerts', false);
  t.same(statuses, [STATUS]);
  t.same(alerts, [ALERT_CHANGE]);
  t.same([arrivals.refused, conflicts, lines], [0, [], []]);
});

t.test('messages of this process are ignored', async (t) => {
  const { arrivals, statuses, alerts, conflicts } = setUp();
  const own = { ...STATUS, node_name: 'health_monitor' };
  const ownAlert = { ...ALERT_CHANGE, alert_id: 'health_monitor/cpu_percent/01J' };
  arrivals.addSentHealth(own);
  arrivals.addSentAlert(ownAlert);
  arrivals.onHealth(serializedStatus(own), '/health_status', false);
  arrivals.onAlert(serializedAlert(ownAlert), '/alerts', false);
  t.same([statuses, alerts], [[], []]);
  t.same(conflicts, []);
});

t.test('an alert of this process about another node is ignored, too', async (t) => {
  const { arrivals, alerts } = setUp();
  arrivals.addSentAlert(ALERT_CHANGE);
  arrivals.onAlert(serializedAlert(ALERT_CHANGE), '/alerts', false);
  t.same(alerts, []);
  arrivals.onAlert(serializedAlert({ ...ALERT_CHANGE, resolved: true }), '/alerts', false);
  t.equal(alerts.length, 1, 'its next change was published by another process');
});

t.test('another monitor with the same name is a conflict, and its statuses are ignored', async (t) => {
  const { arrivals, statuses, alerts, conflicts } = setUp();
  arrivals.onHealth(serializedStatus({ ...STATUS, node_name: 'health_monitor' }), '/health_status', false);
  t.same(statuses, []);
  t.same(conflicts, ['/health_status']);
  for (const metric of ['health_status', 'name_conflict', 'cpu_percent'])
    arrivals.onAlert(serializedAlert({ ...ALERT_CHANGE, metric, alert_id: `health_monitor/${metric}/01J` }), '/alerts', false);
  t.same([alerts.length, conflicts.length], [3, 1], 'alerts about this node are none: observers raise them, and relays repeat them');
});

t.test('undecodable and invalid messages are refused, counted and logged', async (t) => {
  const { arrivals, statuses, alerts, lines } = setUp();
  const good = serializedStatus(STATUS);
  const lying = Buffer.from(good);
  lying.writeUInt32LE(0xfffffff0, 36);
  const bad = [good.subarray(0, 20), Buffer.alloc(0), Buffer.from([9, 9, 9, 9]), lying, serializedStatus({ ...STATUS, node_name: '' })];
  for (const bytes of bad) arrivals.onHealth(bytes, '/health_status', false);
  arrivals.onAlert(serializedAlert({ ...ALERT_CHANGE, metric: '' }), '/alerts', false);
  t.same([statuses, alerts], [[], []]);
  t.equal(arrivals.refused, bad.length + 1);
  t.equal(lines.length, bad.length + 1);
  for (const line of lines) t.match(line, /^warning message refused /);
});

t.test('a message received by two subscriptions counts once', async (t) => {
  const { arrivals, statuses, alerts } = setUp();
  for (let i = 0; i < 2; i += 1) {
    arrivals.onHealth(serializedStatus(STATUS), '/health_status', true);
    arrivals.onAlert(serializedAlert(ALERT_CHANGE), '/alerts', true);
  }
  arrivals.onHealth(serializedStatus({ ...STATUS, cpu_percent: 13 }), '/health_status', true);
  t.same([statuses.length, alerts.length], [2, 1]);
});

t.test('messages from before the second subscription are remembered, too', async (t) => {
  const { arrivals, statuses } = setUp();
  arrivals.onHealth(serializedStatus(STATUS), '/health_status', false);
  arrivals.onHealth(serializedStatus(STATUS), '/health_status', true);
  t.equal(statuses.length, 1);
});

t.test('the remembered messages are bounded', async (t) => {
  const { arrivals, statuses } = setUp();
  const at = (i: number): HealthStatus => ({ ...STATUS, cpu_percent: i });
  for (let i = 0; i < 3000; i += 1) arrivals.onHealth(serializedStatus(at(i)), '/health_status', true);
  t.equal(statuses.length, 3000);
  arrivals.onHealth(serializedStatus(at(2999)), '/health_status', true);
  t.equal(statuses.length, 3000, 'the last one is remembered');
  arrivals.onHealth(serializedStatus(at(0)), '/health_status', true);
  t.equal(statuses.length, 3001, 'the first one is not');
});
