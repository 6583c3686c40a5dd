import t from 'tap';
import { Exposition } from '../../src/http/exposition.ts';
import { nodeValues } from './observation.ts';

const HUNDREDTHS = [0, 0.01, 12.34, 29.99, 57.01, 99.99, 100];

t.test('values are parsed as they were measured, whatever the node name', async (t) => {
  const names = ['health_monitor', 'campus/robot_1', 'quoted "a", b', 'back\\slash', 'new\nline', '} 1'];
  for (const node of names) {
    for (const value of HUNDREDTHS) {
      const out = new Exposition();
      out.family('edge_health_cpu_usage_ratio', 'gauge', 'CPU.', [[{ node }, value / 100]]);
      out.family('edge_health_temperature_celsius', 'gauge', 'Temperature.', [[{ node }, -value]]);
      out.family('edge_health_memory_usage_ratio', 'gauge', 'Memory.', [[{ node: 'other' }, 0.5]]);
      out.family('edge_health_status', 'gauge', 'Status.', [
        [{ node, status: 'OK' }, 0],
        [{ node, status: 'CRITICAL' }, 1],
      ]);
      out.family('edge_health_last_sample_timestamp_seconds', 'gauge', 'Time.', [[{ node }, 1_772_600_767.089]]);
      out.family('edge_health_open_alerts', 'gauge', 'Alerts.', [[{ severity: 'WARNING' }, 3]]);
      const values = nodeValues(out.toString());
      t.same([...values.keys()], [node, 'other']);
      t.same(values.get(node), {
        status: 'CRITICAL',
        sampleTime: '2026-03-04T05:06:07.089Z',
        readings: { cpu_percent: value, memory_percent: null, disk_percent: null, temperature: -value },
      });
    }
  }
});

t.test('text that is not an exposition contains no nodes', async (t) => {
  for (const text of ['', '<html>', '# HELP edge_health_status x\nedge_health_status{status="OK"} 1\n']) t.equal(nodeValues(text).size, 0);
});
