import t from 'tap';
import { STATUSES, worstStatus } from '../../src/core/alerts/alert.ts';
import { messages } from './messages/messages.ts';
import { buildBook, openOnOtherNodes } from './model/alert-book.ts';
import { type Connection, initialConnection } from './model/connection.ts';
import type { Tile } from './model/fleet.ts';
import {
  alertFigures,
  alertHelp,
  alertTitle,
  headline,
  headlineOfAll,
  headlineOfStaleNode,
  linkText,
  metricState,
  nodeNotices,
  notices,
  otherNodesText,
} from './text.ts';
import type { Alert, HealthStatus, NodeState, ShutdownState, Status, StatusDocument } from './types.ts';

const NODE = 'health_monitor';
const NOW = new Date(2026, 2, 4, 12, 3, 10).getTime();
const LAST = new Date(2026, 2, 4, 12, 3, 5).getTime();

const health = (status: Status, more: Partial<HealthStatus> = {}): HealthStatus => ({
  cpu_percent: 20,
  memory_percent: 40,
  disk_percent: 30,
  temperature: 50,
  status,
  node_name: NODE,
  timestamp: new Date(LAST).toISOString(),
  ...more,
});
const nodeState = (node_name: string): NodeState => ({
  node_name,
  local: false,
  status: 'OK',
  timestamp: null,
  age_seconds: null,
  period_seconds: null,
  clock_ahead_seconds: null,
  conflict_addresses: [],
  left: null,
});
const alert = (metric: string, more: Partial<Alert> = {}, node = NODE): Alert => ({
  alert_id: `${node}/${metric}/01J${metric}`,
  severity: 'WARNING',
  metric,
  value: 84.25,
  threshold: 80,
  timestamp: new Date(LAST).toISOString(),
  resolved: false,
  ...more,
});
const connection = (more: Partial<Connection>): Connection => ({ ...initialConnection(0), ...more });
const live = linkText(connection({ phase: 'live' }), LAST, NOW);
const sentence = (status: HealthStatus, ...alerts: Alert[]): string => headline(live, status, buildBook(alerts, [], []), NODE).sentence;

t.test('a live link shows the time of the last measurement', async (t) => {
  t.same(live, { state: 'live', first: 'Live', second: 'Measured 12:03:05' });
});

t.test('a page that was just opened shows connecting, not an error', async (t) => {
  const link = linkText(connection({ phase: 'connecting' }), null, NOW);
  t.equal(link.state, 'connecting');
  t.equal(headline(link, null, null, null).status, null);
  const loading = linkText(connection({ phase: 'loading' }), LAST, NOW);
  t.equal(loading.state, 'connecting', 'measurements arrive before everything is loaded');
  t.equal(headline(loading, health('OK'), null, NODE).status, 'OK', 'and are shown');
});

t.test('when the service is unreachable, every phase shows the time of the last data and UNKNOWN', async (t) => {
  for (const phase of ['connecting', 'loading', 'waiting'] as const) {
    const link = linkText(connection({ phase, failures: 2 }), LAST, NOW);
    t.same(link, { state: 'gone', first: 'No data since 12:03:05.', second: 'Trying to reconnect…' });
    const head = headline(link, health('OK'), null, NODE);
    t.equal(head.status, 'UNKNOWN');
    t.match(head.sentence, /No data since 12:03:05\..*last known/);
  }
  t.match(linkText(connection({ phase: 'waiting', failures: 1 }), null, NOW), { state: 'gone', first: 'No response.' });
});

t.test('a service that answers but does not measure is distinguished from an unreachable one', async (t) => {
  const link = linkText(connection({ phase: 'stale', isResponding: true }), LAST, NOW);
  t.match(link, { state: 'gone', first: 'No data since 12:03:05.', second: /takes no samples/ });
  t.match(linkText(connection({ phase: 'stale' }), LAST, NOW).second, /Waiting/);
  t.match(linkText(connection({ phase: 'stale' }), null, NOW).first, 'No data yet.');
});

t.test('an error returned by the service is shown', async (t) => {
  const link = linkText(connection({ phase: 'waiting', failures: 1, reason: 'Too many dashboards.' }), null, NOW);
  t.same(link, { state: 'gone', first: 'No data yet.', second: 'Too many dashboards. Trying again…' });
});

t.test('the headline lists the open alerts, worst first', async (t) => {
  t.equal(sentence(health('OK')), 'All four measurements are within their limits.');
  const high = { cpu_percent: 85, temperature: 81 };
  t.equal(sentence(health('WARNING', high), alert('cpu_percent')), 'CPU usage is high.');
  t.equal(
    sentence(health('CRITICAL', high), alert('temperature'), alert('cpu_percent', { severity: 'CRITICAL' })),
    'CPU usage is critically high. Temperature is high.',
  );
  t.equal(sentence(health('WARNING')), 'A measurement has crossed its warning threshold.');
  t.equal(
    sentence(health('CRITICAL', { memory_percent: 99 }), alert('memory_percent')),
    'A measurement has crossed its critical threshold. Memory usage is high.',
    'the alert is raised a few seconds after the status',
  );
});

t.test('the headline mentions unavailable metrics and alerts that hysteresis keeps open', async (t) => {
  const lost = alert('temperature', { severity: 'ERROR', value: 31, threshold: 30 });
  t.equal(sentence(health('ERROR', { temperature: null }), lost), 'Temperature cannot be read.');
  t.equal(sentence(health('ERROR', { temperature: null }), alert('cpu_percent'), lost), 'Temperature cannot be read. CPU usage is high.');
  t.equal(sentence(health('ERROR'), alert('disk:/media/usb', { severity: 'ERROR' })), 'Disk /media/usb cannot be measured.');
  t.equal(sentence(health('ERROR')), 'A measurement cannot be taken.', 'the alert has not been received yet');
  t.equal(sentence(health('WARNING'), alert('cpu_percent')), 'Below the threshold again, alert not yet resolved: CPU usage.');
  const critical = alert('cpu_percent', { severity: 'CRITICAL', value: 97, threshold: 95 });
  t.equal(
    sentence(health('CRITICAL', { cpu_percent: 90 }), critical),
    'CPU usage is no longer critical.',
    'above the threshold of WARNING',
  );
  t.match(headline(live, health('UNKNOWN'), null, NODE), { status: 'UNKNOWN', sentence: 'Nothing could be measured.' });
});

t.test('what to do depends on the alert behind the status: only heat is a reason to stop a robot', async (t) => {
  const actionOf = (status: Status, ...open: Alert[]) => headline(live, health(status), buildBook(open, [], []), NODE).action;
  const busy = alert('cpu_percent', { severity: 'CRITICAL' });
  const { metrics, otherAlerts } = messages;
  t.equal(actionOf('CRITICAL', busy), metrics.cpu_percent.action);
  t.equal(actionOf('CRITICAL', alert('memory_percent', { severity: 'CRITICAL' }), alert('temperature')), metrics.memory_percent.action);
  t.equal(actionOf('CRITICAL', busy, alert('temperature', { severity: 'CRITICAL' })), metrics.temperature.actionIfCritical);
  t.equal(actionOf('WARNING', alert('temperature')), undefined, 'in any other status the general advice');
  t.equal(alertHelp(alert('temperature')).action, metrics.temperature.action);
  t.equal(alertHelp(alert('temperature', { severity: 'ERROR' })).action, otherAlerts.notRead.action);
  t.equal(alertHelp(alert('rest_api', { severity: 'ERROR' })).action, otherAlerts.rest_api.action);
  t.equal(actionOf('CRITICAL'), undefined, 'without an alert yet, the general advice');
  t.equal(actionOf('CRITICAL', { ...busy, alert_id: 'arm/cpu_percent/1' }), undefined);
  for (const text of [messages.status.CRITICAL, metrics.cpu_percent, metrics.memory_percent, metrics.disk_percent])
    t.notMatch(text.action, /stop the robot/i);
});

t.test('a metric without a sensor is not reported as a problem', async (t) => {
  t.equal(sentence(health('OK', { temperature: null })), 'All measurements are within their limits.');
});

t.test('the headline of all nodes is that of the worst one', async (t) => {
  const own = (status: Status) => headline(live, health(status), buildBook([], [], []), NODE);
  const tile = (status: Status): Tile => {
    const isStale = status === 'UNKNOWN';
    return { node: `arm ${status}`, isLocal: false, status, readings: null, ageSeconds: isStale ? 60 : 1, isStale, leftMs: null };
  };
  const tiles = STATUSES.map(tile);
  t.match(headlineOfAll(own('OK'), tiles), { status: 'CRITICAL', sentence: /^arm CRITICAL is CRITICAL\. This machine is OK\./ });
  for (const mine of STATUSES) {
    for (const other of STATUSES)
      t.equal(headlineOfAll(own(mine), [tile(other)]).status, worstStatus([mine, other]), `${mine} here, ${other} there`);
  }
  t.match(headlineOfAll(own('WARNING'), [tile('UNKNOWN')]).sentence, /^No data from arm UNKNOWN\. This machine is WARNING\./);
  t.match(headlineOfAll(own('UNKNOWN'), [{ ...tile('CRITICAL'), isStale: true }]).sentence, /^arm CRITICAL is CRITICAL\./);
  t.same(headlineOfAll(own('OK'), [{ ...tile('CRITICAL'), leftMs: LAST }]), own('OK'), 'a node that left makes nothing worse');
});

t.test("alerts of remote nodes do not change this machine's status but are counted", async (t) => {
  t.equal(sentence(health('OK'), alert('temperature', {}, 'robot')), 'All four measurements are within their limits.');
  const otherNodes = openOnOtherNodes(buildBook([alert('temperature', {}, 'robot'), alert('cpu_percent', {}, 'arm')], [], []), NODE);
  t.equal(otherNodes && otherNodesText(otherNodes), 'Other nodes: 2 open alerts');
});

t.test('titles and figures describe an alert by metric, severity and state', async (t) => {
  t.equal(alertTitle(alert('disk_percent', { severity: 'CRITICAL' }), NODE), 'Disk usage is critically high');
  t.equal(alertTitle(alert('temperature', { severity: 'ERROR' }), NODE), 'Temperature cannot be read');
  t.equal(alertTitle(alert('temperature', { severity: 'ERROR' }), NODE, 'past'), 'Temperature could not be read');
  t.equal(alertTitle(alert('cpu_percent'), NODE, 'past'), 'CPU usage was high');
  t.equal(alertTitle(alert('cpu_percent', { value: 12, threshold: 90 }), NODE), 'CPU usage is no longer critical');
  t.equal(alertTitle(alert('cpu_percent', { value: 12, resolved: true }), NODE, 'past'), 'CPU usage was high');
  t.equal(alertTitle(alert('health_status', { severity: 'ERROR' }), 'robot'), 'No data from robot');
  const nodeLimit = alert('remote_nodes', { value: 470, threshold: 461 });
  t.same(
    [alertTitle(nodeLimit, 'robot'), alertFigures(nodeLimit)],
    ['The list of remote nodes is almost full', '470 nodes, threshold 461'],
  );
  t.equal(alertTitle(alert('ros_graph', { severity: 'ERROR' }), NODE), 'ROS 2 is not available');
  t.equal(alertTitle(alert('rest_api', { severity: 'ERROR' }), NODE, 'past'), 'REST API was not available');
  const conflict = alert('name_conflict', { value: 2, threshold: 2 });
  t.same([alertTitle(conflict, 'robot'), alertFigures(conflict)], ['Several machines publish under this name', '2 machines']);
  t.equal(alertTitle(alert('fan_speed'), NODE), 'fan speed is high');
  t.equal(alertFigures(alert('cpu_percent')), '84.3 %, threshold 80 %');
  t.equal(alertFigures(alert('fan_speed')), '84.3, threshold 80');
  t.equal(alertFigures(alert('temperature', { severity: 'ERROR', value: 75, threshold: 30 })), 'no data for 1 min 15 s, timeout 30 s');
});

t.test('the state of a metric follows its open alerts, and unavailable has precedence', async (t) => {
  t.equal(metricState(99, []), 'normal', 'the page assumes no threshold');
  t.equal(metricState(85, [alert('cpu_percent')]), 'warning');
  t.equal(metricState(95, [alert('cpu_percent'), alert('cpu_percent', { severity: 'CRITICAL' })]), 'critical');
  t.equal(metricState(50, [alert('temperature', { severity: 'ERROR' })]), 'normal');
  t.equal(metricState(null, [alert('cpu_percent', { severity: 'CRITICAL' })]), 'unavailable');
  t.equal(metricState(0, []), 'normal');
});

t.test('notices report undervoltage, degraded storage and clock differences only', async (t) => {
  const storage: StatusDocument['storage'] = {
    ...{ state: 'ok', error: null, since: null, size_bytes: 0, max_bytes: 1 },
    ...{ oldest_sample: null, last_write: null, samples_lost: 0, quarantined: [] },
  };
  const healthy = { shutdown: { state: 'none' }, power: { undervoltage: false }, storage } as unknown as StatusDocument;
  t.same(notices(healthy, 2000, NOW), []);
  t.same(notices({ ...healthy, power: { undervoltage: null, throttle_events: null } }, null, NOW), []);
  t.same(notices(null, null, NOW), []);
  t.match(notices({ ...healthy, power: { undervoltage: true, throttle_events: null } }, null, NOW), [/power supply/]);
  const degraded = { ...storage, state: 'degraded' as const, error: 'disk full', since: new Date(LAST).toISOString() };
  t.match(notices({ ...healthy, storage: degraded }, null, NOW), [/have not been saved since 12:03:05 \(disk full\)/]);
  t.match(notices(healthy, -90_000, NOW), [/1 min 30 s behind yours/]);
  t.match(notices(healthy, 90_000, NOW), [/1 min 30 s ahead of yours/]);
});

t.test('a safe shutdown is reported while in progress, and for an hour if it was aborted or interrupted', async (t) => {
  const storage = { state: 'ok', error: null, since: null, size_bytes: 0, max_bytes: 1 };
  const noticesOf = (shutdown: Partial<ShutdownState>): string[] =>
    notices(
      {
        shutdown: { ...SHUTDOWN, ...shutdown },
        power: { undervoltage: null, throttle_events: null },
        storage,
      } as unknown as StatusDocument,
      null,
      NOW,
    );
  const SHUTDOWN = {
    action: 'poweroff',
    reason: 'MANUAL',
    requested_by: 'Zoë',
    seconds_left: null,
    message: 'running: 10-park',
    ended: null,
  };
  t.same(noticesOf({ state: 'none' }), []);
  const [line] = noticesOf({ state: 'in_progress', seconds_left: 61.4 });
  t.equal(line, 'This machine: safe shutdown in progress (MANUAL, requested by Zoë), 1 min 1 s left: running: 10-park.');
  t.match(noticesOf({ state: 'in_progress', action: 'dry-run' }), [/dry run of a safe shutdown/]);
  const ended = new Date(LAST).toISOString();
  t.same(noticesOf({ state: 'completed', ended }), []);
  for (const state of ['aborted', 'interrupted'] as const) {
    t.match(noticesOf({ state, ended, message: 'the step hooks failed' }), [
      /The safe shutdown .* ended at 12:03:05: the step hooks failed\.$/,
    ]);
    t.same(noticesOf({ state, ended: new Date(NOW - 3_600_001).toISOString() }), []);
    t.same(noticesOf({ state }), [], 'without an end time');
  }
});

t.test('the headline of a stale node gives the time of its last data, unless the service is unreachable', async (t) => {
  const arm: Tile = { node: 'arm', isLocal: false, status: 'UNKNOWN', readings: null, ageSeconds: 60, isStale: true, leftMs: null };
  const { status, sentence: why } = headlineOfStaleNode(live, arm, LAST, NOW);
  t.equal(status, 'UNKNOWN');
  t.equal(headlineOfStaleNode(live, { ...arm, status: 'CRITICAL' }, LAST, NOW).status, 'CRITICAL', 'its alert is still open');
  t.equal(why, 'No data from arm since 12:03:05. The numbers below are the last known ones.');
  t.equal(headlineOfStaleNode(live, arm, null, NOW).sentence, 'No data from arm since the service started.');
  const gone = linkText(connection({ phase: 'waiting' }), LAST, NOW);
  t.match(headlineOfStaleNode(gone, arm, LAST, NOW).sentence, /^No data since/);
});

t.test("a difference between a remote node's clock and the machine's is reported", async (t) => {
  const arm = nodeState('arm');
  t.same(nodeNotices(arm, 30_000), []);
  t.same(nodeNotices(null, 9e9), []);
  t.match(nodeNotices(arm, -7_200_000), [/^The clock of arm is 2 h behind this machine's\./]);
  t.match(nodeNotices({ ...arm, clock_ahead_seconds: 3600 }, 0), [/1 h ahead of/]);
});

t.test('the machines that publish under one name are listed, and a name that can be mistaken is spelled', async (t) => {
  const conflict_addresses = ['10.0.0.2', '10.0.0.3'];
  t.match(nodeNotices({ ...nodeState('m\u043en'), conflict_addresses }, 0), [
    /m\\u\{43e\}n.*only the data of 10\.0\.0\.2 .*not that of 10\.0\.0\.3/,
  ]);
});
