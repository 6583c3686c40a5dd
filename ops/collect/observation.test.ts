import t from 'tap';
import { Exposition } from '../../src/http/handlers/metrics.ts';
import { nodeValues } from './observation.ts';

const HUNDREDTHS = [0, 0.01, 12.34, 29.99, 57.01, 99.99, 100];

t.test('values are parsed as they were measured, whatever the node name', async (t) => {
  const names = ['health_monitor', 'campus/robot_1', 'quoted "a", b', 'back\\slash', 'new\nline', '} 1'];
  for (const node of names) {
    for (const value of HUNDREDTHS) {
      const out = new Exposition();
      out.gauge('cpu_usage_ratio', 'CPU.', [[{ node }, value / 100]]);
      out.gauge('temperature_celsius', 'Temperature.', [[{ node }, -value]]);
      out.gauge('memory_usage_ratio', 'Memory.', [[{ node: 'other' }, 0.5]]);
      out.gauge('status', 'Status.', [
        [{ node, status: 'OK' }, 0],
        [{ node, status: 'CRITICAL' }, 1],
      ]);
      out.gauge('last_sample_timestamp_seconds', 'Time.', [[{ node }, 1_772_600_767.089]]);
      out.gauge('open_alerts', 'Alerts.', [[{ severity: 'WARNING' }, 3]]);
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
