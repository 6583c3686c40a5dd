import t from 'tap';
import { bookOf, openOnOtherNodes } from './alert-book.ts';
import { type Connection, firstConnection } from './connection.ts';
import {
  alertFigures,
  alertTitle,
  clockNotices,
  headline,
  headlineOfOther,
  linkText,
  metricState,
  missed,
  notices,
  otherNodesText,
  thresholdsOf,
} from './text.ts';
import type { Alert, HealthStatus, ShutdownState, Status, StatusDocument } from './types.ts';

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
const connection = (more: Partial<Connection>): Connection => ({ ...firstConnection(0), ...more });
const live = linkText(connection({ phase: 'live' }), LAST, NOW);
const sentence = (status: HealthStatus, ...alerts: Alert[]): string => headline(live, status, bookOf(alerts, [], []), NODE).sentence;

t.test('the link says that it is live, and when was measured', async (t) => {
  t.same(live, { state: 'live', first: 'Live', second: 'Measured 12:03:05' });
});

t.test('a page that has just been opened is connecting, not in trouble', async (t) => {
  const link = linkText(connection({ phase: 'connecting' }), null, NOW);
  t.equal(link.state, 'connecting');
  t.equal(headline(link, null, null, null).status, null);
});

t.test('when the service is gone the page says since when, whatever phase it is in, and the status is unknown', async (t) => {
  for (const phase of ['connecting', 'loading', 'waiting'] as const) {
    const link = linkText(connection({ phase, failures: 2 }), LAST, NOW);
    t.same(link, { state: 'gone', first: 'No data since 12:03:05.', second: 'Trying to reconnect…' });
    const head = headline(link, health('OK'), null, NODE);
    t.equal(head.status, 'UNKNOWN');
    t.match(head.sentence, /No data since 12:03:05\..*last known/);
  }
  t.match(linkText(connection({ phase: 'waiting', failures: 1 }), null, NOW), { state: 'gone', first: 'No answer.' });
});

t.test('a service that answers and does not measure is told apart from one that is gone', async (t) => {
  const link = linkText(connection({ phase: 'stale', answers: true }), LAST, NOW);
  t.match(link, { state: 'gone', first: 'No data since 12:03:05.', second: /measures nothing/ });
  t.match(linkText(connection({ phase: 'stale' }), LAST, NOW).second, /Waiting/);
  t.match(linkText(connection({ phase: 'stale' }), null, NOW).first, 'No data yet.');
});

t.test('what the service itself said is passed on', async (t) => {
  const link = linkText(connection({ phase: 'waiting', failures: 1, reason: 'Too many dashboards.' }), null, NOW);
  t.same(link, { state: 'gone', first: 'No data yet.', second: 'Too many dashboards. Trying again…' });
});

t.test('the headline says why, in the words of the open alerts, the worst first', async (t) => {
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
    'its alert comes a few seconds later',
  );
});

t.test('the headline does not pass over what is unavailable or not settled', async (t) => {
  const lost = alert('temperature', { severity: 'ERROR', value: 31, threshold: 30 });
  t.equal(sentence(health('ERROR', { temperature: null }), lost), 'Temperature cannot be read.');
  t.equal(sentence(health('ERROR', { temperature: null }), alert('cpu_percent'), lost), 'Temperature cannot be read. CPU usage is high.');
  t.equal(sentence(health('ERROR'), alert('disk:/media/usb', { severity: 'ERROR' })), 'Disk /media/usb cannot be measured.');
  t.equal(sentence(health('ERROR')), 'A measurement cannot be taken.', 'its alert has not arrived yet');
  t.equal(sentence(health('WARNING'), alert('cpu_percent')), 'Within the limits again, not settled yet: CPU usage.');
  t.match(headline(live, health('UNKNOWN'), null, NODE), { status: 'UNKNOWN', sentence: 'Nothing could be measured.' });
});

t.test('a metric that never had a sensor is not announced as a problem', async (t) => {
  t.equal(sentence(health('OK', { temperature: null })), 'All measurements are within their limits.');
});

t.test('the page of a machine that is well is not green while another node is not', async (t) => {
  const own = headline(live, health('OK'), bookOf([], [], []), NODE);
  const tile = { node: 'arm', isLocal: false, status: 'CRITICAL', readings: null, ageSeconds: 1, isStale: false, leftMs: null } as const;
  t.match(headlineOfOther(tile, own), { status: 'CRITICAL', sentence: /^arm is CRITICAL\. This machine is OK\./ });
  t.match(headlineOfOther({ ...tile, status: 'UNKNOWN', isStale: true }, own), { status: 'UNKNOWN', sentence: /^No data from arm\./ });
});

t.test("alerts of other nodes do not change this machine's status but are mentioned", async (t) => {
  t.equal(sentence(health('OK'), alert('temperature', {}, 'robot')), 'All four measurements are within their limits.');
  const otherNodes = openOnOtherNodes(bookOf([alert('temperature', {}, 'robot'), alert('cpu_percent', {}, 'arm')], [], []), NODE);
  t.equal(otherNodes && otherNodesText(otherNodes), 'Other nodes: 2 open alerts');
});

t.test('alerts in words', async (t) => {
  t.equal(alertTitle(alert('disk_percent', { severity: 'CRITICAL' }), NODE), 'Disk usage is critically high');
  t.equal(alertTitle(alert('temperature', { severity: 'ERROR' }), NODE), 'Temperature cannot be read');
  t.equal(alertTitle(alert('temperature', { severity: 'ERROR' }), NODE, 'past'), 'Temperature could not be read');
  t.equal(alertTitle(alert('cpu_percent'), NODE, 'past'), 'CPU usage was high');
  t.equal(alertTitle(alert('cpu_percent', { value: 12, threshold: 90 }), NODE), 'CPU usage is no longer critical');
  t.equal(alertTitle(alert('cpu_percent', { value: 12, resolved: true }), NODE, 'past'), 'CPU usage was high');
  t.equal(alertTitle(alert('health_status', { severity: 'ERROR' }), 'robot'), 'No data from robot');
  const places = alert('remote_nodes', { value: 470, threshold: 461 });
  t.same([alertTitle(places, 'robot'), alertFigures(places)], ['Places for other nodes are short', '470 nodes, threshold 461']);
  t.equal(alertTitle(alert('fan_speed'), NODE), 'fan speed is high');
  t.equal(alertFigures(alert('cpu_percent')), '84.3 %, threshold 80 %');
  t.equal(alertFigures(alert('fan_speed')), '84.3, threshold 80');
  t.equal(alertFigures(alert('temperature', { severity: 'ERROR', value: 75, threshold: 30 })), 'no data for 1 min 15 s, timeout 30 s');
});

t.test('a metric is as bad as its open alerts, and unavailable before all', async (t) => {
  t.equal(metricState(99, []), 'normal', 'no threshold is made up');
  t.equal(metricState(85, [alert('cpu_percent')]), 'warning');
  t.equal(metricState(95, [alert('cpu_percent'), alert('cpu_percent', { severity: 'CRITICAL' })]), 'critical');
  t.equal(metricState(50, [alert('temperature', { severity: 'ERROR' })]), 'normal');
  t.equal(metricState(null, [alert('cpu_percent', { severity: 'CRITICAL' })]), 'unavailable');
  t.equal(metricState(0, []), 'normal');
});

t.test('the chart shows the thresholds that open alerts tell, not the seconds of an ERROR', async (t) => {
  const book = bookOf(
    [
      alert('temperature', { threshold: 70 }),
      alert('temperature', { alert_id: `${NODE}/temperature/2`, severity: 'ERROR', threshold: 30 }),
    ],
    [],
    [],
  );
  t.same(thresholdsOf(book, NODE, 'temperature'), [70]);
  t.same(thresholdsOf(book, NODE, 'cpu_percent'), []);
});

t.test('notices tell of power, storage, shutdown and a clock that is wrong; otherwise there are none', async (t) => {
  const storage = { state: 'ok', error: null, since: null, size_bytes: 0, max_bytes: 1 };
  const well = { shutdown: { state: 'none' }, power: { undervoltage: false }, storage } as unknown as StatusDocument;
  t.same(notices(well, 2000, NOW), []);
  t.same(notices({ ...well, power: { undervoltage: null } }, null, NOW), []);
  t.same(notices(null, null, NOW), []);
  t.match(notices({ ...well, power: { undervoltage: true } }, null, NOW), [/power supply/]);
  const degraded = { ...storage, state: 'degraded' as const, error: 'disk full', since: new Date(LAST).toISOString() };
  t.match(notices({ ...well, storage: degraded }, null, NOW), [/cannot be saved since 12:03:05 \(disk full\)/]);
  t.match(notices(well, -90_000, NOW), [/1 min 30 s behind yours/]);
  t.match(notices(well, 90_000, NOW), [/1 min 30 s ahead of yours/]);
});

t.test('a safe shutdown is told of while it is under way, and for an hour where it did not come to its end', async (t) => {
  const storage = { state: 'ok', error: null, since: null, size_bytes: 0, max_bytes: 1 };
  const told = (shutdown: Partial<ShutdownState>): string[] =>
    notices({ shutdown: { ...ASKED, ...shutdown }, power: { undervoltage: null }, storage } as unknown as StatusDocument, null, NOW);
  const ASKED = { action: 'poweroff', reason: 'MANUAL', requested_by: 'Zoë', seconds_left: null, message: 'running: 10-park', ended: null };
  t.same(told({ state: 'none' }), []);
  const [line] = told({ state: 'in_progress', seconds_left: 61.4 });
  t.equal(line, 'This machine: safe shutdown in progress (MANUAL, requested by Zoë), 1 min 1 s left: running: 10-park.');
  t.match(told({ state: 'in_progress', action: 'dry-run' }), [/dry run of a safe shutdown/]);
  const ended = new Date(LAST).toISOString();
  t.same(told({ state: 'completed', ended }), []);
  for (const state of ['aborted', 'interrupted'] as const) {
    t.match(told({ state, ended, message: 'the step hooks failed' }), [/The safe shutdown .* ended at 12:03:05: the step hooks failed\.$/]);
    t.same(told({ state, ended: new Date(NOW - 3_600_001).toISOString() }), []);
    t.same(told({ state }), [], 'nobody knows when');
  }
});

t.test('another node from which nothing comes: since when; unless the service itself is gone', async (t) => {
  const { status, sentence: why } = missed(live, 'arm', LAST, NOW);
  t.equal(status, 'UNKNOWN');
  t.equal(why, 'No data from arm since 12:03:05. The numbers below are the last known ones.');
  t.equal(missed(live, 'arm', null, NOW).sentence, 'No data from arm since the service started.');
  const gone = linkText(connection({ phase: 'waiting' }), LAST, NOW);
  t.match(missed(gone, 'arm', LAST, NOW).sentence, /^No data since/);
});

t.test("a clock of another node that disagrees with the machine's is worth a word", async (t) => {
  t.same(clockNotices('arm', 30_000), []);
  t.same(clockNotices(null, 9e9), []);
  t.match(clockNotices('arm', -7_200_000), [/^The clock of arm is 2 h behind this machine's\./]);
  t.match(clockNotices('arm', 3_600_000), [/1 h ahead of/]);
});
