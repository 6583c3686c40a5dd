import t from 'tap';
import { Exposition } from './exposition.ts';

t.test('label values are escaped, so that each series stays on one line', async (t) => {
  const exposition = new Exposition();
  exposition.family('node_up', 'gauge', 'Whether it publishes.', [[{ node: 'a\\b"} 0\nx 1', other: 'plain' }, 1]]);
  t.same(exposition.toString().split('\n'), [
    '# HELP node_up Whether it publishes.',
    '# TYPE node_up gauge',
    'node_up{node="a\\\\b\\"} 0\\nx 1",other="plain"} 1',
    '',
  ]);
});

t.test('an unavailable value has no series, and a family without series has no lines', async (t) => {
  const exposition = new Exposition();
  exposition.family('zero', 'gauge', 'Zero.', [[{}, 0]]);
  exposition.family('half', 'counter', 'Half.', [
    [{ of: 'a' }, null],
    [{ of: 'b' }, 0.5],
  ]);
  exposition.family('none', 'gauge', 'None.', [[{}, null]]);
  t.equal(
    exposition.toString(),
    '# HELP zero Zero.\n# TYPE zero gauge\nzero 0\n# HELP half Half.\n# TYPE half counter\nhalf{of="b"} 0.5\n',
  );
});
