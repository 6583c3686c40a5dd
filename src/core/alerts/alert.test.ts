import t from 'tap';
import {
  alertId,
  diskMetric,
  NAME_CONFLICT_METRIC,
  NODE_LIMIT_METRIC,
  nodeOfAlertId,
  raisedBy,
  SEVERITIES,
  STALE_METRIC,
} from './alert.ts';

t.test('the severities are those of the specification', async (t) => {
  t.same([...SEVERITIES].sort(), ['CRITICAL', 'ERROR', 'WARNING']);
});

t.test('an alert id names the node, the metric and a unique id, in this order', async (t) => {
  t.equal(alertId('health_monitor', 'cpu_percent', '01J'), 'health_monitor/cpu_percent/01J');
});

t.test('the node can be parsed from an alert id, also with a namespace', async (t) => {
  for (const node of ['health_monitor', '/robot_1/health_monitor', 'fleet/robot_1/health_monitor']) {
    for (const metric of ['temperature', diskMetric('/'), diskMetric('/media/usb')])
      t.equal(nodeOfAlertId(alertId(node, metric, '01J')), node, metric);
  }
});

t.test('the node and the metric of an alert decide who raises it', async (t) => {
  const raiser = (node: string, metric: string): string => {
    const changed = { value: 1, threshold: 1, timestamp: '2026-03-04T12:00:00.000Z', resolved: false };
    return raisedBy({ ...changed, alert_id: alertId(node, metric, '01J'), metric, severity: 'WARNING' }, 'here');
  };
  t.equal(raiser('here', 'cpu_percent'), 'thresholds');
  t.equal(raiser('here', diskMetric('/media/usb')), 'thresholds');
  t.equal(raiser('here', NODE_LIMIT_METRIC), 'reception');
  t.equal(raiser('here', NAME_CONFLICT_METRIC), 'reception');
  t.equal(raiser('there', STALE_METRIC), 'observer');
  t.equal(raiser('there', NAME_CONFLICT_METRIC), 'observer');
  t.equal(raiser('there', 'cpu_percent'), 'other');
  t.equal(raiser('there', NODE_LIMIT_METRIC), 'other');
  t.equal(raiser('/robot/here', 'cpu_percent'), 'other');
});

t.test('ids of one episode kind sort by their unique id', async (t) => {
  const ids = ['01C', '01A', '01B'].map((id) => alertId('n', 'cpu_percent', id));
  t.same(
    ids.sort().map((id) => id.slice(-3)),
    ['01A', '01B', '01C'],
  );
});
