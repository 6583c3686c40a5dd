import t from 'tap';
import { Exposition } from './metrics.ts';

t.test('label values are escaped, so that each series stays on one line', async (t) => {
  const exposition = new Exposition();
  exposition.gauge('node_up', 'Whether it publishes.', [[{ node: 'a\\b"} 0\nx 1', other: 'plain' }, 1]]);
  t.same(exposition.toString().split('\n'), [
    '# HELP edge_health_node_up Whether it publishes.',
    '# TYPE edge_health_node_up gauge',
    'edge_health_node_up{node="a\\\\b\\"} 0\\nx 1",other="plain"} 1',
    '',
  ]);
});

t.test('an unavailable value has no series, and a metric without series has no lines', async (t) => {
  const exposition = new Exposition();
  exposition.gauge('zero', 'Zero.', 0);
  exposition.counter('half', 'Half.', [
    [{ of: 'a' }, null],
    [{ of: 'b' }, 0.5],
  ]);
  exposition.gauge('none', 'None.', null);
  exposition.gauge('empty', 'Empty.', []);
  t.equal(
    exposition.toString(),
    [
      ...['# HELP edge_health_zero Zero.', '# TYPE edge_health_zero gauge', 'edge_health_zero 0'],
      ...['# HELP edge_health_half Half.', '# TYPE edge_health_half counter', 'edge_health_half{of="b"} 0.5', ''],
    ].join('\n'),
  );
});
